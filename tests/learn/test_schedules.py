"""Schedules at their ends, and rsl_rl's rule for the learning rate."""

from __future__ import annotations

import pytest

from gameagent.learn.schedules import adapted, annealed


def test_annealing_goes_from_the_start_to_0_and_stays_there() -> None:
    assert [annealed(3e-4, p) for p in (0.0, 0.5, 1.0, 1.5)] == [3e-4, 1.5e-4, 0.0, 0.0]


@pytest.mark.parametrize(
    ("kl", "expected"),
    [
        (0.0201, 1e-3 / 1.5),
        (0.02, 1e-3),
        (0.01, 1e-3),
        (0.005, 1e-3),
        (0.0049, 1.5e-3),
        (0.0, 1e-3),
        (float("nan"), 1e-3),
    ],
)
def test_adaptive_rate_follows_rsl_rl(kl: float, expected: float) -> None:
    assert adapted(1e-3, kl, desired_kl=0.01) == pytest.approx(expected)


def test_adaptive_rate_stays_within_its_bounds() -> None:
    assert adapted(1.2e-5, 1.0, 0.01) == 1e-5
    assert adapted(9e-3, 1e-4, 0.01) == 1e-2
