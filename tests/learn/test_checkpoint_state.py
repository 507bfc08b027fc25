"""Any environment state survives a checkpoint file that is loaded without unpickling code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gameagent.learn.checkpoint_state import pack, unpack

RECORD = np.dtype([("x", "f8"), ("items", "u2", (3,)), ("on", "?")])


def through_file(state: Any, tmp_path: Path) -> Any:
    torch.save(pack(state), tmp_path / "state.pt")
    return unpack(torch.load(tmp_path / "state.pt", weights_only=True))


def test_everything_that_a_state_may_hold_comes_back_equal(tmp_path: Path) -> None:
    record = np.zeros(2, RECORD)
    record["items"][1] = (1, 65535, 3)
    state = {
        "record": record,
        "rng": np.random.default_rng(5).bit_generator.state,
        "key": np.uint64(2**64 - 1),
        "empty": np.zeros((0, 3), np.int32),
        "frame": np.arange(12, dtype=np.uint8).reshape(2, 3, 2)[::-1],
        "save": b"\x00\xff",
        "names": ["a", None, (1, 2.5)],
    }
    found = through_file(state, tmp_path)
    assert found["record"].dtype == RECORD
    np.testing.assert_array_equal(found["record"], record)
    assert found["rng"] == state["rng"]
    assert found["key"] == state["key"]
    assert found["key"].dtype == np.uint64
    assert found["empty"].shape == (0, 3)
    np.testing.assert_array_equal(found["frame"], state["frame"])
    assert found["save"] == state["save"]
    assert found["names"] == state["names"]


@given(
    hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, min_side=0))
    | st.integers()
    | st.floats(allow_nan=False)
)
def test_arrays_of_any_type_come_back(value: Any) -> None:
    found = unpack(pack(value))
    np.testing.assert_array_equal(found, value)
    assert np.asarray(found).dtype == np.asarray(value).dtype


def test_restored_arrays_can_be_written() -> None:
    found = unpack(pack(np.zeros(3)))
    found[0] = 1


def test_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="array of objects"):
        pack({"x": np.array([object()])})
    with pytest.raises(TypeError, match="may not hold a set"):
        pack({"x": {1}})
