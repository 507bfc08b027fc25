"""Trap 18: an evaluation mask that counts a step after done, or a maximum taken over zero-filled padding."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.fakes import Lottery, length_of

from gameagent.contract import IntArray, Obs
from gameagent.envs.base import VectorEnv
from gameagent.evaluation.protocol import play
from gameagent.evaluation.summary import summarise
from gameagent.policies.actors import Actor


class Loser(Actor):
    """Loses a point a step."""

    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        return np.zeros(env.num_envs, np.int64)


@pytest.mark.parametrize("num_envs", [1, 5, 16])
def test_negative_episodes_sum_up_to_their_own_steps_only(num_envs: int) -> None:
    seeds = range(40)
    got = play(Lottery().make(num_envs), Loser(), seeds)
    assert [r.score for r in got] == [-length_of(s) for s in seeds]
    assert [r.episode_return for r in got] == [-2 * length_of(s) for s in seeds]
    assert [r.length for r in got] == [length_of(s) for s in seeds]


def test_the_best_of_negative_scores_is_negative() -> None:
    summary = summarise(play(Lottery().make(16), Loser(), range(40)), player="loser", mode="argmax")
    assert summary["score"]["max"] == -2.0
