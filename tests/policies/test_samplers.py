"""Samplers: which actions they may choose, and how often."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from pydantic import ValidationError

from gameagent.contract import ActionSpace
from gameagent.policies.samplers import Argmax, Sampler, Temperature, TieTolerance

MOVE, ACT = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4])
JOINT = np.outer(MOVE, ACT).ravel()
MANY = 40_000


def logits(count: int = 1) -> list[np.ndarray]:
    return [np.tile(np.log(p).astype(np.float32), (count, 1)) for p in (MOVE, ACT)]


def frequencies(sampler: Sampler) -> np.ndarray:
    ids = sampler(logits(MANY), np.random.default_rng(0))
    assert ids.shape == (MANY,)
    assert ids.dtype == np.int64
    return np.bincount(ids, minlength=6) / MANY


def assert_frequencies(sampler: Sampler, expected: np.ndarray) -> None:
    """Within five standard deviations."""
    assert (np.abs(frequencies(sampler) - expected) <= 5 * np.sqrt(expected * (1 - expected) / MANY)).all()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 1000))
def test_argmax_is_the_most_likely_whole_action(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    heads = [rng.standard_normal((5, n)) for n in sizes]
    space = ActionSpace({f"h{i}": tuple(map(str, range(n))) for i, n in enumerate(sizes)})
    parts = space.unflatten(np.arange(space.n))
    joint = sum(head[:, parts[:, i]] for i, head in enumerate(heads))
    np.testing.assert_array_equal(Argmax()(heads, rng), joint.argmax(-1))


def test_argmax_takes_the_first_of_equals_and_draws_nothing() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert Argmax()([np.zeros((2, 3)), np.zeros((2, 2))], rng).tolist() == [0, 0]
    assert rng.bit_generator.state == before


def test_temperature_1_follows_the_policy() -> None:
    assert_frequencies(Temperature(), JOINT)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_sharpens_or_flattens_each_head(temperature: float) -> None:
    heads = [p ** (1 / temperature) / (p ** (1 / temperature)).sum() for p in (MOVE, ACT)]
    assert_frequencies(Temperature(temperature=temperature), np.outer(*heads).ravel())


def test_temperature_near_0_is_argmax() -> None:
    assert frequencies(Temperature(temperature=1e-6))[0] == 1


def test_tie_tolerance_chooses_evenly_among_near_ties() -> None:
    # 0.3, 0.2, 0.18, 0.12, 0.12, 0.08: within 40 % of the best are those from 0.18 on
    assert_frequencies(TieTolerance(tolerance=0.4 + 1e-6), np.array([1, 1, 1, 0, 0, 0]) / 3)


def test_tie_tolerance_0_is_argmax_but_for_exact_ties() -> None:
    assert frequencies(TieTolerance(tolerance=0))[0] == 1
    ids = TieTolerance(tolerance=0)([np.zeros((MANY, 2)), np.tile([0.0, -1.0], (MANY, 1))], np.random.default_rng(0))
    assert set(ids) == {0, 2}


def test_tie_tolerance_1_chooses_among_all() -> None:
    assert_frequencies(TieTolerance(tolerance=1), np.full(6, 1 / 6))


@pytest.mark.parametrize("sampler", [Temperature(), TieTolerance()])
def test_a_seed_repeats_the_draws(sampler: Sampler) -> None:
    first, second = (sampler(logits(100), np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("make", [lambda: Temperature(temperature=0), lambda: TieTolerance(tolerance=1.1)])
def test_impossible_settings_are_refused(make: object) -> None:
    with pytest.raises(ValidationError):
        make()
