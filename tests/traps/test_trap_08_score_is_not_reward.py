"""Trap 8: shaping changes the return, never the reported score of the game."""

from __future__ import annotations

from tests.learn.fakes import FakeEnv, train

from gameagent.learn.ppo import PPO


def test_score_and_return_are_logged_apart() -> None:
    spec = PPO(total_steps=80, rollout_steps=10, minibatch_size=40)
    plain = train(spec, FakeEnv(num_envs=4, limit=5, reward=1.0)).last_metrics
    shaped = train(spec, FakeEnv(num_envs=4, limit=5, reward=-7.0)).last_metrics
    assert (plain["train/return"], shaped["train/return"]) == (5.0, -35.0)
    assert plain["train/score"] == shaped["train/score"] == 50.0
