"""Trap 16: what a policy prepares once a sample, and a rollout then keeps, is as small as the observation itself."""

from __future__ import annotations

import pytest
import torch

from gameagent.contract import ActionSpace, ObsSpace
from gameagent.nets.encoders import Auto, Nature, Tiny
from gameagent.policies.actor_critic import ActorCritic


@pytest.mark.parametrize("encoder", [Auto(), Tiny(), Nature()])
def test_prepared_frames_are_bytes_and_no_more_of_them(encoder: Auto | Tiny | Nature) -> None:
    space = ObsSpace(frame=(112, 112, 3))
    policy = ActorCritic(encoder=encoder).build(space, ActionSpace({"button": ("a", "b")}))
    frames = torch.randint(0, 256, (2, 112, 112, 3), dtype=torch.uint8)
    (prepared,) = policy.prepare({"frame": frames}).values()
    assert prepared.dtype == torch.uint8
    assert prepared.nbytes == frames.nbytes
