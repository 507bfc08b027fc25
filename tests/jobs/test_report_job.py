"""`job=report` makes the page of another run, in that run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from gameagent.errors import UserError
from gameagent.jobs.evaluate import Evaluate
from gameagent.jobs.report import Report


def test_a_finished_run_is_reported_on(experiment, tmp_path: Path) -> None:
    experiment(Evaluate(episodes=5, label="The expert"), "scored").run()
    told = experiment(Report(source=str(tmp_path / "scored")), "page").run()
    assert told == {"report": str(tmp_path / "scored" / "report.html")}
    assert "The expert" in (tmp_path / "scored" / "report.html").read_text()


@pytest.mark.parametrize(
    ("source", "words"),
    [(None, "needs a run folder"), ("nowhere", "is no run folder"), (".", "holds nothing to report")],
)
def test_what_cannot_be_reported_on_is_named(experiment, source: str | None, words: str) -> None:
    with pytest.raises(UserError, match=words):
        experiment(Report(source=source), "page").run()
