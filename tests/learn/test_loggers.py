"""Metric sinks: exact integer x axis, growing columns, resuming without doubled rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gameagent.learn.loggers import Csv, CsvLogger, TensorBoard, Wandb

BIG = 2**24 + 1
"""The first integer that float32 can't hold."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_steps_beyond_float32_stay_exact(tmp_path: Path) -> None:
    logger = Csv().build(run_dir=tmp_path, name="x", config={}, resume_step=None)
    logger.log_metrics({"loss/policy": 0.1, "env_frames": 4 * BIG}, step=BIG)
    assert rows(tmp_path / "metrics.csv") == [{"env_steps": str(BIG), "env_frames": str(4 * BIG), "loss/policy": "0.1"}]


def test_columns_are_added_as_metrics_appear(tmp_path: Path) -> None:
    logger = CsvLogger(tmp_path / "m.csv", None)
    logger.log_metrics({"a": 1.0}, step=1)
    logger.log_metrics({"b": 2.0, "a": 1.5}, step=2)
    logger.log_metrics({"a": 3.0}, step=3)
    assert (tmp_path / "m.csv").read_text() == "env_steps,a,b\n1,1,\n2,1.5,2\n3,3,\n"


def test_resuming_drops_later_rows_and_a_line_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("env_steps,a\n10,1\n20,2\n30,3\n40,4\n5")
    logger = CsvLogger(path, resume_step=30)
    logger.log_metrics({"a": 9.0}, step=40)
    assert path.read_text() == "env_steps,a\n10,1\n20,2\n30,3\n40,9\n"


def test_a_new_run_begins_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("env_steps,a\n10,1\n")
    CsvLogger(path, None)
    assert path.read_text() == "env_steps\n"


def scalars(folder: Path) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return [(e.step, e.value) for e in events.Scalars("a")]


def test_tensorboard_purges_what_a_resumed_run_does_again(tmp_path: Path) -> None:
    first = TensorBoard().build(run_dir=tmp_path, name="x", config={}, resume_step=None)
    for step in (BIG, BIG + 1, BIG + 2):
        first.log_metrics({"a": 1.0}, step=step)
    first.finalize("success")
    second = TensorBoard().build(run_dir=tmp_path, name="x", config={}, resume_step=BIG + 1)
    second.log_metrics({"a": 2.0}, step=BIG + 2)
    second.finalize("success")
    assert scalars(tmp_path / "tensorboard") == [(BIG, 1.0), (BIG + 1, 1.0), (BIG + 2, 2.0)]


@pytest.mark.timeout(120)
def test_wandb_writes_offline_and_keeps_its_id_for_resuming(tmp_path: Path) -> None:
    first = Wandb().build(run_dir=tmp_path, name="x", config={"seed": 1}, resume_step=None)
    first.log_metrics({"a": 1.0}, step=BIG)
    first.finalize("success")
    second = Wandb().build(run_dir=tmp_path, name="x", config={"seed": 1}, resume_step=BIG)
    second.finalize("success")
    assert first.version == second.version == (tmp_path / "wandb_id.txt").read_text()
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
