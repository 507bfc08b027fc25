"""What a run left behind is found, in the order of its stages."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evaluation.fakes import normal_results, write_curve

from gameagent.evaluation.run_folder import read_run, stage_name
from gameagent.evaluation.summary import summarise, write_json


def mark(folder: Path, state: str = "finished") -> Path:
    write_json(folder / "stage.json", {"state": state, "seconds": 1.5, "headline": folder.name, "files": []})
    return folder


def test_finished_stages_come_in_order_and_others_do_not_count(tmp_path: Path) -> None:
    for name in ("10_last", "02_second", "01_first", "02_second~1"):
        mark(tmp_path / name)
    mark(tmp_path / "03_broken", "running")
    write_json(tmp_path / "notes" / "stage.json", {"state": "finished"})
    assert [s.name for s in read_run(tmp_path).stages] == ["first", "second", "last"]


def test_files_are_found_in_every_stage_and_in_the_run_itself(tmp_path: Path) -> None:
    summaries = {n: summarise(normal_results(m), player=n, mode="argmax") for n, m in (("a", 1), ("b", 2))}
    for i, name in enumerate(summaries, 1):
        write_json(mark(tmp_path / f"0{i}_{name}") / "eval.json", summaries[name])
    write_curve(tmp_path / "metrics.csv", {"x": [1.0]}, [0])
    (tmp_path / "config.yaml").write_text("name: n\n")
    run = read_run(tmp_path)
    assert [s["player"] for s in run.evaluations] == ["a", "b"]
    assert list(run.curves) == [tmp_path.name]
    assert run.configs == {tmp_path.name: "name: n\n"}
    assert run.videos == run.comparisons == ()


@pytest.mark.parametrize(("folder", "name"), [("02_sft", "sft"), ("10_evaluate_ppo", "evaluate_ppo"), ("sft", "sft")])
def test_a_stage_is_called_by_its_folder_without_the_number(folder: str, name: str) -> None:
    assert stage_name(Path(folder)) == name
