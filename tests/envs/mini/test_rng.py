"""The games' random numbers."""

from __future__ import annotations

import numpy as np

from gameagent.envs.mini.rng import RECORD, randint, uniform
from gameagent.envs.sticky import uniform_at


def stream(key: int) -> np.record:
    state = np.zeros(1, RECORD).view(np.recarray)
    state["key"] = key
    return state[0]


def test_uniform_is_splitmix64_of_key_and_counter() -> None:
    rng = stream(1234567)
    with np.errstate(over="ignore"):
        drawn = [uniform(rng) for _ in range(5)]
    np.testing.assert_array_equal(drawn, uniform_at(np.full(5, 1234567, np.uint64), np.arange(5)))
    assert rng.counter == 5


def test_uniform_is_even_and_randint_covers_its_range() -> None:
    rng = stream(7)
    with np.errstate(over="ignore"):
        drawn = np.array([uniform(rng) for _ in range(4000)])
        dice = np.array([randint(rng, 1, 7) for _ in range(6000)])
    assert 0 <= drawn.min() < 0.01
    assert 0.99 < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.02
    counts = np.bincount(dice, minlength=8)
    assert counts[0] == counts[7] == 0
    assert counts[1:7].min() > 880  # expected 1000, standard deviation 29
