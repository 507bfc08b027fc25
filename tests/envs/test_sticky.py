"""Sticky actions: how often, from which randomness, and never over a reset."""

from __future__ import annotations

import numpy as np
import pytest

from gameagent.envs.base import episode_key
from gameagent.envs.sticky import StickyActions, uniform_at


def keys(n: int, episode: int = 0) -> np.ndarray:
    return np.array([episode_key(i, episode) for i in range(n)])


def test_first_frame_plays_the_given_action() -> None:
    sticky = StickyActions(1.0, 4)
    sticky.reset(np.ones(4, np.bool_), keys(4))
    np.testing.assert_array_equal(sticky(np.array([3, 1, 2, 0])), [3, 1, 2, 0])
    np.testing.assert_array_equal(sticky(np.array([0, 0, 0, 1])), [3, 1, 2, 0])


def test_nothing_sticks_over_a_reset() -> None:
    sticky = StickyActions(1.0, 2)
    sticky.reset(np.ones(2, np.bool_), keys(2))
    sticky(np.array([1, 1]))
    sticky.reset(np.array([True, False]), keys(2, 1))
    np.testing.assert_array_equal(sticky(np.array([2, 2])), [2, 1])


def test_share_of_repeats_is_the_probability() -> None:
    n = 2000
    sticky = StickyActions(0.25, n)
    sticky.reset(np.ones(n, np.bool_), keys(n))
    sticky(np.zeros(n, np.int64))
    repeats = 0
    for t in range(1, 11):
        before = sticky.get_state()["last"]
        played = sticky(np.full(n, t))
        repeats += int((played == before).sum())
    assert repeats / (10 * n) == pytest.approx(0.25, abs=0.01)  # 3.3 standard errors


def test_draws_depend_on_key_and_frame_alone() -> None:
    many, one = StickyActions(0.5, 6), StickyActions(0.5, 1)
    many.reset(np.ones(6, np.bool_), keys(6))
    one.reset(np.ones(1, np.bool_), keys(6)[4:5])
    for t in range(50):
        assert many(np.full(6, t % 7))[4] == one(np.array([t % 7]))[0]


def test_uniform_is_splitmix64() -> None:
    # Reference value of Vigna's splitmix64.c: the first output for seed 1234567 is 6457827717110365317.
    assert uniform_at(np.array([1234567], np.uint64), np.array([0]))[0] == (6457827717110365317 >> 11) * 2.0**-53


def test_episode_keys_of_neighbours_are_unrelated() -> None:
    made = {int(episode_key(s, k)) for s in range(200) for k in range(200)}
    assert len(made) == 40_000
    bits = np.array([[int(episode_key(s, 0)) >> b & 1 for b in range(64)] for s in range(4000)])
    assert abs(bits.mean(0) - 0.5).max() < 0.04  # 5 standard errors
    assert episode_key(2**62, 10**9) > 0
