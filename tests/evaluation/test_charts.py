"""Inline charts: well-formed SVG, right places, nothing that runs or loads."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from gameagent.evaluation.charts import Row, curve_chart, differences_chart, intervals_chart, short, ticks
from gameagent.evaluation.stats import Estimate


def numbers(svg: str, tag: str, attribute: str, css: str = "") -> list[float]:
    return [
        float(e.attrib[attribute])
        for e in ElementTree.fromstring(svg).iter(tag)
        if css in e.attrib.get("class", "").split() or not css
    ]


def test_dots_and_means_stand_where_their_values_are() -> None:
    svg = intervals_chart([Row("a", Estimate(5, 4, 6, 3), (0.0, 5.0, 10.0)), Row("b", Estimate(10, 9, 11, 3))])
    dots = numbers(svg, "circle", "cx", "dot")
    means = numbers(svg, "circle", "cx", "mean")
    assert dots[1] - dots[0] == pytest.approx(dots[2] - dots[1], abs=0.2)
    assert means == pytest.approx([dots[1], dots[2]], abs=0.2)


def test_a_single_episode_has_a_mean_and_no_bar() -> None:
    svg = intervals_chart([Row("a", Estimate(5, float("nan"), float("nan"), 1), (5.0,))])
    assert numbers(svg, "line", "x1", "bar") == []
    assert "nan" not in svg


def test_labels_are_escaped() -> None:
    svg = intervals_chart([Row("<b>&", Estimate(5, 4, 6, 3), note='"')])
    assert "<b>&" not in svg
    assert ElementTree.fromstring(svg) is not None


@pytest.mark.parametrize("n", [1, 2, 5000])
def test_a_curve_of_any_length_fits_its_picture(n: int) -> None:
    svg = curve_chart("train/score", np.arange(n) * 2048.0, np.sin(np.arange(n)))
    points = [tuple(map(float, p.split(","))) for p in re.findall(r"[-\d.]+,[-\d.]+", svg)]
    assert 0 < len(points) <= 800
    width, height = (float(v) for v in svg.split('viewBox="0 0 ')[1].split('"')[0].split())
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


def test_a_constant_curve_is_drawn() -> None:
    assert "nan" not in curve_chart("ppo/lr", np.arange(3.0), np.full(3, 3e-4))


def test_each_seed_has_a_column_in_the_colour_of_who_won_it() -> None:
    svg = differences_chart(np.array([-2.0, 0.0, 3.0, 4.0]), Estimate(1.25, -1, 3, 4))
    assert len(numbers(svg, "rect", "height", "column")) == 4
    assert svg.count("column s1") == 2


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (3, 3, [3]),
        (0.012, 0.03, [0.015, 0.02, 0.025, 0.03]),
    ],
)
def test_ticks_are_round_and_inside(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(("value", "text"), [(12000, "12k"), (2.5e6, "2.5M"), (0.0125, "0.0125"), (-3, "-3")])
def test_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text
