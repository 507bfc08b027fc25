"""Trap 5: statistics that are one step off. Episodes of three steps with reward 1 have a return and a length of 3."""

from __future__ import annotations

import numpy as np
import pytest
from tests.envs.toys import Clock

from gameagent.envs.base import VectorEnv
from gameagent.envs.gym import GymEnv
from gameagent.envs.statistics import EpisodeStatistics, FinishedEpisode
from gameagent.envs.vector import CoreVectorEnv


def played(env: VectorEnv, steps: int) -> list[FinishedEpisode]:
    statistics = EpisodeStatistics(env.num_envs)
    env.reset(seed=0)
    found: list[FinishedEpisode] = []
    for _ in range(steps):
        _, reward, terminated, truncated, info = env.step(np.zeros(env.num_envs, np.int64))
        found += statistics.update(reward, terminated, truncated, info)
    return found


@pytest.mark.parametrize(("length", "limit"), [(3, None), (100, 3), (3, 3)])
def test_every_episode_returns_three(length: int, limit: int | None) -> None:
    env = CoreVectorEnv(Clock(2, length), lambda ctx: (np.ones(2), {"one": np.ones(2)}), max_episode_steps=limit)
    found = played(env, 12)
    assert [(f.episode_return, f.length, f.terms["one"], f.score) for f in found] == [(3.0, 3, 3.0, 30.0)] * 8


def test_the_same_through_gymnasium() -> None:
    found = played(GymEnv(max_episode_steps=3).make(2), 12)
    assert [(f.episode_return, f.length, f.score, f.truncated) for f in found] == [(3.0, 3, 3.0, True)] * 8
