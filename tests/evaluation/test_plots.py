"""Pictures are written whole, of a sensible size, and with something in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.evaluation.fakes import normal_results, results

from gameagent.evaluation.plots import COLOURS, curves_picture, paired_picture, running_mean, score_picture
from gameagent.evaluation.summary import compare, summarise


def picture(path: Path) -> np.ndarray:
    assert [p.name for p in path.parent.iterdir()] == [path.name], "no scraps beside it"
    return np.asarray(Image.open(path).convert("RGB"))


def near(image: np.ndarray, colour: str) -> int:
    rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(image.astype(int) - rgb).sum(-1) < 12).sum())


def test_a_score_picture_has_a_row_in_its_own_colour_for_each_player(tmp_path: Path) -> None:
    summaries = [summarise(normal_results(m), player=f"p{m}", mode="argmax") for m in (10, 20, 30)]
    score_picture(tmp_path / "eval.png", summaries)
    image = picture(tmp_path / "eval.png")
    assert image.shape[1] >= 1000
    for colour in COLOURS[:3]:
        assert near(image, colour) > 200
    assert near(image, COLOURS[3]) == 0


def test_one_episode_can_be_drawn(tmp_path: Path) -> None:
    score_picture(tmp_path / "eval.png", [summarise(results([3]), player="a", mode="argmax")])
    assert near(picture(tmp_path / "eval.png"), COLOURS[0]) > 50


def test_a_paired_picture_shows_wins_and_losses_in_the_colour_of_who_won(tmp_path: Path) -> None:
    a, b = (summarise(normal_results(m, seed=m), player=f"p{m}", mode="argmax") for m in (15, 18))
    paired_picture(tmp_path / "compare.png", compare(a, b))
    image = picture(tmp_path / "compare.png")
    assert (image < 250).any(-1).mean() > 0.05


def test_curves_are_drawn_in_small_panels(tmp_path: Path) -> None:
    x = np.arange(50.0)
    curves_picture(
        tmp_path / "curves.png", {"train/score": (x, x), "loss/value": (x, -x)}, ["train/score", "not there"]
    )
    assert picture(tmp_path / "curves.png").shape[1] > 300


def test_no_known_metric_is_an_error_that_lists_them(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"logged are \['loss'\]"):
        curves_picture(tmp_path / "c.png", {"loss": (np.zeros(2), np.zeros(2))}, ["score"])


def test_the_running_mean_keeps_constants_lines_and_length() -> None:
    assert running_mean(np.full(7, 3.0)).tolist() == [3.0] * 7
    line = np.arange(100.0)
    assert running_mean(line)[10:90].tolist() == pytest.approx(line[10:90].tolist())
    assert running_mean(np.array([1.0, 2.0, 6.0])).tolist() == [1.5, 3.0, 4.0]
