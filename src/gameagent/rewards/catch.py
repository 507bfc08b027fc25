"""`catch`: the reward for MiniCatch.

`env=catch env/reward=catch env.reward.bomb=-2`, or CatchReward(bomb=-2.0) in Python.
"""

from __future__ import annotations

import numpy as np

from gameagent.component import component
from gameagent.contract import FloatArray, RewardContext
from gameagent.rewards.base import Reward, Terms


@component
class CatchReward(Reward):
    """Apples and bombs caught, and optionally a shaping towards the next apple. Missing an apple costs nothing."""

    apple: float = 1.0
    """Reward for each apple caught, points."""
    bomb: float = -1.5
    """Reward for each bomb caught, points; negative to punish."""
    tracking: float = 0.0
    """Reward for each 100 pixels that the basket comes closer to the next apple, 0 or more; 0: off. For cold starts.
    The change of a potential (Ng et al. 1999): going to and fro adds up to nothing."""

    def __call__(self, ctx: RewardContext) -> tuple[FloatArray, Terms]:
        """Total (N,) and the terms `apple`, `bomb` and, where it is on, `tracking`."""
        terms: Terms = {}
        if "apples" in ctx:
            terms["apple"] = ctx.signals["apples"] * self.apple
        if "bombs" in ctx:
            terms["bomb"] = ctx.signals["bombs"] * self.bomb
        if self.tracking and (change := ctx.delta("distance")) is not None:
            terms["tracking"] = change * (-self.tracking / 100.0)
        total = np.zeros(ctx.num_envs)
        for term in terms.values():
            total += term
        return total, terms
