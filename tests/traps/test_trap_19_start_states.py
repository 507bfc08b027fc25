"""Trap 19: start states of an evaluation that depend on when other environments finish."""

from __future__ import annotations

import numpy as np
from tests.evaluation.fakes import Lottery

from gameagent.contract import IntArray, Obs
from gameagent.envs.base import VectorEnv
from gameagent.evaluation.protocol import play
from gameagent.policies.actors import Actor, ExpertActor


class Spy(Actor):
    """Notes what the first observation of each episode was."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: dict[int, float] = {}
        self.fresh: dict[int, int] = {}

    def begin(self, rows: np.ndarray, seeds: list[int]) -> None:
        super().begin(rows, seeds)
        self.fresh |= {int(i): seeds[i] for i in np.flatnonzero(rows)}

    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        for row, seed in self.fresh.items():
            assert obs["features"][row, 0] == 0, "an episode begins at its beginning"
            self.starts[seed] = float(obs["features"][row, 1])
        self.fresh = {}
        return np.full(env.num_envs, 3)


def test_the_start_of_an_episode_is_a_function_of_its_seed_alone() -> None:
    seen = []
    for num_envs in (1, 4, 30):
        spy = Spy()
        play(Lottery().make(num_envs, seed=num_envs), spy, range(30))
        seen.append(spy.starts)
    assert seen[0] == seen[1] == seen[2]
    assert len(set(seen[0].values())) > 10


def test_an_episode_keeps_its_result_whatever_is_played_before_it() -> None:
    env = Lottery().make(3)
    alone = play(env, ExpertActor(), [77])
    later = play(env, ExpertActor(), [5, 6, 7, 8, 9, 77])
    assert later[-1] == alone[0]
