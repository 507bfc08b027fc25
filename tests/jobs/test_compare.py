"""`job=compare`: two players, the same seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from gameagent.errors import UserError
from gameagent.evaluation.summary import read_json
from gameagent.jobs.compare import Compare
from gameagent.jobs.evaluate import Evaluate


def test_the_expert_beats_a_random_player_on_the_same_seeds(experiment, tmp_path: Path) -> None:
    outcome = experiment(Compare(a="random", b="expert", episodes=30)).run()
    c = read_json(tmp_path / "run" / "compare.json", "comparison")
    assert outcome["low"] > 0
    assert outcome["p_value"] == c["p_value"] < 0.01
    assert (c["a"]["player"], c["b"]["player"]) == ("random", "expert")
    assert c["wins"] + c["ties"] + c["losses"] == len(c["rows"]) == 30
    assert (tmp_path / "run" / "compare.png").is_file()


def test_evaluations_are_read_instead_of_played_again(experiment, policy_file: Path, tmp_path: Path) -> None:
    experiment(Evaluate(policy="expert", episodes=9), "expert_eval").run()
    experiment(Evaluate(policy=str(policy_file), episodes=9), "policy_eval").run()
    read = Compare(a=str(tmp_path / "policy_eval"), b=str(tmp_path / "expert_eval" / "eval.json"), label_a="clone")
    played = Compare(a=str(policy_file), b="expert", episodes=9)
    assert experiment(read, "read").run() == experiment(played, "played").run()
    assert read_json(tmp_path / "read" / "compare.json", "comparison")["a"]["player"] == "clone"


def test_evaluations_on_other_seeds_are_refused(experiment, tmp_path: Path) -> None:
    experiment(Evaluate(episodes=4), "four").run()
    with pytest.raises(UserError, match="same seeds: expert played 4 seeds"):
        experiment(Compare(a=str(tmp_path / "four"), b="random", episodes=5)).run()


def test_a_damaged_evaluation_is_named(experiment, tmp_path: Path) -> None:
    (tmp_path / "eval.json").write_text("{")
    with pytest.raises(UserError, match=r"eval\.json is no evaluation"):
        experiment(Compare(a=str(tmp_path / "eval.json"), b="random", episodes=5)).run()
