"""Trap 3: with NEXT_STEP autoreset one step after every episode ignores its action; such environments are refused."""

from __future__ import annotations

import pytest
import torch
from tests.learn.fakes import FakeEnv, small_policy, train

from gameagent.envs.base import AutoresetMode
from gameagent.learn.guard import FiniteGuard
from gameagent.learn.ppo import PPO
from gameagent.learn.rollout import Collector


def test_every_stored_action_had_its_effect() -> None:
    env = FakeEnv(num_envs=3, limit=2, reward=0.0, bonus=1.0)
    guard = FiniteGuard(strict=True)
    play = Collector(env.make(), steps=50, device=torch.device("cpu"), seed=0, guard=guard)
    rollout = play.collect(small_policy(env))
    assert torch.equal(rollout.reward, (rollout.action == 1).float())
    assert play.env.steps_taken == 50  # type: ignore[attr-defined]


def test_next_step_autoreset_is_refused_before_training() -> None:
    with pytest.raises(ValueError, match="SAME_STEP"):
        train(PPO(total_steps=10), FakeEnv(mode=AutoresetMode.NEXT_STEP))
