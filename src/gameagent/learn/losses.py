"""The terms of PPO's loss and what is measured beside them: pure functions that give one number a sample.

    loss = (policy_loss(new, old, advantage, 0.2) + 0.5 * value_loss(value, returns)).sum() / minibatch_size

One number a sample, not a mean, so that a minibatch may be worked off in pieces whose gradients add up to the whole's.
Source: Schulman et al. 2017, "Proximal Policy Optimization Algorithms", eq. 7 and 9; the value clipping is OpenAI
baselines' own.
"""

from __future__ import annotations

import torch
from torch import Tensor


def policy_loss(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """Clipped surrogate, negated: max(−A·ratio, −A·clamp(ratio, 1 − clip, 1 + clip)), (B,).

    Raises:
        ValueError: the shapes differ.
    """
    _check(log_prob, old_log_prob=old_log_prob, advantage=advantage)
    ratio = (log_prob - old_log_prob).exp()
    return torch.max(-advantage * ratio, -advantage * ratio.clamp(1 - clip, 1 + clip))


def value_loss(value: Tensor, returns: Tensor, old_value: Tensor | None = None, clip: float | None = None) -> Tensor:
    """Squared error (V − R)², (B,). No factor ½: `value_coef` scales it.

    With `clip`, the larger of it and of the error of V_old + clamp(V − V_old, −clip, clip): a value that moved further
    than `clip` from the rollout's gets no gradient for the excess. `clip` is in the units of returns: mind their scale.

    Raises:
        ValueError: the shapes differ ((B, 1) against (B,) would broadcast to (B, B)), or clip without old_value.
    """
    _check(value, returns=returns)
    error = (value - returns).square()
    if clip is None:
        return error
    if old_value is None:
        raise ValueError("clipping values needs old_value, the rollout's own")
    _check(value, old_value=old_value)
    clipped = old_value + (value - old_value).clamp(-clip, clip)
    return torch.max(error, (clipped - returns).square())


def categorical_kl(old_log_probs: Tensor, new_log_probs: Tensor) -> Tensor:
    """KL(old || new) in nats, (B,), from whole distributions (B, sum of head sizes), normalised within each head.

    Exact, not estimated from the actions taken. The heads are independent, so the sum over all columns is the sum of
    theirs.

    Raises:
        ValueError: the shapes differ.
    """
    _check(new_log_probs, old_log_probs=old_log_probs)
    return (old_log_probs.exp() * (old_log_probs - new_log_probs)).sum(-1)


def clipped(log_prob: Tensor, old_log_prob: Tensor, clip: float) -> Tensor:
    """1.0 where the ratio left [1 − clip, 1 + clip], else 0.0, (B,)."""
    _check(log_prob, old_log_prob=old_log_prob)
    return ((log_prob - old_log_prob).exp() - 1).abs().gt(clip).float()


def _check(first: Tensor, **others: Tensor) -> None:
    wrong = {name: tuple(tensor.shape) for name, tensor in others.items() if tensor.shape != first.shape}
    if wrong:
        raise ValueError(f"expected shape {tuple(first.shape)} everywhere, got {wrong}")
