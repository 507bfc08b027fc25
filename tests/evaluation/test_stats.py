"""Intervals and tests against hand-computed numbers, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gameagent.evaluation.stats import (
    Estimate,
    bootstrap,
    interquartile_mean,
    mean_interval,
    paired,
    sign_flip_p_value,
    sign_p_value,
    wilson,
)


def test_wilson_matches_the_published_formula() -> None:
    # z = 1.959964: centre = (0.8 + z²/20) / (1 + z²/10) = 0.71676, half = 0.22657
    e = wilson(8, 10)
    assert e.value == 0.8
    assert (e.low, e.high) == pytest.approx((0.490162, 0.943318), abs=1e-6)


def test_wilson_at_zero_and_all_successes_stays_inside_the_unit_interval_and_is_no_point() -> None:
    none, every = wilson(0, 10), wilson(10, 10)
    assert none.low == 0.0
    assert none.high == pytest.approx(0.277533, abs=1e-6)
    assert every.high == 1.0
    assert every.low == pytest.approx(1 - 0.277533, abs=1e-6)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_impossible_counts(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes} of {n}"):
        wilson(successes, n)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_rate_and_is_symmetric(case: tuple[int, int]) -> None:
    successes, n = case
    e, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert 0 <= e.low <= e.value <= e.high <= 1
    assert (e.low, e.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low))


def test_interquartile_mean_cuts_a_quarter_at_each_end() -> None:
    assert interquartile_mean(np.array([100.0, 1, 2, 3, 4, 5, 6, -50])) == pytest.approx(3.5)  # of 2, 3, 4, 5
    assert interquartile_mean(np.array([1.0, 2, 9])) == pytest.approx(4.0)  # ⌊3/4⌋ = 0: nothing to cut


@pytest.mark.parametrize("name", ["normal", "exponential"])
def test_a_95_percent_interval_covers_the_true_mean_about_95_percent_of_the_time(name: str) -> None:
    rng = np.random.default_rng(0)
    samples = getattr(rng, name)(size=(400, 40))
    truth = {"normal": 0.0, "exponential": 1.0}[name]
    estimates = [mean_interval(x, resamples=1000) for x in samples]
    covered = np.mean([e.low <= truth <= e.high for e in estimates])
    assert 0.90 <= covered <= 0.985


def test_bca_agrees_with_the_normal_interval_where_that_is_right() -> None:
    x = np.random.default_rng(1).normal(5.0, 2.0, 400)
    half = 1.96 * x.std(ddof=1) / 20
    e = mean_interval(x)
    assert (e.low, e.high) == pytest.approx((x.mean() - half, x.mean() + half), abs=0.03)


def test_bca_leans_towards_the_long_tail() -> None:
    e = mean_interval(np.random.default_rng(2).exponential(size=60))
    assert e.high - e.value > e.value - e.low


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30), st.floats(-100, 100), st.floats(0.5, 3))
def test_the_interval_moves_and_scales_with_its_values(values: list[float], shift: float, scale: float) -> None:
    e, moved = mean_interval(values, resamples=200), mean_interval([scale * v + shift for v in values], resamples=200)
    assert e.low <= e.high
    assert (moved.low, moved.high) == pytest.approx((scale * e.low + shift, scale * e.high + shift), abs=1e-5, rel=1e-6)


def test_the_same_values_give_the_same_interval() -> None:
    x = np.random.default_rng(3).normal(size=30)
    assert mean_interval(x) == mean_interval(x)
    assert mean_interval(x) != mean_interval(x, seed=1)


def test_equal_values_give_a_point_and_one_value_gives_no_interval() -> None:
    assert mean_interval([3.0, 3.0, 3.0]) == Estimate(3.0, 3.0, 3.0, 3)
    one = mean_interval([3.0])
    assert one.value == 3.0
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert one.to_dict()["low"] is None
    assert str(one) == "3.00 (n=1, no interval)"


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [math.inf], [[1.0, 2.0]]])
def test_empty_and_non_finite_values_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match=r"at least one number|not finite"):
        mean_interval(bad)


def test_any_statistic_can_be_bootstrapped() -> None:
    x = np.r_[np.random.default_rng(4).normal(10, 1, 99), 1e6]  # one broken episode
    e = bootstrap(x, interquartile_mean)
    assert 9 < e.low <= e.value <= e.high < 11


def test_overlap_is_symmetric_and_touching_counts() -> None:
    a, b, c = Estimate(1, 0, 2, 9), Estimate(3, 2, 4, 9), Estimate(6, 5, 7, 9)
    assert a.overlaps(b)
    assert b.overlaps(a)
    assert not a.overlaps(c)
    assert not c.overlaps(a)
    assert Estimate(1, math.nan, math.nan, 1).overlaps(c), "no interval, so no claim that they differ"


def test_sign_test_matches_hand_computed_binomial_tails() -> None:
    assert sign_p_value(5, 0) == pytest.approx(2 / 32)
    assert sign_p_value(7, 1) == pytest.approx(2 * (1 + 8) / 256)
    assert sign_p_value(3, 3) == 1.0
    assert sign_p_value(0, 0) == 1.0


def test_sign_flip_test_matches_hand_enumeration() -> None:
    # |±1 ±2 ±3| >= 6 for 2 of 8 patterns; |±1 ±2 ±3| >= 4 for 4 of 8 (6, 4, -4, -6)
    assert sign_flip_p_value(np.array([1.0, 2, 3])) == pytest.approx(2 / 8)
    assert sign_flip_p_value(np.array([-1.0, 2, 3])) == pytest.approx(4 / 8)
    assert sign_flip_p_value(np.zeros(5)) == 1.0


def test_random_sign_flips_agree_with_the_exact_test_and_are_never_zero() -> None:
    d = np.random.default_rng(5).normal(0.4, 1.0, 14)
    exact = sign_flip_p_value(d)
    random = sign_flip_p_value(np.concatenate([d, [1e-9]]))  # 15 pairs: sampled
    assert random == pytest.approx(exact, abs=0.02)
    assert sign_flip_p_value(np.ones(200)) == pytest.approx(1 / 10_001)


def test_sign_flip_p_values_are_uniform_when_there_is_no_difference() -> None:
    rng = np.random.default_rng(6)
    p = np.array([sign_flip_p_value(rng.normal(size=20), resamples=500) for _ in range(400)])
    assert 0.02 <= (p <= 0.05).mean() <= 0.09
    assert 0.43 <= (p <= 0.5).mean() <= 0.57


def test_pairing_sees_what_two_separate_intervals_hide() -> None:
    rng = np.random.default_rng(7)
    luck = rng.normal(0, 10, 60)
    a, b = luck, luck + 1 + rng.normal(0, 0.5, 60)
    p = paired(a, b)
    assert mean_interval(a).overlaps(mean_interval(b))
    assert p.difference.low > 0
    assert p.p_value < 0.001
    assert p.sign_p_value < 0.001


def test_paired_counts_and_mean_are_those_of_b_minus_a() -> None:
    p = paired([1, 2, 3, 4], [2, 2, 1, 9])
    assert (p.wins, p.ties, p.losses) == (2, 1, 1)
    assert p.difference.value == pytest.approx((1 + 0 - 2 + 5) / 4)
    assert p.probability_of_improvement == pytest.approx(2.5 / 4)
    swapped = paired([2, 2, 1, 9], [1, 2, 3, 4])
    assert swapped.difference.value == -p.difference.value
    assert swapped.p_value == p.p_value


def test_paired_needs_one_score_of_each_per_seed() -> None:
    with pytest.raises(ValueError, match="got 2 and 3"):
        paired([1, 2], [1, 2, 3])
