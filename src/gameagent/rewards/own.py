"""`own`: the reward that the game itself defines, the default where nothing else is chosen.

`env/reward=own`, or OwnReward() in Python.
"""

from __future__ import annotations

import numpy as np

from gameagent.component import component
from gameagent.contract import FloatArray, RewardContext
from gameagent.rewards.base import Reward, Terms


@component
class OwnReward(Reward):
    """The game's own `reward` hook where its file has one (the env calls that instead), else its change of score."""

    def __call__(self, ctx: RewardContext) -> tuple[FloatArray, Terms]:
        """Change of the signal `score` (N,); zero where the game has no score."""
        change = ctx.delta("score")
        if change is None:
            return np.zeros(ctx.num_envs), {}
        return change, {"score": change.copy()}
