"""Trap 9: the bootstrap at a time limit is no part of the reward; nothing that transforms rewards may see it."""

from __future__ import annotations

import torch
from tests.learn.fakes import FakeEnv, small_policy

from gameagent.learn.guard import FiniteGuard
from gameagent.learn.ppo import PPO
from gameagent.learn.rollout import Collector


def test_stored_rewards_are_the_environments_own_after_returns_were_computed() -> None:
    env = FakeEnv(num_envs=2, limit=3)
    policy = small_policy(env)
    guard = FiniteGuard(strict=True)
    rollout = Collector(env.make(), steps=7, device=torch.device("cpu"), seed=0, guard=guard).collect(policy)
    PPO(rollout_steps=7).module(env=env, policy=policy, seed=0)._samples(rollout)
    assert rollout.truncated.any()
    assert torch.equal(rollout.reward, torch.ones(7, 2))
