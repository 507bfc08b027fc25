"""Trap 22: what a network learns outside its weights (running statistics) is in the saved file and in the export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gameagent.component import component
from gameagent.contract import ActionSpace, ObsSpace
from gameagent.nets.base import Encoder, EncoderModule
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.base import Policy
from gameagent.policies.bundle import load_policy, save_policy
from gameagent.policies.card import describe
from gameagent.policies.onnx import OnnxPolicy, export_onnx, random_obs

SPACE = ObsSpace(features=(5,))


class NormalisedModule(EncoderModule):
    """Normalises by statistics that it gathers while in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.out_features = 8
        self.norm, self.layer = nn.BatchNorm1d(5, affine=False), nn.Linear(5, 8)

    def forward(self, prepared: dict[str, Tensor]) -> Tensor:
        return self.layer(self.norm(prepared["features"]))


@component
class Normalised(Encoder):
    """An encoder with running statistics, as a user may write one."""

    def build(self, obs_space: ObsSpace) -> EncoderModule:
        return NormalisedModule()


@pytest.fixture
def policy() -> Policy:
    """One that has seen observations far from mean 0 and variance 1."""
    torch.manual_seed(0)
    made = ActorCritic(encoder=Normalised()).build(SPACE, ActionSpace({"button": ("a", "b", "c")}))
    for _ in range(20):
        made({"features": 100 + 30 * torch.randn(64, 5)})
    return made.eval()


@pytest.fixture
def obs() -> dict[str, np.ndarray]:
    return {"features": 100 + 30 * random_obs(SPACE, 7, seed=0)["features"]}


def assert_same(found: Policy | OnnxPolicy, policy: Policy, obs: dict[str, np.ndarray]) -> None:
    a, b = policy.infer(obs), found.infer(obs)
    np.testing.assert_allclose(b.logits[0], a.logits[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(b.value, a.value, rtol=0, atol=1e-5)


def test_a_saved_policy_keeps_its_statistics(policy: Policy, obs: dict[str, np.ndarray]) -> None:
    save_policy("policy.safetensors", policy)
    assert_same(load_policy("policy.safetensors"), policy, obs)


def test_a_checkpoint_keeps_its_statistics(policy: Policy, obs: dict[str, np.ndarray]) -> None:
    torch.save({"policy": describe(policy), "policy_state": policy.state_dict()}, "last.ckpt")
    assert_same(load_policy("last.ckpt"), policy, obs)


def test_an_export_keeps_its_statistics(policy: Policy, obs: dict[str, np.ndarray]) -> None:
    save_policy("policy.safetensors", policy)
    export_onnx(load_policy("policy.safetensors"), "policy.onnx", obs=obs)
    assert_same(load_policy(Path("policy.onnx")), policy, obs)


def test_the_statistics_matter(policy: Policy, obs: dict[str, np.ndarray]) -> None:
    expected = policy.infer(obs).value
    for module in policy.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.reset_running_stats()
    assert np.abs(policy.infer(obs).value - expected).max() > 1
