"""Properties of spaces, signals and their saved forms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gameagent.contract import (
    CONTRACT_VERSION,
    SIGNALS,
    ActionSpace,
    ContractError,
    ObsPart,
    ObsSpace,
    Part,
    RewardContext,
    check_spaces,
)

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=6)
heads = st.dictionaries(names, st.lists(names, min_size=1, max_size=5, unique=True), min_size=1, max_size=4)
action_spaces = heads.map(ActionSpace)
sizes = st.integers(1, 200)


@st.composite
def obs_spaces(draw: st.DrawFn) -> ObsSpace:
    parts: dict[str, ObsPart] = {}
    if draw(st.booleans()):
        parts["frame"] = ObsPart(Part.frame, (draw(sizes), draw(sizes), draw(st.integers(1, 12))))
    if draw(st.booleans()):
        n = draw(st.integers(1, 6))
        parts["features"] = ObsPart(Part.features, (n,), names=draw(st.sampled_from([(), tuple("abcdef"[:n])])))
    if draw(st.booleans()):
        parts["audio"] = ObsPart(Part.audio, tuple(draw(st.lists(sizes, min_size=1, max_size=2))))
    if draw(st.booleans()) or not parts:
        parts["text"] = ObsPart(Part.text, (), max_chars=draw(sizes))
    return ObsSpace(parts)


@given(action_spaces)
def test_flat_ids_and_parts_are_one_to_one(space: ActionSpace) -> None:
    flat = np.arange(space.n)
    parts = space.unflatten(flat)
    assert parts.shape == (space.n, len(space.heads))
    assert len({tuple(p) for p in parts.tolist()}) == space.n
    np.testing.assert_array_equal(space.flatten(parts), flat)


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_flat_id_is_move_times_acts_plus_act(moves: int, acts: int, data: st.DataObject) -> None:
    space = ActionSpace(move_labels=[f"m{i}" for i in range(moves)], act_labels=[f"a{i}" for i in range(acts)])
    move, act = data.draw(st.integers(0, moves - 1)), data.draw(st.integers(0, acts - 1))
    assert space.flatten(np.array([move, act])) == move * acts + act
    assert space.label(move * acts + act) == f"m{move}+a{act}"
    assert space.labels()[move * acts + act] == f"m{move}+a{act}"


@given(action_spaces)
def test_flattening_keeps_every_leading_axis(space: ActionSpace) -> None:
    flat = np.random.default_rng(0).integers(0, space.n, (2, 3, 4))
    assert space.unflatten(flat).shape == (2, 3, 4, len(space.heads))
    np.testing.assert_array_equal(space.flatten(space.unflatten(flat)), flat)


@given(action_spaces, st.integers())
def test_ids_out_of_range_are_refused(space: ActionSpace, flat: int) -> None:
    if not 0 <= flat < space.n and abs(flat) < 2**62:
        with pytest.raises(ContractError, match=f"0 to {space.n - 1}"):
            space.unflatten(flat)


@given(action_spaces)
def test_parts_out_of_range_are_refused(space: ActionSpace) -> None:
    with pytest.raises(ContractError, match="ids below"):
        space.flatten(np.array(space.sizes))
    with pytest.raises(ContractError, match="ids below"):
        space.flatten(np.full(len(space.heads), -1))
    with pytest.raises(ContractError, match="last axis"):
        space.flatten(np.zeros(len(space.heads) + 1))


@given(action_spaces)
def test_action_space_survives_json(space: ActionSpace) -> None:
    again = ActionSpace.from_json(space.to_json())
    assert again == space
    assert hash(again) == hash(space)
    assert list(again.heads) == list(space.heads)


@given(obs_spaces())
def test_obs_space_survives_json(space: ObsSpace) -> None:
    again = ObsSpace.from_json(space.to_json())
    assert again == space
    assert hash(again) == hash(space)
    assert list(again) == list(space)


def test_head_order_tells_spaces_apart() -> None:
    one = ActionSpace({"a": ("x", "y"), "b": ("z", "w")})
    other = ActionSpace({"b": ("z", "w"), "a": ("x", "y")})
    assert one != other
    with pytest.raises(ContractError, match="(?s)weights.*actions.*expected.*found"):
        check_spaces("weights", (ObsSpace(frame=(8, 8, 3)), one), (ObsSpace(frame=(8, 8, 3)), other))


def test_spaces_that_look_alike_are_told_apart_in_the_message() -> None:
    one, other = ActionSpace({"a": ("x", "y")}), ActionSpace({"a": ("x", "z")})
    assert repr(one) == repr(other)
    with pytest.raises(ContractError, match='(?s)"x", "y".*"x", "z"'):
        check_spaces("weights", (ObsSpace(features=(3,)), one), (ObsSpace(features=(3,)), other))


def test_mismatched_observations_name_both_sides() -> None:
    actions = ActionSpace(move_labels=("a",))
    with pytest.raises(ContractError, match=r"policy\.onnx: observations.*frame=\(56, 56, 3\).*features=\(4,\)"):
        check_spaces("policy.onnx", (ObsSpace(frame=(56, 56, 3)), actions), (ObsSpace(features=(4,)), actions))


def test_equal_spaces_pass() -> None:
    pair = (ObsSpace(features=(2,)), ActionSpace(move_labels=("a", "b")))
    check_spaces("x", pair, (ObsSpace(features=(2,)), ActionSpace(move_labels=("a", "b"))))


@pytest.mark.parametrize("version", [0, CONTRACT_VERSION + 1, None, "1"])
def test_other_versions_are_refused_by_number(version: object) -> None:
    for space in (ActionSpace(move_labels=("a",)), ObsSpace(features=(2,))):
        plain = space.to_dict() | {"contract": version}
        with pytest.raises(ContractError, match=f"version {version}; this gameagent reads version {CONTRACT_VERSION}"):
            type(space).from_dict(plain)


@pytest.mark.parametrize("text", ["", "[]", "null", '"x"', "{", "12"])
def test_text_that_is_no_space_is_refused(text: str) -> None:
    for cls in (ActionSpace, ObsSpace):
        with pytest.raises(ContractError, match="not JSON|not a JSON object"):
            cls.from_json(text)


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"heads": None},
        {"heads": ["left"]},
        {"heads": {"move": []}},
        {"heads": {"move": ["a", "a"]}},
        {"heads": {"move": 3}},
        {"heads": {"move": "abc"}},
        {"heads": {"move": ["a"]}, "button_masks": [1, 2]},
        {"heads": {"move": ["a"]}, "button_masks": ["x"]},
        {"heads": {"move": ["a"]}, "button_masks": 3},
    ],
)
def test_malformed_action_spaces_are_contract_errors(plain: dict[str, object]) -> None:
    with pytest.raises(ContractError):
        ActionSpace.from_dict({"contract": CONTRACT_VERSION, **plain})


@pytest.mark.parametrize(
    "parts",
    [
        None,
        {},
        [],
        {"smell": {"shape": [1]}},
        {"frame": {"shape": [8, 8]}},
        {"frame": {}},
        {"features": {"shape": [0]}},
        {"features": {"shape": "ab"}},
        {"text": 3},
    ],
)
def test_malformed_obs_spaces_are_contract_errors(parts: object) -> None:
    with pytest.raises(ContractError):
        ObsSpace.from_dict({"contract": CONTRACT_VERSION, "parts": parts})


def test_constructor_says_what_to_give() -> None:
    with pytest.raises(ContractError, match="move_labels"):
        ActionSpace()
    with pytest.raises(ContractError, match="move_labels"):
        ActionSpace({"a": ("x",)}, move_labels=("y",))
    with pytest.raises(ContractError, match="2 masks"):
        ActionSpace(move_labels=("a", "b"), act_labels=("c",), button_masks=(1, 2))
    with pytest.raises(ContractError, match="at least one"):
        ObsSpace()
    with pytest.raises(ContractError, match="smell"):
        ObsSpace(smell=(1,))
    with pytest.raises(ContractError, match="3 names"):
        ObsPart(Part.features, (2,), names=("a", "b", "c"))


def test_button_masks_survive_json_and_tell_spaces_apart() -> None:
    space = ActionSpace({"buttons": ("none", "A")}, button_masks=(0, 1))
    assert ActionSpace.from_json(space.to_json()).button_masks == (0, 1)
    assert space != ActionSpace({"buttons": ("none", "A")}, button_masks=(0, 2))


@given(obs_spaces(), st.integers(1, 3))
def test_parts_and_gymnasium_form_are_inverse(space: ObsSpace, n: int) -> None:
    parts = space.empty(n)
    for name, part in parts.items():
        part[...] = "words" if name == "text" else 1
    again = space.as_parts(space.as_gym(parts))
    assert list(again) == list(space)
    for name, part in parts.items():
        assert again[name].dtype == part.dtype
        np.testing.assert_array_equal(again[name], part)


def test_a_single_part_travels_bare_and_texts_as_a_tuple() -> None:
    assert isinstance(ObsSpace(features=(2,)).as_gym({"features": np.zeros((1, 2), np.float32)}), np.ndarray)
    text = ObsSpace(text=ObsPart(Part.text, (), max_chars=9))
    assert text.as_gym({"text": np.array(["a", "b"], object)}) == ("a", "b")
    assert text.as_parts(("a", "b"))["text"].dtype == object


@given(obs_spaces(), st.integers(0, 2), st.integers(1, 3))
def test_empty_has_each_parts_own_dtype(space: ObsSpace, t: int, n: int) -> None:
    for name, array in space.empty(t, n).items():
        assert array.shape == (t, n, *space[name].shape)
        assert array.dtype == (object if name == "text" else space[name].dtype)


def test_order_of_parts_is_fixed() -> None:
    given_late = ObsSpace({"features": ObsPart(Part.features, (1,)), "frame": ObsPart(Part.frame, (1, 1, 1))})
    assert list(given_late) == ["frame", "features"]


def test_reward_context_computes_changes_and_skips_what_is_missing() -> None:
    ctx = RewardContext({"hp": np.array([5.0, 3.0]), "gold": np.zeros(2)}, {"hp": np.array([7.0, 3.0])})
    np.testing.assert_array_equal(ctx.delta("hp"), [-2.0, 0.0])
    assert ctx.delta("gold") is None
    assert ctx.delta("mana") is None
    assert ctx.get("mana") is None
    assert "hp" in ctx
    assert "mana" not in ctx
    assert ctx.num_envs == 2


@pytest.mark.parametrize("shape", [(3,), (), (2, 1)])
def test_signals_of_different_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ContractError, match="hp"):
        RewardContext({"hp": np.zeros(2), "gold": np.zeros(shape)})
    with pytest.raises(ContractError, match="hp"):
        RewardContext({"hp": np.zeros(2)}, {"gold": np.zeros(shape)})


def test_no_signals_is_an_empty_batch() -> None:
    assert RewardContext({}).num_envs == 0


def test_every_shared_signal_has_a_meaning() -> None:
    assert all(name.isidentifier() and meaning for name, meaning in SIGNALS.items())
    json.dumps(SIGNALS)
