"""metrics.csv is read without its gaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from gameagent.evaluation.curves import read_metrics


def test_each_metric_keeps_the_steps_at_which_it_was_logged(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("step,a,b\n10,1.5,\n20,,2\n30,2.5,nan\n40,3.5,4\n")
    curves = read_metrics(tmp_path / "m.csv")
    assert {k: (x.tolist(), y.tolist()) for k, (x, y) in curves.items()} == {
        "a": ([10, 30, 40], [1.5, 2.5, 3.5]),
        "b": ([20, 40], [2, 4]),
    }


def test_a_line_torn_by_a_kill_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("env_steps,a,b\n10,1,2\n20,1.\n30,x")
    assert read_metrics(tmp_path / "m.csv")["a"][1].tolist() == [1, 1]


def test_an_empty_file_has_no_curves(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("")
    assert read_metrics(tmp_path / "m.csv") == {}


def test_a_file_without_steps_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("loss\n1\n")
    with pytest.raises(ValueError, match=r"m\.csv has no column named env_steps or step; it has \['loss'\]"):
        read_metrics(tmp_path / "m.csv")
