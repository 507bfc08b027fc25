"""Transforms against plain numpy, and stored frames against live play."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gameagent.contract import ObsPart, ObsSpace, Part
from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.wrappers import Chain, Grey, Resize, Stack, frame_transforms


def frames(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def no(n: int) -> np.ndarray:
    return np.zeros(n, np.bool_)


def area_average(image: np.ndarray, size: int) -> np.ndarray:
    """The definition, slowly: each source pixel counts by the area that it shares with the new one."""

    def weights(source: int) -> np.ndarray:
        edges = np.arange(size + 1) * source / size
        low = np.maximum(edges[:-1, None], np.arange(source))
        high = np.minimum(edges[1:, None], np.arange(source) + 1)
        return np.clip(high - low, 0, None) * size / source

    return np.einsum("yh,hwc,xw->yxc", weights(image.shape[0]), image.astype(float), weights(image.shape[1]))


@pytest.mark.parametrize(("side", "size"), [(112, 56), (112, 28), (112, 16), (84, 12), (96, 4)])
@pytest.mark.parametrize("channels", [1, 3])
def test_whole_ratios_are_exact(side: int, size: int, channels: int) -> None:
    x, r = frames(3, side, side, channels), side // size
    got = Resize(ObsSpace(frame=(side, side, channels)), size)({"frame": x}, no(3))["frame"]
    sums = x.reshape(3, size, r, size, r, channels).astype(np.int64).sum((2, 4))
    np.testing.assert_array_equal(got, (sums + r * r // 2) // (r * r))


def test_the_largest_block_does_not_overflow() -> None:
    x = np.full((1, 1000, 1000, 1), 255, np.uint8)
    assert Resize(ObsSpace(frame=(1000, 1000, 1)), 1)({"frame": x}, no(1))["frame"].item() == 255


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 48), st.integers(1, 4))
def test_any_size_is_the_area_average(height: int, width: int, size: int, channels: int) -> None:
    x = frames(2, height, width, channels, seed=height * 41 + width)
    got = Resize(ObsSpace(frame=(height, width, channels)), size)({"frame": x}, no(2))["frame"]
    for i in range(2):
        assert np.abs(got[i] - area_average(x[i], size)).max() <= 0.5 + 1e-4


@given(st.integers(1, 40), st.integers(1, 48), st.integers(0, 255))
def test_resizing_keeps_an_even_colour(side: int, size: int, value: int) -> None:
    x = np.full((1, side, side, 3), value, np.uint8)
    assert (Resize(ObsSpace(frame=(side, side, 3)), size)({"frame": x}, no(1))["frame"] == value).all()


def test_grey_is_bt601_in_integers() -> None:
    x = frames(2, 5, 7, 3)
    got = Grey(ObsSpace(frame=(5, 7, 3)))({"frame": x}, no(2))["frame"]
    np.testing.assert_array_equal(got[..., 0], (x.astype(int) @ [77, 150, 29] + 128) // 256)
    assert (
        Grey(ObsSpace(frame=(1, 1, 3)))({"frame": np.full((1, 1, 1, 3), 255, np.uint8)}, no(1))["frame"].item() == 255
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_stack_holds_the_last_k_oldest_first(channels: int) -> None:
    stack = Stack(ObsSpace(frame=(4, 5, channels), features=(2,)), 3)
    assert stack.space["frame"].shape == (4, 5, 3 * channels)
    assert stack.space["features"].shape == (6,)
    seen: list[dict[str, np.ndarray]] = []
    for t in range(6):
        new = {"frame": frames(2, 4, 5, channels, seed=t), "features": np.full((2, 2), t, np.float32)}
        seen.append(new)
        out = stack(new, np.array([t == 0, t in (0, 4)]))
        ages = [max(t - 2 + k, 0) for k in range(3)]
        np.testing.assert_array_equal(out["frame"][0], np.concatenate([seen[a]["frame"][0] for a in ages], -1))
        np.testing.assert_array_equal(out["features"][0], np.repeat(ages, 2))
        ages = [max(t - 2 + k, 4 if t >= 4 else 0) for k in range(3)]
        np.testing.assert_array_equal(out["frame"][1], np.concatenate([seen[a]["frame"][1] for a in ages], -1))
        np.testing.assert_array_equal(out["features"][1], np.repeat(ages, 2))


def test_stack_of_some_rows_leaves_the_others_alone() -> None:
    stack = Stack(ObsSpace(features=(1,)), 2)
    stack({"features": np.array([[1.0], [2.0], [3.0]])}, np.ones(3, np.bool_))
    out = stack({"features": np.array([[9.0]])}, np.ones(1, np.bool_), np.array([1]))
    np.testing.assert_array_equal(out["features"], [[9, 9]])
    np.testing.assert_array_equal(stack.peek({"features": np.zeros((3, 1))})["features"], [[1, 1], [9, 9], [3, 3]])


def test_feature_names_say_their_age() -> None:
    stack = Stack(ObsSpace(features=ObsPart(Part.features, (2,), names=("x", "y"))), 2)
    assert stack.space["features"].names == ("x[-1]", "y[-1]", "x[0]", "y[0]")


def test_stack_refuses_another_batch_and_another_state() -> None:
    stack = Stack(ObsSpace(features=(1,)), 2)
    with pytest.raises(ValueError, match="another batch"):
        stack({"features": np.zeros((2, 1), np.float32)}, no(2))
    stack({"features": np.zeros((2, 1), np.float32)}, np.ones(2, np.bool_))
    with pytest.raises(ValueError, match="another batch"):
        stack({"features": np.zeros((3, 1), np.float32)}, no(3))
    with pytest.raises(ValueError, match="frame_stack differs"):
        Stack(ObsSpace(features=(1,)), 3).set_state(stack.get_state())
    with pytest.raises(ValueError, match="1 transforms for an env that has 0"):
        Chain(stack.space).set_state(Chain(stack.space, [stack]).get_state())


def test_unsuitable_observations_are_refused() -> None:
    features, text = ObsSpace(features=(3,)), ObsSpace(text=ObsPart(Part.text, (), max_chars=9))
    with pytest.raises(ValueError, match="grey works on frames"):
        Grey(features)
    with pytest.raises(ValueError, match="3 channels"):
        Grey(ObsSpace(frame=(4, 4, 1)))
    with pytest.raises(ValueError, match="frame_size works on frames"):
        Resize(features, 4)
    with pytest.raises(ValueError, match="only"):
        Stack(text, 2)


def test_chain_is_grey_then_resize_then_stack_and_skips_what_does_not_apply() -> None:
    space = ObsSpace(frame=(8, 8, 3), features=(2,))
    made = frame_transforms(space, size=4, grey=True, stack=2)
    assert [type(t) for t in made] == [Grey, Resize, Stack]
    assert made[-1].space["frame"].shape == (4, 4, 2)
    assert frame_transforms(space, size=8, grey=False, stack=1) == []
    assert frame_transforms(ObsSpace(features=(2,)), size=4, grey=True, stack=1) == []


def test_transforms_never_return_what_they_were_given() -> None:
    x = {"frame": frames(2, 8, 8, 3)}
    for transform in frame_transforms(ObsSpace(frame=(8, 8, 3)), size=4, grey=False, stack=2):
        out = transform(x, np.ones(2, np.bool_))
        assert not np.shares_memory(out["frame"], x["frame"])
        x = out


@pytest.mark.parametrize(
    "fields",
    [
        {"frame_skip": 4, "frame_size": 56},
        {"frame_skip": 3, "frame_size": 56, "frame_stack": 3},
        {"frame_skip": 1, "frame_size": 40, "grey": True, "frame_stack": 2},
    ],
)
def test_stored_raw_frames_become_exactly_what_the_policy_sees_live(fields: dict[str, Any]) -> None:
    env = MiniEnv(knobs={"lives": 1, "bombs": 0.6}, **fields)
    skip = env.frame_skip
    live, stored = env.make(1, 3), env.raw().make(1, 3)
    chain = Chain(stored.obs_space, env.transforms(stored.obs_space))
    assert chain.space == live.obs_space == env.obs_space
    seen, _ = live.reset(seed=3)
    frame, _ = stored.reset(seed=3)
    rng, fresh, episodes = np.random.default_rng(0), True, 0
    while episodes < 3:
        again = chain({"frame": frame}, np.array([fresh]))["frame"]
        np.testing.assert_array_equal(again, seen)
        action = rng.integers(0, 6, 1)
        seen, _, terminated, _, _ = live.step(action)
        for _ in range(skip):
            frame, _, ended, _, _ = stored.step(action)
            if ended[0]:  # the live env idles for the rest of the skip, the stored one has begun its next episode
                break
        assert ended[0] == terminated[0]
        fresh = bool(ended[0])
        episodes += fresh
