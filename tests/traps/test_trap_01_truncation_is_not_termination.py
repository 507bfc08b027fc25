"""Trap 1: a time limit is no end. One state, reward 1 for ever, cut every few steps: V must be 1/(1 − γ)."""

from __future__ import annotations

import pytest
import torch
from tests.learn.fakes import Ending, FakeEnv, train

from gameagent.learn.ppo import PPO

GAMMA = 0.8


def learned_value(ending: Ending, gae_lambda: float) -> float:
    """V of the one state after training."""
    env = FakeEnv(limit=5, ending=ending, num_envs=4, constant=True)
    spec = PPO(
        total_steps=6000,
        rollout_steps=10,
        minibatch_size=40,
        epochs=4,
        lr=1e-2,
        gamma=GAMMA,
        gae_lambda=gae_lambda,
        max_grad_norm=None,
    )
    module = train(spec, env)
    with torch.no_grad():
        return float(module.policy.value({"features": torch.zeros(1, 2)}))


@pytest.mark.parametrize("gae_lambda", [0.0, 0.95])
def test_value_under_a_time_limit_is_that_of_the_endless_game(gae_lambda: float) -> None:
    assert learned_value(Ending.truncated, gae_lambda) == pytest.approx(1 / (1 - GAMMA), rel=0.03)


def test_value_of_a_game_that_ends_is_the_finite_sum() -> None:
    # the state doesn't say how many of the five steps are left: the mean of 1, 1+γ, …, 1+…+γ^4
    expected = sum((1 - GAMMA**k) / (1 - GAMMA) for k in range(1, 6)) / 5
    assert learned_value(Ending.terminated, 1.0) == pytest.approx(expected, rel=0.03)
