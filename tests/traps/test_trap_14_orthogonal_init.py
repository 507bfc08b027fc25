"""Trap 14: orthogonal weights of gains √2 (hidden), 0.01 (policy head), 1 (value head): the first policy is uniform."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gameagent.contract import ActionSpace, ObsSpace
from gameagent.nets.encoders import Auto, Mlp, Nature, Tiny
from gameagent.policies.actor_critic import ActorCritic, ActorCriticPolicy
from gameagent.policies.onnx import random_obs

SPACE = ObsSpace(frame=(56, 56, 3), features=(5,))
ACTIONS = ActionSpace(move_labels=("left", "stay", "right"), act_labels=("wait", "dash"))


@pytest.fixture(params=[Auto(), Tiny(), Nature(), Mlp()], ids=lambda e: type(e).__name__)
def policy(request: pytest.FixtureRequest) -> ActorCriticPolicy:
    torch.manual_seed(0)
    return ActorCritic(encoder=request.param).build(SPACE, ACTIONS)


def test_every_layer_has_the_gain_of_its_place(policy: ActorCriticPolicy) -> None:
    gains = {policy.actor_head: 0.01, policy.critic_head: 1.0}
    layers = [m for m in policy.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    assert set(gains) < set(layers)
    for layer in layers:
        values = torch.linalg.svdvals(layer.weight.detach().flatten(1))
        expected = torch.full_like(values, gains.get(layer, math.sqrt(2)))
        torch.testing.assert_close(values, expected, rtol=1e-3, atol=0, msg=str(layer))
        assert not layer.bias.any()


def test_the_first_policy_has_the_entropy_of_a_uniform_one(policy: ActorCriticPolicy) -> None:
    obs = random_obs(SPACE, 64, seed=0)
    distribution, _ = policy(policy.prepare({name: torch.from_numpy(a) for name, a in obs.items()}))
    assert distribution.entropy().min().item() == pytest.approx(math.log(ACTIONS.n), abs=1e-3)
