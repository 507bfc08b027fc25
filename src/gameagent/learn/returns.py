"""Advantages and returns from rewards and values: generalised advantage estimation (GAE).

    advantages = gae(rewards, values, next_values, terminated, truncated, gamma=0.99, gae_lambda=0.95)

Source: Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized Advantage Estimation", eq. 11–16;
the treatment of time limits is Pardo et al. 2018, "Time Limits in Reinforcement Learning".
"""

from __future__ import annotations

import torch
from torch import Tensor


def next_values(values: Tensor, last_value: Tensor, truncated: Tensor, final_values: Tensor) -> Tensor:
    """V of the state that each step led to, (T, N).

    That is V(s_{t+1}) as stored, except where a time limit cut the episode: the row after it already belongs to the
    next episode, so V(final_obs) stands there instead. What stands at terminated steps is never used.

    Args:
        values: V(s_t), (T, N).
        last_value: V of the observation after the last step, (N,).
        truncated: steps that were cut, not ended, (T, N) bool.
        final_values: V(final_obs) of those steps in row-major order, (number of True in `truncated`,).
    """
    _check_shapes(values.shape, truncated=truncated)
    if last_value.shape != values.shape[1:] or final_values.shape != (int(truncated.sum()),):
        raise ValueError(
            f"values {tuple(values.shape)} need last_value {tuple(values.shape[1:])}, got {tuple(last_value.shape)}, "
            f"and one final value for each of {int(truncated.sum())} truncated steps, got {tuple(final_values.shape)}"
        )
    following = torch.cat([values[1:], last_value.unsqueeze(0)])
    following[truncated] = final_values
    return following


def gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    *,
    gamma: float,
    gae_lambda: float,
) -> Tensor:
    """Advantages A_t, (T, N); the value target is A_t + V(s_t).

    δ_t = r_t + γ·V(next)·(1 − terminated_t) − V(s_t) and A_t = δ_t + γλ·(1 − done_t)·A_{t+1}: a termination has no
    future, a truncation has one that was not played, and neither lets the next episode in.

    Args:
        rewards: r_t, (T, N) float.
        values: V(s_t), (T, N).
        next_values: see `next_values`, (T, N).
        terminated: the episode ended at this step, (T, N) bool.
        truncated: the episode was cut at this step, (T, N) bool.
        gamma: discount, 0..1.
        gae_lambda: 0 (one-step) .. 1 (Monte Carlo).

    Raises:
        ValueError: the shapes differ.
    """
    _check_shapes(rewards.shape, values=values, next_values=next_values, terminated=terminated, truncated=truncated)
    deltas = rewards + gamma * torch.where(terminated, 0.0, next_values) - values
    decay = gamma * gae_lambda * (~(terminated | truncated)).to(values.dtype)
    advantages = torch.empty_like(deltas)
    ahead = torch.zeros_like(deltas[0])
    for t in reversed(range(len(deltas))):
        ahead = torch.addcmul(deltas[t], decay[t], ahead)
        advantages[t] = ahead
    return advantages


def normalise(advantages: Tensor, epsilon: float = 1e-8) -> Tensor:
    """Zero mean and unit standard deviation (unbiased). A single one has no spread: it is given back as it is."""
    if advantages.numel() < 2:
        return advantages
    return (advantages - advantages.mean()) / (advantages.std() + epsilon)


def explained_variance(values: Tensor, returns: Tensor) -> float | None:
    """1 − Var(returns − values) / Var(returns): 1 is perfect, 0 no better than the mean; None for constant returns."""
    _check_shapes(returns.shape, values=values)
    spread = float(returns.var(correction=0))
    return None if spread == 0 else 1 - float((returns - values).var(correction=0)) / spread


def _check_shapes(shape: torch.Size, **others: Tensor) -> None:
    """Equal shapes only: broadcasting (T, N) against (N,) or (T, N, 1) gives numbers that look right and are not."""
    wrong = {name: tuple(tensor.shape) for name, tensor in others.items() if tensor.shape != shape}
    if wrong:
        raise ValueError(f"expected shape {tuple(shape)} everywhere, got {wrong}")
