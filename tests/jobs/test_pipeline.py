"""A pipeline: stages in order, each checked before the first starts, none done twice."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from gameagent.component import from_config, to_config
from gameagent.config import ConfigError, load
from gameagent.errors import Interrupted, UserError
from gameagent.evaluation.summary import read_json
from gameagent.jobs import pipeline as pipeline_module
from gameagent.jobs.evaluate import Evaluate
from gameagent.jobs.pipeline import Pipeline

STAGES = {
    "luck": ["job=evaluate", "job.policy=random", "job.episodes=12"],
    "skill": ["job=evaluate", "job.policy=expert", "job.episodes=12", "job.label=Expert"],
    "compare": ["job=compare", "job.a=stage:luck", "job.b=stage:skill/eval.json"],
}
FILM = {"film": ["job=record", "job.episodes=3", "job.show=[best]"]}


def stamps(root: Path) -> dict[str, int]:
    return {p.parent.name: p.stat().st_mtime_ns for p in root.glob("*/stage.json")}


def test_stages_run_in_order_in_folders_of_their_own_and_end_in_a_report(experiment, tmp_path: Path, capfd) -> None:
    results = experiment(Pipeline(stages=STAGES | FILM), "demo").run()
    root = tmp_path / "demo"
    assert [p.name for p in sorted(root.glob("0*"))] == ["01_luck", "02_skill", "03_compare", "04_film"]
    assert list(results) == [*STAGES, "film"]
    assert results["compare"]["low"] > 0
    assert (root / "04_film" / "video.mp4").is_file()
    html = (root / "report.html").read_text()
    assert "Expert scores" in html
    assert "data:video/mp4;base64," in html
    told = capfd.readouterr().err
    for word in ("luck", "skill", "mean score, 95 % interval", "eval.json", "report.html"):
        assert word in told


def test_a_stage_is_a_run_of_its_own_that_can_be_run_again(experiment, tmp_path: Path) -> None:
    experiment(Pipeline(stages=STAGES, report=False), "demo", seed=5).run()
    plain = load(tmp_path / "demo" / "02_skill")
    again = from_config({**plain, "out": str(tmp_path / "again")})
    assert (again.seed, again.name) == (5, "demo_skill")
    again.run()
    for name in ("demo/02_skill", "again"):
        shutil.copy(tmp_path / name / "eval.json", tmp_path / f"{Path(name).name}.json")
    assert (tmp_path / "02_skill.json").read_text() == (tmp_path / "again.json").read_text()


def test_finished_stages_are_not_done_again(experiment, tmp_path: Path) -> None:
    first = experiment(Pipeline(stages=STAGES), "demo").run()
    before = stamps(tmp_path / "demo")
    again = experiment(Pipeline(stages=STAGES, resume=str(tmp_path / "demo")), "demo").run()
    assert again == first
    assert stamps(tmp_path / "demo") == before


def test_a_changed_stage_and_those_that_build_on_it_are_done_again(experiment, tmp_path: Path) -> None:
    stages = {**FILM, **STAGES}
    experiment(Pipeline(stages=stages), "demo").run()
    before = stamps(tmp_path / "demo")
    more = {"luck": ["job.seed=9"], "skill": ["job.seed=9"]}
    experiment(Pipeline(stages=stages, more=more), "demo").run()
    after = {k: v for k, v in stamps(tmp_path / "demo").items() if "~" not in k}
    assert {k for k in after if after[k] != before[k]} == {"02_luck", "03_skill", "04_compare"}
    assert read_json(tmp_path / "demo" / "02_luck" / "eval.json", "evaluation")["seeds"][0] == 9
    assert (tmp_path / "demo" / "02_luck~1" / "eval.json").is_file(), "what was there is kept"


def test_a_pipeline_that_moved_goes_on_where_it_is(experiment, tmp_path: Path) -> None:
    experiment(Pipeline(stages=STAGES), "demo").run()
    shutil.move(tmp_path / "demo", tmp_path / "moved")
    before = stamps(tmp_path / "moved")
    plain = to_config(experiment(Pipeline(stages=STAGES), "demo"))
    from_config({**plain, "out": str(tmp_path / "moved")}).run()
    assert stamps(tmp_path / "moved") == before


def test_every_mistake_of_every_stage_is_told_before_anything_runs(experiment, tmp_path: Path) -> None:
    stages = {
        "good": STAGES["luck"],
        "typo": ["job=evaluate", "job.episods=3"],
        "after": ["job=evaluate", "job.policy=stage:typo"],
        "nothing": ["seed=3"],
        "early": ["job=compare", "job.a=stage:late"],
        "late": ["job=evaluate", "job.episodes=0"],
        "Loud!": ["job=evaluate"],
        "self": ["job=pipeline"],
    }
    with pytest.raises(ConfigError) as raised:
        experiment(Pipeline(stages=stages), "demo").run()
    told = str(raised.value)
    for words in (
        "stage typo:",
        "episods",
        "stage nothing: its overrides must choose a job",
        "stage early: stage:late refers to no earlier stage; earlier ones are: good, typo, after, nothing",
        "stage late:",
        "stage Loud!: a stage's name is lower-case letters",
        "stage self: a pipeline can't be a stage",
    ):
        assert words in told
    assert "stage after" not in told, "its only mistake is the other stage's"
    assert not (tmp_path / "demo").exists()


def test_a_failing_stage_is_named_and_the_way_on_is_told(experiment, tmp_path: Path) -> None:
    stages = {"luck": STAGES["luck"], "bad": ["job=evaluate", "job.policy=nowhere"], **FILM}
    with pytest.raises(UserError, match=r"stage bad: no policy at nowhere[\s\S]*job\.resume=.*demo"):
        experiment(Pipeline(stages=stages), "demo").run()
    assert json.loads((tmp_path / "demo" / "01_luck" / "stage.json").read_text())["state"] == "finished"
    assert not (tmp_path / "demo" / "03_film").exists()


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), Interrupted(signal.SIGTERM, "stopped")])
def test_a_stopped_pipeline_says_where_and_how_to_go_on(experiment, monkeypatch, stop: KeyboardInterrupt) -> None:
    def stopped(self: Evaluate, experiment: object) -> None:
        raise stop

    monkeypatch.setattr(Evaluate, "run", stopped)
    with pytest.raises(
        type(stop), match=r"stopped in stage luck; to go on: python run\.py job\.resume=.*demo"
    ) as raised:
        experiment(Pipeline(stages=STAGES), "demo").run()
    if isinstance(raised.value, Interrupted):
        assert raised.value.signum == signal.SIGTERM


def test_a_broken_off_stage_goes_on_from_its_checkpoint_where_its_job_can(
    experiment, monkeypatch, tmp_path: Path
) -> None:
    from gameagent.jobs.train import Train

    seen: list[str | None] = []

    def run(self: Train, experiment: object) -> dict[str, float]:
        seen.append(self.resume)
        if self.resume is None:
            raise KeyboardInterrupt
        return {"env_steps": 7}

    monkeypatch.setattr(Train, "run", run)
    stages = {"ppo": ["job=train"]}
    with pytest.raises(KeyboardInterrupt):
        experiment(Pipeline(stages=stages), "demo").run()
    assert experiment(Pipeline(stages=stages), "demo").run() == {"ppo": {"env_steps": 7}}
    assert seen == [None, str(tmp_path / "demo" / "01_ppo")]


def test_a_broken_off_stage_whose_job_cannot_go_on_begins_anew(experiment, monkeypatch, tmp_path: Path) -> None:
    original = Evaluate.run
    monkeypatch.setattr(Evaluate, "run", lambda self, e: (_ for _ in ()).throw(RuntimeError("power cut")))
    with pytest.raises(RuntimeError, match="power cut") as raised:
        experiment(Pipeline(stages=STAGES), "demo").run()
    assert "in stage luck" in raised.value.__notes__[0]
    monkeypatch.setattr(Evaluate, "run", original)
    experiment(Pipeline(stages=STAGES), "demo").run()
    assert (tmp_path / "demo" / "01_luck" / "eval.json").is_file()


def test_no_stages_and_unknown_names_are_refused(experiment) -> None:
    with pytest.raises(UserError, match="no stages; choose an experiment that has"):
        experiment(Pipeline()).run()
    with pytest.raises(UserError, match=r"names stages \['film2'\]"):
        experiment(Pipeline(stages=STAGES, more={"film2": []})).run()


def test_resuming_in_another_folder_is_refused(experiment, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="goes on in that folder"):
        experiment(Pipeline(stages=STAGES, resume=str(tmp_path / "elsewhere")), "demo").run()


def test_what_a_result_holds_is_kept_as_json() -> None:
    told = pipeline_module._plain({"a": float("nan"), 1: (True, None, Path("x")), "b": 2.5})
    assert json.loads(json.dumps(told, allow_nan=False)) == {"a": None, "1": [True, None, "x"], "b": 2.5}
