"""Reward functions against numbers worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gameagent.contract import RewardContext
from gameagent.rewards.base import Reward
from gameagent.rewards.catch import CatchReward
from gameagent.rewards.own import OwnReward


def context(previous: dict[str, list[float]] | None = None, **signals: list[float]) -> RewardContext:
    return RewardContext(
        {k: np.array(v, float) for k, v in signals.items()},
        {k: np.array(v, float) for k, v in (previous or {}).items()},
    )


def test_catch_adds_apples_and_bombs() -> None:
    total, terms = CatchReward()(context(apples=[2, 0, 1], bombs=[0, 1, 2]))
    np.testing.assert_array_equal(total, [2, -1.5, -2])
    np.testing.assert_array_equal(terms["apple"], [2, 0, 1])
    np.testing.assert_array_equal(terms["bomb"], [0, -1.5, -3])
    assert list(terms) == ["apple", "bomb"]


def test_catch_weights_are_its_fields() -> None:
    total, _ = CatchReward(apple=3, bomb=-10)(context(apples=[1], bombs=[1]))
    assert total[0] == -7


def test_tracking_pays_for_coming_closer() -> None:
    total, terms = CatchReward(tracking=2.0)(context({"distance": [50, 10]}, distance=[40, 30]))
    np.testing.assert_allclose(terms["tracking"], [0.2, -0.4])
    np.testing.assert_allclose(total, [0.2, -0.4])


@given(st.lists(st.floats(0, 112), min_size=2, max_size=30))
def test_tracking_is_potential_based_a_way_there_and_back_pays_nothing(path: list[float]) -> None:
    reward, loop = CatchReward(tracking=1.0), [*path, path[0]]
    gained = sum(reward(context({"distance": [a]}, distance=[b]))[0][0] for a, b in pairwise(loop))
    assert gained == pytest.approx(0.0, abs=1e-9)


def test_own_is_the_change_of_score() -> None:
    total, terms = OwnReward()(context({"score": [1, 5]}, score=[4, 5]))
    np.testing.assert_array_equal(total, [3, 0])
    np.testing.assert_array_equal(terms["score"], [3, 0])


@pytest.mark.parametrize("reward", [CatchReward(), CatchReward(tracking=1.0), OwnReward()])
def test_missing_signals_skip_their_terms(reward: Reward) -> None:
    total, terms = reward(context(hp=[1, 2]))
    np.testing.assert_array_equal(total, [0, 0])
    assert terms == {}


@pytest.mark.parametrize("reward", [CatchReward(tracking=0.3), OwnReward()])
def test_terms_add_up_and_nothing_is_shared_with_the_signals(reward: Reward) -> None:
    ctx = context({"score": [0], "distance": [9]}, score=[2], apples=[1], bombs=[1], distance=[4])
    kept = {k: v.copy() for k, v in ctx.signals.items()}
    total, terms = reward(ctx)
    np.testing.assert_allclose(total, sum(terms.values()))
    for array in (total, *terms.values()):
        array += 100
    for name, value in ctx.signals.items():
        np.testing.assert_array_equal(value, kept[name])
    np.testing.assert_allclose(reward(ctx)[0], total - 100)
