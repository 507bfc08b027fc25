"""Trap 20: one seed for all environments makes a batch of N no better than one of 1."""

from __future__ import annotations

import torch
from tests.learn.fakes import Ending, FakeEnv, small_policy

from gameagent.learn.guard import FiniteGuard
from gameagent.learn.rollout import Collector


def test_first_observations_and_actions_differ_from_env_to_env() -> None:
    env = FakeEnv(num_envs=8, ending=Ending.never)
    guard = FiniteGuard(strict=True)
    play = Collector(env.make(), steps=32, device=torch.device("cpu"), seed=5, guard=guard)
    rollout = play.collect(small_policy(env))
    assert play.env.seeds == list(range(5, 13))  # type: ignore[attr-defined]
    assert len(set(rollout.obs["features"][0, :, 1].tolist())) == 8
    assert len({tuple(row) for row in rollout.action.T.tolist()}) == 8


def test_another_seed_plays_differently_and_the_same_seed_the_same() -> None:
    env = FakeEnv(num_envs=2)

    def actions(seed: int) -> torch.Tensor:
        torch.manual_seed(0)
        guard = FiniteGuard(strict=True)
        play = Collector(env.make(), steps=32, device=torch.device("cpu"), seed=seed, guard=guard)
        return play.collect(small_policy(env)).action.clone()

    assert torch.equal(actions(0), actions(0))
    assert not torch.equal(actions(0), actions(1))
