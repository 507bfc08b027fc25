"""What a policy is: `Architecture`, the component that is configured, and `Policy`, the network that it builds.

policy = ActorCritic(encoder=Tiny()).build(env.obs_space, env.actions)
distribution, value = policy(policy.prepare(parts))
logits, value = policy.infer(obs)   # numpy in, numpy out
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gameagent.contract import ActionSpace, ContractError, Obs, ObsSpace, Part
from gameagent.nets.base import Tensors
from gameagent.nets.distributions import FactoredCategorical


class PolicyOutput(NamedTuple):
    """What one forward pass gives."""

    distribution: FactoredCategorical
    """Over the flat actions."""
    value: Tensor
    """Estimated return (B,)."""


class Inference(NamedTuple):
    """What a policy says about a batch of observations, in numpy."""

    logits: list[NDArray[np.float32]]
    """One array (N, size) per head: log-probabilities, which are logits normalised within the head."""
    value: NDArray[np.float32]
    """Estimated return (N,)."""


class Infers(Protocol):
    """Anything that acts on numpy observations: a torch `Policy`, an `OnnxPolicy`."""

    obs_space: ObsSpace
    action_space: ActionSpace

    def infer(self, obs: Obs) -> Inference:
        """Observation parts (N, …) by name -> logits of each head and value."""


class Policy(nn.Module, ABC):
    """A built policy. Knows its spaces and the architecture that made it, so that it can be saved by itself."""

    def __init__(self, architecture: Architecture, obs_space: ObsSpace, action_space: ActionSpace) -> None:
        super().__init__()
        self.architecture, self.obs_space, self.action_space = architecture, obs_space, action_space

    def prepare(self, parts: Tensors) -> Tensors:
        """Raw observation parts -> what `forward` reads, dtype unchanged. Done once a sample."""
        return parts

    @abstractmethod
    def distribution(self, prepared: Tensors) -> FactoredCategorical:
        """Action distribution only: what acting needs."""

    @abstractmethod
    def value(self, prepared: Tensors) -> Tensor:
        """Value (B,) only: what bootstrapping needs."""

    def forward(self, prepared: Tensors) -> PolicyOutput:
        """Both."""
        return PolicyOutput(self.distribution(prepared), self.value(prepared))

    @abstractmethod
    def actor_parameters(self) -> list[nn.Parameter]:
        """Parameters that choose actions (gradient clipping treats them apart)."""

    @abstractmethod
    def critic_parameters(self) -> list[nn.Parameter]:
        """Parameters that estimate values."""

    def infer(self, obs: Obs) -> Inference:
        """Evaluate numpy observations, parts (N, …) by name, without gradients and in evaluation mode.

        Raises ContractError where a part is missing or has another shape or dtype than the policy was made for.
        """
        check_obs(self.obs_space, obs)
        device = next(self.parameters()).device
        parts = {name: _tensor(obs[name]).to(device) for name in self.obs_space if name != Part.text}
        with _evaluating(self), torch.no_grad():
            distribution, value = self(self.prepare(parts))
        return Inference([h.cpu().numpy() for h in distribution.heads()], value.float().cpu().numpy())


class Architecture(ABC):
    """Base of every policy component (`conf/policy/*.yaml`)."""

    @abstractmethod
    def build(self, obs_space: ObsSpace, action_space: ActionSpace) -> Policy:
        """A policy with fresh weights for these spaces. Raises ContractError where they don't suit it."""


def check_obs(space: ObsSpace, obs: Obs) -> None:
    """Raise ContractError unless `obs` is a batch of `space`: every part there, with its shape and dtype."""
    for name, part in space.items():
        if name not in obs:
            raise ContractError(f"the policy reads {space}, but the observation has only {sorted(obs)}")
        found = obs[name]
        fits = found.dtype == part.dtype or part.kind is Part.text
        if found.ndim == 0 or found.shape[1:] != part.shape or not fits:
            raise ContractError(
                f"part {name!r}: expected a batch (N, {', '.join(map(str, part.shape))}) of {part.dtype}, "
                f"got shape {found.shape} of {found.dtype}"
            )


@contextmanager
def _evaluating(policy: Policy) -> Iterator[None]:
    """Evaluation mode for a while."""
    if not policy.training:
        yield
        return
    policy.eval()
    try:
        yield
    finally:
        policy.train()


def _tensor(array: NDArray[np.generic]) -> Tensor:
    """The array's memory as a tensor; copied only where torch could not use it as it is."""
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))
