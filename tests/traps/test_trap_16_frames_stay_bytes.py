"""Trap 16: uint8 frames stored as float32 take four times the memory."""

from __future__ import annotations

import torch
from tests.learn.fakes import FakeEnv, Frames

from gameagent.learn.guard import FiniteGuard
from gameagent.learn.rollout import Collector
from gameagent.nets.encoders import Tiny
from gameagent.policies.actor_critic import ActorCritic


def test_stored_frames_have_the_observations_type_and_size() -> None:
    env = Frames(FakeEnv(), 2)
    policy = ActorCritic(encoder=Tiny(channels=(4, 4))).build(env.obs_space, env.actions)
    guard = FiniteGuard(strict=True)
    rollout = Collector(env, steps=3, device=torch.device("cpu"), seed=0, guard=guard).collect(policy)
    stored = rollout.obs["frame"]
    assert stored.dtype == torch.uint8
    assert stored.nbytes == 4 * 2 * 36 * 36 * 3
