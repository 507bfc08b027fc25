"""A rollout laid out for learning: `Samples`, flat over steps and environments, taken in shuffled minibatches.

for index in torch.randperm(len(samples)).split(512): batch = samples.columns(index)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor

from gameagent.nets.base import Tensors


class Minibatch(NamedTuple):
    """Some samples: what the loss looks at. All (B,) but `log_probs`, (B, sum of head sizes)."""

    action: Tensor
    """Flat ids taken."""
    log_prob: Tensor
    """Of that action when it was taken."""
    log_probs: Tensor
    """Of every action of every head then."""
    value: Tensor
    """V(s) after the rollout, before the update."""
    advantage: Tensor
    """Normalised as the learner says."""
    returns: Tensor
    """What the value should have been."""


class Samples(NamedTuple):
    """All samples of a rollout, T·N of them."""

    obs: Tensors
    """Prepared observations."""
    columns: Minibatch
    """All else."""

    @property
    def size(self) -> int:
        """T·N."""
        return len(self.columns.action)

    def take(self, index: Tensor) -> Minibatch:
        """The chosen samples without their observations, which are gathered piece by piece: they are large."""
        return Minibatch(*(column[index] for column in self.columns))

    def pieces(self, index: Tensor, batch: Minibatch, size: int) -> Iterator[tuple[Tensors, Minibatch]]:
        """Observations and columns of at most `size` samples at a time; `batch` is `take(index)`."""
        for start in range(0, len(index), size):
            rows = slice(start, start + size)
            obs = {name: x.index_select(0, index[rows]) for name, x in self.obs.items()}
            yield obs, Minibatch(*(column[rows] for column in batch))
