"""What every policy that ships must do, whatever it is made of and whatever it observes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gameagent.catalog import CATALOG, Entry
from gameagent.component import from_config, locate, to_config
from gameagent.contract import ActionSpace, ObsSpace
from gameagent.nets.base import Encoder
from gameagent.policies.base import Architecture, Policy
from gameagent.policies.bundle import load_policy, save_policy
from gameagent.policies.onnx import export_onnx, random_obs

SPACES = {
    "frame": ObsSpace(frame=(56, 56, 6)),
    "features": ObsSpace(features=(5,)),
    "both": ObsSpace(frame=(112, 112, 3), features=(5,)),
}
ACTIONS = {
    "one head": ActionSpace({"button": ("none", "a", "b", "start")}),
    "two heads": ActionSpace(move_labels=("left", "stay", "right"), act_labels=("wait", "dash")),
}
READS = {"mlp": ("features", "both"), "tiny": ("frame", "both"), "nature": ("frame", "both")}
"""Spaces that hold what an encoder reads; the others read any."""


def make(entry: Entry, **fields: Any) -> Any:
    return locate(entry.target.replace(":", "."))(**entry.preset, **fields)


ARCHITECTURES = [e for e in CATALOG if e.group == "policy"]
ENCODERS = [e for e in CATALOG if e.group == "policy/encoder"]
CASES = [
    pytest.param(architecture, encoder, space, id=f"{architecture.option}-{encoder.option}-{space}")
    for architecture in ARCHITECTURES
    for encoder in ENCODERS
    for space in SPACES
    if space in READS.get(encoder.option, SPACES)
]
every_policy = pytest.mark.parametrize(("architecture", "encoder", "space"), CASES)


def build(architecture: Entry, encoder: Entry, space: str, actions: str = "two heads") -> Policy:
    torch.manual_seed(0)
    made: Architecture = make(architecture, encoder=make(encoder))
    return made.build(SPACES[space], ACTIONS[actions])


def tensors(space: str, count: int) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(a) for name, a in random_obs(SPACES[space], count, seed=0).items()}


@every_policy
@pytest.mark.parametrize("actions", ACTIONS)
def test_outputs_have_the_contracts_shapes(architecture: Entry, encoder: Entry, space: str, actions: str) -> None:
    policy = build(architecture, encoder, space, actions)
    distribution, value = policy(policy.prepare(tensors(space, 3)))
    assert distribution.sizes == ACTIONS[actions].sizes
    assert distribution.log_probs.shape == (3, sum(ACTIONS[actions].sizes))
    assert value.shape == (3,)
    assert {distribution.log_probs.dtype, value.dtype} == {torch.float32}
    assert torch.isfinite(distribution.log_probs).all()
    assert torch.isfinite(value).all()


@every_policy
def test_prepare_keeps_types_and_rows(architecture: Entry, encoder: Entry, space: str) -> None:
    policy = build(architecture, encoder, space)
    raw = tensors(space, 4)
    prepared = policy.prepare(raw)
    assert {p.dtype for p in prepared.values()} <= {p.dtype for p in raw.values()}
    for index in (torch.tensor([2, 0]), torch.tensor([3])):
        alone = policy.prepare({name: part[index] for name, part in raw.items()})
        assert all(torch.equal(alone[name], part[index]) for name, part in prepared.items())


@every_policy
def test_rows_do_not_see_each_other(architecture: Entry, encoder: Entry, space: str) -> None:
    policy = build(architecture, encoder, space)
    obs = random_obs(SPACES[space], 5, seed=0)
    together, alone = policy.infer(obs), policy.infer({name: a[3:4] for name, a in obs.items()})
    for a, b in zip(together.logits, alone.logits, strict=True):
        np.testing.assert_allclose(a[3:4], b, rtol=0, atol=1e-5)
    np.testing.assert_allclose(together.value[3:4], alone.value, rtol=0, atol=1e-4)


@every_policy
def test_actor_and_critic_parameters_are_disjoint_and_complete(architecture: Entry, encoder: Entry, space: str) -> None:
    policy = build(architecture, encoder, space)
    actor, critic = ({id(p) for p in ps} for ps in (policy.actor_parameters(), policy.critic_parameters()))
    assert actor
    assert critic
    assert not actor & critic
    assert actor | critic == {id(p) for p in policy.parameters() if p.requires_grad}


@every_policy
def test_every_parameter_gets_a_gradient(architecture: Entry, encoder: Entry, space: str) -> None:
    policy = build(architecture, encoder, space)
    distribution, value = policy(policy.prepare(tensors(space, 8)))
    (distribution.log_prob(torch.arange(8) % 6) * torch.arange(8)).sum().add(value.square().sum()).backward()
    assert [name for name, p in policy.named_parameters() if p.grad is None or not p.grad.any()] == []


@every_policy
def test_saved_loaded_and_exported_it_computes_the_same(architecture: Entry, encoder: Entry, space: str) -> None:
    policy = build(architecture, encoder, space)
    save_policy("policy.safetensors", policy)
    loaded = load_policy("policy.safetensors")
    assert isinstance(loaded, Policy)
    assert loaded.architecture == policy.architecture
    obs = random_obs(SPACES[space], 7, seed=1)
    np.testing.assert_array_equal(loaded.infer(obs).value, policy.infer(obs).value)
    assert export_onnx(loaded, "policy.onnx", obs=obs) <= 1e-4


@pytest.mark.parametrize("entry", [*ARCHITECTURES, *ENCODERS], ids=lambda e: f"{e.group}-{e.option}")
def test_components_survive_their_plain_form(entry: Entry) -> None:
    made = make(entry)
    assert isinstance(made, Architecture if entry.group == "policy" else Encoder)
    assert from_config(to_config(made)) == made
