"""Trap 14: Adam's ε is 1e-5, the learning rate is annealed to 0, the first policy is nearly uniform."""

from __future__ import annotations

import math

import pytest
from tests.learn.fakes import FakeEnv, small_policy, train

from gameagent.learn.ppo import PPO
from gameagent.learn.schedules import RateSchedule, annealed


def test_adam_has_ppos_epsilon() -> None:
    env = FakeEnv()
    optimizer = PPO().module(env=env, policy=small_policy(env), seed=0).configure_optimizers()
    assert [group["eps"] for group in optimizer.param_groups] == [1e-5]


def test_learning_rate_ends_at_0_and_annealing_is_the_default() -> None:
    assert PPO().lr_schedule is RateSchedule.anneal
    assert annealed(3e-4, 1.0) == 0.0


def test_the_first_iteration_explores_every_action() -> None:
    module = train(PPO(total_steps=32, rollout_steps=8, minibatch_size=32, epochs=1), FakeEnv())
    assert module.last_metrics["loss/entropy"] == pytest.approx(math.log(4), abs=0.01)
