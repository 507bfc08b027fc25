"""The evaluation protocol: one episode a seed, whoever plays beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.evaluation.fakes import Lottery, Tilted, length_of

from gameagent.contract import IntArray, Obs
from gameagent.envs.base import VectorEnv
from gameagent.errors import EnvError
from gameagent.evaluation.protocol import EpisodeResult, Step, play
from gameagent.policies.actors import Actor, ExpertActor, PolicyActor, RandomActor
from gameagent.policies.samplers import Argmax, Temperature

SEEDS = range(500, 523)


def played(num_envs: int, actor: Actor, seeds: range = SEEDS) -> list[EpisodeResult]:
    return play(Lottery().make(num_envs), actor, seeds)


def test_results_come_in_the_order_of_the_seeds() -> None:
    got = played(4, ExpertActor())
    assert [r.seed for r in got] == list(SEEDS)
    assert [r.length for r in got] == [length_of(s) for s in SEEDS]


def test_an_episode_result_holds_score_return_terms_win_and_ending() -> None:
    (r,) = played(1, ExpertActor(), range(500, 501))
    n = length_of(500)
    assert r == EpisodeResult(500, n, 2 * n, n, {"points": 2 * n}, 1.0 if n > 2 else -1.0, True)


@pytest.mark.parametrize("num_envs", [1, 3, 23, 64])
@pytest.mark.parametrize("actor", ["expert", "argmax", "sampling", "random"])
def test_the_batch_size_changes_nothing(num_envs: int, actor: str) -> None:
    make = {
        "expert": lambda: ExpertActor(),
        "argmax": lambda: PolicyActor(Tilted(), Argmax()),
        "sampling": lambda: PolicyActor(Tilted(), Temperature(temperature=1.0), seed=3),
        "random": lambda: RandomActor(seed=3),
    }[actor]
    assert played(num_envs, make()) == played(7, make())


def test_a_player_that_samples_differs_by_its_seed_and_from_episode_to_episode() -> None:
    a, b = (played(5, RandomActor(seed=s)) for s in (0, 1))
    assert [r.score for r in a] != [r.score for r in b]
    longs = [r.score for r in a if r.length > 2]
    assert len(set(longs)) > 1


def test_an_actor_hears_of_every_episode_before_it_acts_in_it() -> None:
    class Listening(ExpertActor):
        def __init__(self) -> None:
            super().__init__()
            self.heard: list[int] = []

        def begin(self, rows: np.ndarray, seeds: list[int]) -> None:
            super().begin(rows, seeds)
            self.heard += [seeds[i] for i in np.flatnonzero(rows)]

    actor = Listening()
    played(4, actor)
    assert sorted(actor.heard) == list(SEEDS)


def test_on_step_sees_which_episode_each_env_plays_and_every_result_once() -> None:
    steps: list[Step] = []
    got = play(Lottery().make(4), ExpertActor(), SEEDS, steps.append)
    finished = {i: r for s in steps for i, r in s.finished.items()}
    assert [finished[i] for i in range(len(SEEDS))] == got
    counted = np.bincount(np.concatenate([s.episode[s.episode >= 0] for s in steps]))
    assert counted.tolist() == [r.length for r in got]
    assert steps[-1].episode.max() >= 0
    assert (steps[-1].episode == -1).any(), "the last step still plays, others are done"


def test_more_envs_than_seeds_is_fine() -> None:
    assert len(played(8, ExpertActor(), range(2))) == 2


@pytest.mark.parametrize("seeds", [[], [-1, 3]])
def test_unusable_seeds_are_refused(seeds: list[int]) -> None:
    with pytest.raises(ValueError, match="at least one seed, 0 or more"):
        play(Lottery().make(2), ExpertActor(), seeds)


def test_a_result_that_is_no_number_is_refused_with_its_seed() -> None:
    class Broken(RandomActor):
        def act(self, obs: Obs, env: VectorEnv) -> IntArray:
            env.step = poisoned(env.step)
            return super().act(obs, env)

    def poisoned(step: Any) -> Any:
        def wrong(actions: Any) -> Any:
            obs, reward, terminated, truncated, info = step(actions)
            return obs, reward * np.nan, terminated, truncated, info

        return wrong

    with pytest.raises(EnvError, match=r"summed reward of the episode from seed 500 is nan"):
        played(1, Broken(seed=0), range(500, 501))
