"""ONNX files compute what the policy does, describe themselves, and appear only once that was shown."""

from __future__ import annotations

import copy
import logging
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from gameagent.component import component
from gameagent.contract import ActionSpace, ContractError, Obs, ObsPart, ObsSpace, Part
from gameagent.nets.encoders import Auto, Mlp, Nature, Tiny
from gameagent.policies import onnx as module
from gameagent.policies.actor_critic import ActorCritic, ActorCriticPolicy
from gameagent.policies.base import Inference, Policy
from gameagent.policies.bundle import load_policy, read_card
from gameagent.policies.card import PolicyFileError, PolicyNotFoundError, describe
from gameagent.policies.onnx import ExportError, OnnxPolicy, export_onnx, random_obs, verify_onnx

FRAME = ObsSpace(frame=(56, 56, 3))
BOTH = ObsSpace(frame=(58, 61, 3), features=(5,))
ACTIONS = ActionSpace(move_labels=("left", "stay", "right"), act_labels=("wait", "dash"))
FILE = Path("policy.onnx")


def trained(policy: Policy) -> Policy:
    """Far from its initial weights, so that logits and values differ from one observation to the next."""
    with torch.no_grad():
        for p in policy.parameters():
            p += 0.1 * torch.randn_like(p)
    return policy


def frame_policy() -> Policy:
    return trained(ActorCritic(encoder=Tiny(channels=(8, 16, 16), width=16)).build(FRAME, ACTIONS))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Policy, Path]:
    torch.manual_seed(0)
    policy = frame_policy()
    path = tmp_path_factory.mktemp("onnx") / "policy.onnx"
    export_onnx(policy, path, provenance={"experiment": "catch", "seed": 3}, evaluation={"argmax": {"score": 1.5}})
    return policy, path


@pytest.mark.parametrize("batch", [1, 2, 7, 64])
def test_logits_and_value_equal_torch_at_any_batch_size(exported: tuple[Policy, Path], batch: int) -> None:
    policy, path = exported
    obs = random_obs(FRAME, batch, seed=1)
    expected, found = policy.infer(obs), OnnxPolicy(path).infer(obs)
    assert [a.shape for a in found.logits] == [(batch, 3), (batch, 2)]
    for a, b in zip(expected.logits, found.logits, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-4, atol=1e-4)
    assert verify_onnx(policy, path, obs) <= 1e-4


def test_inputs_and_outputs_have_the_promised_names_and_types(exported: tuple[Policy, Path]) -> None:
    graph = onnx.load(exported[1]).graph
    types = {v.name: v.type.tensor_type for v in [*graph.input, *graph.output]}
    shapes = {name: [d.dim_param or d.dim_value for d in t.shape.dim] for name, t in types.items()}
    assert [v.name for v in graph.input] == ["frame"]
    assert [v.name for v in graph.output] == ["logits_move", "logits_act", "action", "value"]
    assert shapes["frame"][1:] == [56, 56, 3]
    assert all(isinstance(shape[0], str) for shape in shapes.values())
    assert types["frame"].elem_type == onnx.TensorProto.UINT8
    assert types["action"].elem_type == onnx.TensorProto.INT64
    assert {types[n].elem_type for n in ("logits_move", "logits_act", "value")} == {onnx.TensorProto.FLOAT}


def test_action_is_the_most_likely_flat_id(exported: tuple[Policy, Path]) -> None:
    policy, path = exported
    obs = random_obs(FRAME, 32, seed=2)
    *_, action, _ = OnnxPolicy(path).run(obs)
    parts = np.stack([head.argmax(-1) for head in policy.infer(obs).logits], -1)
    np.testing.assert_array_equal(action, ACTIONS.flatten(parts))


def test_the_contract_travels_in_the_file(exported: tuple[Policy, Path]) -> None:
    policy, path = exported
    found = load_policy(path)
    assert isinstance(found, OnnxPolicy)
    assert (found.obs_space, found.action_space) == (FRAME, ACTIONS)
    card = read_card(path)
    assert {key: card[key] for key in describe(policy)} == describe(policy)
    assert card["provenance"] == {"experiment": "catch", "seed": 3}
    assert card["evaluation"] == {"argmax": {"score": 1.5}}


def test_one_file_and_nothing_beside_it(exported: tuple[Policy, Path]) -> None:
    assert [p.name for p in exported[1].parent.iterdir()] == ["policy.onnx"]


def test_padding_and_two_layouts_export_with_the_preprocessing_inside() -> None:
    architecture = ActorCritic(encoder=Auto(width=16), critic_encoder=Nature(width=16))
    assert export_onnx(trained(architecture.build(BOTH, ACTIONS)), FILE) <= 1e-4
    assert [i.name for i in onnx.load(FILE).graph.input] == ["frame", "features"]


def test_a_policy_of_half_precision_exports_in_float32() -> None:
    policy = frame_policy().bfloat16()
    assert export_onnx(policy, FILE) <= 1e-4
    assert next(policy.parameters()).dtype == torch.bfloat16
    assert {t.data_type for t in onnx.load(FILE).graph.initializer} <= {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64}


def test_export_leaves_the_policy_alone_and_says_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    policy = frame_policy().train()
    before = {name: t.clone() for name, t in policy.state_dict().items()}
    with caplog.at_level(logging.INFO):
        export_onnx(policy, FILE)
    assert policy.training
    assert all(torch.equal(t, before[name]) for name, t in policy.state_dict().items())
    assert (*capfd.readouterr(), [r for r in caplog.records if r.levelno >= logging.INFO], list(recwarn)) == (
        "",
        "",
        [],
        [],
    )


def test_a_file_that_computes_something_else_never_gets_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = module._trace
    monkeypatch.setattr(module, "_trace", lambda policy, *rest: trace(trained(copy.deepcopy(policy)), *rest))
    FILE.write_bytes(b"the old file")
    with pytest.raises(ExportError, match=r"computes something else at batch 1: logits differ by"):
        export_onnx(frame_policy(), FILE)
    assert FILE.read_bytes() == b"the old file"
    assert list(Path().iterdir()) == [FILE]


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_nan_in_any_output_is_a_difference(broken: int) -> None:
    outputs = [np.zeros((1, 3), np.float32), np.zeros((1, 2), np.float32), np.zeros(1, np.float32)]
    expected = Inference(outputs[:2], outputs[2])
    found = [a.copy() for a in outputs]
    found[broken][...] = np.nan
    with pytest.raises(ExportError, match="computes something else at batch 1.* nan"):
        module._compare(expected, [*found[:2], np.zeros(1, np.int64), found[2]], ACTIONS, 1)


class _NanHead(ActorCriticPolicy):
    """Its graph gives NaN for the last head, which torch itself does not."""

    def infer(self, obs: Obs) -> Inference:
        found = super().infer(obs)
        return Inference([np.nan_to_num(a, nan=-0.69) for a in found.logits], found.value)


def test_an_export_with_nan_in_its_second_head_never_gets_its_name() -> None:
    policy = _NanHead(ActorCritic(encoder=Mlp(hidden=(8,))), ObsSpace(features=(5,)), ACTIONS)
    bias = max((p for n, p in policy.named_parameters() if p.shape == (5,)), key=torch.numel)
    with torch.no_grad():
        bias[3:] = torch.nan  # 3 moves, then 2 acts
    assert [np.isnan(a).any() for a in ActorCriticPolicy.infer(policy, random_obs(policy.obs_space, 1, 0)).logits] == [
        False,
        True,
    ]
    with pytest.raises(ExportError, match="logits differ by nan"):
        export_onnx(policy, FILE)
    assert not FILE.exists()


def test_verifying_another_policys_file_fails(exported: tuple[Policy, Path]) -> None:
    torch.manual_seed(1)
    with pytest.raises(ExportError, match="computes something else"):
        verify_onnx(frame_policy(), exported[1], random_obs(FRAME, 3, seed=0))


class _Untraceable(ActorCriticPolicy):
    def value(self, prepared: dict[str, torch.Tensor]) -> torch.Tensor:
        value = super().value(prepared)
        return value if value.sum() > 0 else -value


@component
class Untraceable(ActorCritic):
    """A policy whose network does what no graph can."""

    def build(self, obs_space: ObsSpace, action_space: ActionSpace) -> ActorCriticPolicy:
        return _Untraceable(self, obs_space, action_space)


def test_a_network_that_can_not_be_traced_says_so() -> None:
    with pytest.raises(ExportError, match=r"_Untraceable can't be exported to ONNX \(opset 20\)"):
        export_onnx(Untraceable().build(ObsSpace(features=(5,)), ACTIONS), FILE)
    assert not FILE.exists()


def test_text_and_odd_names_are_refused() -> None:
    space = ObsSpace({"features": ObsPart(Part.features, (5,)), "text": ObsPart(Part.text, (), max_chars=9)})
    with pytest.raises(ExportError, match="policies that read text"):
        export_onnx(ActorCritic(encoder=Mlp()).build(space, ACTIONS), FILE)
    with pytest.raises(ExportError, match=r"ends in \.onnx, got policy\.bin"):
        export_onnx(frame_policy(), "policy.bin")


@pytest.mark.parametrize("kept", [0, 0.5, 0.99])
def test_a_truncated_file_is_called_damaged(exported: tuple[Policy, Path], kept: float) -> None:
    data = exported[1].read_bytes()
    FILE.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(PolicyFileError, match=r"policy\.onnx .*(damaged|not written by gameagent)"):
        load_policy(FILE)


def test_somebody_elses_file_is_called_foreign(exported: tuple[Policy, Path]) -> None:
    model = onnx.load(exported[1])
    del model.metadata_props[:]
    onnx.save(model, FILE)
    with pytest.raises(PolicyFileError, match="not written by gameagent"):
        load_policy(FILE)
    with pytest.raises(PolicyNotFoundError, match=r"no ONNX file at nowhere\.onnx"):
        OnnxPolicy("nowhere.onnx")


def test_an_observation_that_does_not_fit_is_refused(exported: tuple[Policy, Path]) -> None:
    with pytest.raises(ContractError, match="of uint8, got shape"):
        OnnxPolicy(exported[1]).infer({"frame": np.zeros((1, 56, 56, 3), np.float32)})
