"""Trap 10: before the first optimiser step of an iteration the updated policy is the one that played: ratio 1."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.learn.fakes import FakeEnv, Frames, fit
from torch import Tensor

from gameagent.component import component
from gameagent.learn.ppo import PPO
from gameagent.learn.samples import Minibatch
from gameagent.nets.encoders import Mlp, Tiny
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.base import PolicyOutput

SEEN: list[tuple[float, float]] = []


@component
class Watching(PPO):
    """Notes the largest |log ratio| and KL of each micro-batch."""

    def loss(self, new: PolicyOutput, batch: Minibatch, entropy_coef: float) -> tuple[Tensor, dict[str, Tensor]]:
        loss, terms = super().loss(new, batch, entropy_coef)
        log_ratio = new.distribution.log_prob(batch.action) - batch.log_prob
        SEEN.append((float(log_ratio.detach().abs().max()), float(terms["ppo/kl"].detach().abs().max())))
        return loss, terms


@component
class FrameEnv(FakeEnv):
    """The same game in pixels."""

    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> Frames:
        return Frames(self, num_envs or self.num_envs)


@pytest.mark.parametrize("micro", [1, 7, 16])
@pytest.mark.parametrize("env", [FakeEnv(bonus=1.0), FrameEnv(bonus=1.0)], ids=["features", "frames"])
def test_ratio_is_1_on_the_first_minibatch_of_every_iteration(env: FakeEnv, micro: int) -> None:
    SEEN.clear()
    spec: dict[str, Any] = {"rollout_steps": 8, "minibatch_size": 16, "epochs": 2, "lr": 1e-2, "lr_schedule": "fixed"}
    torch.manual_seed(0)
    encoder = Tiny(channels=(4, 4), width=16) if isinstance(env, FrameEnv) else Mlp(hidden=(16,))
    vector = env.make(1)
    policy = ActorCritic(encoder=encoder).build(vector.obs_space, vector.actions)
    fit(Watching(total_steps=96, micro_batch_size=micro, **spec).module(env=env, policy=policy, seed=0))
    pieces = -(-16 // micro)
    iterations = [SEEN[i : i + 4 * pieces] for i in range(0, len(SEEN), 4 * pieces)]
    assert len(iterations) == 3
    for iteration in iterations:
        assert max(ratio for ratio, _ in iteration[:pieces]) < 1e-5
        assert max(kl for _, kl in iteration[:pieces]) < 1e-6
        assert max(ratio for ratio, _ in iteration[pieces:]) > 1e-4
