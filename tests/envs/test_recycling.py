"""Recycled arrays are new to everyone who looks: what is held, in any form, is never handed out again."""

import gc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.recycling import KEPT, Recycler


def test_memory_that_nobody_holds_is_handed_out_again() -> None:
    recycler = Recycler((4, 3), np.uint8)
    first = recycler.empty()
    address = first.ctypes.data
    del first
    gc.collect()
    assert recycler.empty().ctypes.data == address


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array,
        lambda array: array[1:],
        lambda array: array.reshape(-1)[2:5],
        lambda array: array.view(np.int8),
        lambda array: memoryview(array),
        lambda array: torch.from_numpy(array),
        lambda array: torch.from_numpy(array)[0],
        lambda array: {"frame": [array]},
    ],
    ids=["array", "slice", "view of a view", "dtype view", "memoryview", "tensor", "tensor's view", "container"],
)
def test_what_is_held_in_any_form_is_not_handed_out(hold) -> None:
    recycler = Recycler((4, 3), np.uint8)
    array = recycler.empty()
    address, kept = array.ctypes.data, hold(array)
    del array
    assert all(recycler.empty().ctypes.data != address for _ in range(3)), kept


@given(st.lists(st.booleans(), max_size=40))
def test_no_two_held_arrays_share_memory(takes: list[bool]) -> None:
    recycler, held = Recycler((5,), np.int64), []
    for number, take in enumerate(takes):
        if take or not held:
            array = recycler.empty()
            array[:] = number
            held.append((number, array))
        else:
            held.pop(0)
        array = None  # this name would hold it too
        assert all((other == value).all() for value, other in held)
    assert len(recycler._arrays) <= KEPT


def test_old_observations_of_an_env_stay_as_they_were() -> None:
    env = MiniEnv(obs="pixels").make(3, 0)
    obs, _ = env.reset(seed=0)
    seen, copies = [obs], [obs.copy()]
    for t in range(60):
        obs, _, _, _, info = env.step(np.full(3, t % 6))
        for shown in (obs, info.get("final_obs")):
            if shown is not None and t % 7 == 0:
                seen.append(shown)
                copies.append(shown.copy())
    for kept, copy in zip(seen, copies, strict=True):
        np.testing.assert_array_equal(kept, copy)
