"""The one signature behind every reward function.

A reward is a component that is called: `total, terms = reward(ctx)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from gameagent.contract import FloatArray, RewardContext

Terms = dict[str, FloatArray]
"""Parts of the total by name, each (N,)."""


class Reward(ABC):
    """Base of every reward component (`conf/env/reward/*.yaml`). Stateless: all it may look at is the context."""

    @abstractmethod
    def __call__(self, ctx: RewardContext) -> tuple[FloatArray, Terms]:
        """Total (N,) float64 and its terms, which add up to it. A term whose signal is missing is left out."""
