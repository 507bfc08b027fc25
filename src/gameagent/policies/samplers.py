"""How an action is chosen from a policy's logits: the best one, at random, or at random among near-ties.

    ids = Temperature(temperature=0.5)(logits, np.random.default_rng(0))

The mode changes results, so evaluations record it. numpy only: torch and ONNX policies are played by the same code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from gameagent.component import component
from gameagent.contract import IntArray

Logits = Sequence[NDArray[Any]]
"""One array (N, size) per head."""


class Sampler(ABC):
    """Base of every sampler component (`conf/job/sampler/*.yaml`)."""

    @abstractmethod
    def __call__(self, logits: Logits, rng: np.random.Generator) -> IntArray:
        """Logits of each head, (N, size) -> flat action ids (N,)."""


@component
class Argmax(Sampler):
    """The most likely action, always. Draws nothing from the generator."""

    def __call__(self, logits: Logits, rng: np.random.Generator) -> IntArray:
        """Heads are independent: the best combination is the best label of each, the first one where several tie."""
        return _flat([head.argmax(-1) for head in logits], logits)


@component
class Temperature(Sampler):
    """Sample from the policy, its logits divided by a temperature."""

    temperature: Annotated[float, Field(gt=0)] = 1.0
    """1: the policy's own probabilities; towards 0: argmax; above 1: closer to uniform."""

    def __call__(self, logits: Logits, rng: np.random.Generator) -> IntArray:
        """Gumbel-max: the argmax of logits plus Gumbel noise is a sample of their softmax."""
        noisy = [np.asarray(head, np.float64) / self.temperature + rng.gumbel(size=head.shape) for head in logits]
        return _flat([head.argmax(-1) for head in noisy], logits)


@component
class TieTolerance(Sampler):
    """Choose evenly among the actions that are nearly as likely as the best: varied play, but sure where it is sure."""

    tolerance: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Fraction of the best action's probability that another may lack and still be chosen; 0 is argmax (of exact ties a
    random one), 1 chooses among all actions. Probabilities are those of whole actions, over all heads."""

    def __call__(self, logits: Logits, rng: np.random.Generator) -> IntArray:
        """A uniform draw among {a: p(a) ≥ (1 − tolerance) · max p}."""
        best = [np.asarray(head, np.float64) - head.max(-1, keepdims=True) for head in logits]
        joint = reduce(lambda a, b: (a[:, :, None] + b[:, None, :]).reshape(len(a), -1), best)
        allowed = np.exp(joint) >= 1 - self.tolerance
        noise = rng.random(joint.shape)
        chosen: IntArray = np.where(allowed, noise, -1.0).argmax(-1).astype(np.int64)
        return chosen


def _flat(parts: Sequence[NDArray[Any]], logits: Logits) -> IntArray:
    """Ids of each head, (N,) each -> flat ids (N,), the first head the most significant."""
    flat: IntArray = np.ravel_multi_index(tuple(parts), tuple(head.shape[-1] for head in logits)).astype(np.int64)
    return flat
