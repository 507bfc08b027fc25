"""Trap 15: unsigned bytes wrap around in subtraction. Signals and game state are 64-bit numbers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.envs.toys import SLIM, Clock

from gameagent.contract import FloatArray, RewardContext
from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.mini.game import GameError, load_game
from gameagent.envs.vector import CoreVectorEnv
from gameagent.rewards.own import OwnReward


def test_the_change_of_a_byte_is_negative_where_it_falls() -> None:
    before, after = np.array([3, 250], np.uint8), np.array([250, 3], np.uint8)
    ctx = RewardContext({"hp": after}, {"hp": before})  # type: ignore[dict-item]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(ctx.delta("hp"), [247.0, -247.0])


def test_a_core_that_reads_bytes_is_rewarded_correctly() -> None:
    class Falling(Clock):
        def context(self) -> dict[str, FloatArray]:
            return {"score": np.uint8(200) - (50 * self.time).astype(np.uint8)}  # type: ignore[dict-item]

    env = CoreVectorEnv(Falling(1, length=9), OwnReward())
    env.reset(seed=0)
    assert env.step(np.array([0]))[1][0] == -50.0


@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "i4", "u4", "u8", "f4"])
def test_short_and_unsigned_numbers_are_refused_in_a_games_state(kind: str, tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(SLIM.replace('("x", float)', f'("x", "{kind}")'))
    with pytest.raises(GameError, match="use float, int or bool"):
        load_game(str(tmp_path / "walk.py"))


def test_signals_of_a_mini_game_are_float64() -> None:
    env = MiniEnv(obs="features").make(2)
    env.reset(seed=0)
    assert {v.dtype for v in env.core.context().values()} == {np.dtype(np.float64)}
