"""Trap 2: a cut step bootstraps from V(final_obs), not from V(s_t) or the next episode's first observation."""

from __future__ import annotations

import torch
from tests.learn.fakes import LAST, FakeEnv, small_policy

from gameagent.learn.guard import FiniteGuard
from gameagent.learn.ppo import PPO
from gameagent.learn.rollout import Collector
from gameagent.policies.base import Policy


def test_advantage_at_the_cut_looks_at_the_final_observation() -> None:
    env = FakeEnv(num_envs=2, limit=3, reward=0.5)
    # V(s) is the first feature: a final observation's value stands out by LAST
    policy: Policy = small_policy(env)
    policy.value = lambda prepared: prepared["features"][:, 0]  # type: ignore[method-assign]
    module = PPO(gamma=0.5, gae_lambda=0.0, rollout_steps=4, advantage_norm="none").module(
        env=env, policy=policy, seed=0
    )
    guard = FiniteGuard(strict=True)
    rollout = Collector(env.make(), steps=4, device=torch.device("cpu"), seed=0, guard=guard).collect(policy)
    samples = module._samples(rollout)
    # counts 0 1 2 | 0: δ = 0.5 + 0.5·V(next) − V(s); the next of step 2 is the final observation, LAST + 3
    expected = [0.5 + 0.5 - 0, 0.5 + 1.0 - 1, 0.5 + 0.5 * (LAST + 3) - 2, 0.5 + 0.5 - 0]
    torch.testing.assert_close(samples.columns.advantage.view(4, 2)[:, 0], torch.tensor(expected))
