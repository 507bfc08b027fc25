"""`job=pipeline`: runs stages one after the other, each a job of its own with its own folder; then makes report.html.

python run.py +experiment=catch_demo; python run.py job.resume=outputs/catch_demo/2026-01-31_12-00-00
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from gameagent.component import component, to_config
from gameagent.config import build
from gameagent.config.files import save_run
from gameagent.errors import Interrupted, UserError
from gameagent.evaluation.report import duration, write_report
from gameagent.evaluation.run_folder import STAGE_FILE
from gameagent.evaluation.summary import estimate, headline, read_json, verdict
from gameagent.experiment import Experiment, Job
from gameagent.jobs.compare import COMPARISON
from gameagent.jobs.evaluate import EVALUATION
from gameagent.jobs.screen import console, say, show_table
from gameagent.jobs.stages import Stage, plan_stages

_PLUMBING = ("config.yaml", "overrides.yaml", "checkpoints", "tensorboard", STAGE_FILE)
"""What tells nothing about a stage's result."""


@component
class Pipeline(Job):
    """Run stages in order. What is finished is not done again when the pipeline is resumed."""

    stages: dict[str, list[str]] = field(default_factory=dict)
    """Overrides of each stage by its name, as one types them: a `job=` and what differs from the pipeline's own
    environment, policy, learner, …; `stage:NAME` stands for the folder of an earlier stage."""
    more: dict[str, list[str]] = field(default_factory=dict)
    """Further overrides by stage, behind its own: `'job.more.ppo=["learner.total_steps=1000"]'`."""
    report: bool = True
    """Whether report.html is made at the end."""
    resume: str | None = None
    """Run folder of a stopped pipeline to go on in; null: a new one."""

    def run(self, experiment: Experiment) -> dict[str, Any]:
        """Run what is not finished yet. Gives each stage's result by its name.

        Raises:
            ConfigError: mistakes in any stage's overrides; nothing has run then.
            UserError: a stage failed for a reason that its message explains.
            Interrupted: a signal stopped it.
        """
        if self.resume is not None and Path(self.resume).resolve() != experiment.run_dir.resolve():
            raise UserError(f"job.resume={self.resume} goes on in that folder; leave out={experiment.out} out")
        plan = plan_stages(to_config(experiment), self._overrides(), experiment.run_dir)
        results: dict[str, Any] = {}
        for number, stage in enumerate(plan, 1):
            done = stage.marker()
            if done.get("state") == "finished":
                say(f"[{number}/{len(plan)}] {stage.name}: finished before")
            else:
                console().rule(f"[bold]{number}/{len(plan)} {stage.name}[/bold]", align="left")
                done = _guarded(stage, experiment.run_dir)
                say(
                    f"{stage.name}: {duration(done['seconds'])}" + (f", {done['headline']}" if done["headline"] else "")
                )
            results[stage.name] = done["result"]
        _show(plan)
        if self.report:
            say(f"report: {write_report(experiment.run_dir)}")
        return results

    def _overrides(self) -> dict[str, list[str]]:
        if not self.stages:
            raise UserError("job=pipeline has no stages; choose an experiment that has, as +experiment=catch_demo")
        unknown = [name for name in self.more if name not in self.stages]
        if unknown:
            raise UserError(f"job.more names stages {unknown} that don't exist; the stages are {list(self.stages)}")
        return {name: [*overrides, *self.more.get(name, ())] for name, overrides in self.stages.items()}


def _guarded(stage: Stage, root: Path) -> dict[str, Any]:
    """Run a stage; whatever stops it, say where, and how to go on."""
    again = f"to go on: python run.py job.resume={root}"
    try:
        return run_stage(stage)
    except Interrupted as e:
        raise Interrupted(e.signum, f"stopped in stage {stage.name}; {again}") from e
    except KeyboardInterrupt as e:
        raise KeyboardInterrupt(f"stopped in stage {stage.name}; {again}") from e
    except UserError as e:
        raise UserError(f"stage {stage.name}: {e}\n{again}") from e
    except Exception as e:
        e.add_note(f"in stage {stage.name}; {again}")
        raise


def run_stage(stage: Stage) -> dict[str, Any]:
    """Run one stage in its folder, going on where its job can, and note its result there. Gives the note."""
    plain = stage.plain
    if stage.marker().get("state") == "running" and "resume" in plain["job"]:
        plain = {**plain, "job": {**plain["job"], "resume": str(stage.folder)}}
    elif kept := stage.set_aside():
        say(f"{stage.folder.name} held another or an unfinished run: kept as {kept.name}")
    before = stage.marker().get("seconds", 0.0)
    began = time.monotonic()
    save_run(plain, stage.folder, stage.overrides)
    stage.mark("running", seconds=before)
    try:
        result = build(plain).run()
    except BaseException:
        stage.mark("running", seconds=before + time.monotonic() - began)
        raise
    stage.mark(
        "finished",
        version=1,
        seconds=round(before + time.monotonic() - began, 3),
        result=_plain(result),
        headline=_headline(stage.folder, result),
        files=_files(stage.folder),
    )
    return stage.marker()


def _headline(folder: Path, result: Any) -> str:
    """A stage's result in a few words."""
    if (folder / EVALUATION).is_file():
        return headline(read_json(folder / EVALUATION, "evaluation"))
    if (folder / COMPARISON).is_file():
        return verdict(read_json(folder / COMPARISON, "comparison"))
    told = _plain(result)
    shown = {k: v for k, v in told.items() if isinstance(v, int | float)} if isinstance(told, dict) else {}
    telling = [k for k in _TELLING if k in shown] or list(shown)[:4]
    return ", ".join(f"{k} {shown[k]:,.4g}" if isinstance(shown[k], float) else f"{k} {shown[k]:,}" for k in telling)


_TELLING = ("env_steps", "train/score", "sft/val_accuracy", "sft/majority_accuracy", "frames", "episodes")
"""Numbers that say most about a stage."""


def _plain(result: Any) -> Any:
    """A job's result as JSON can hold it; numbers that are not finite become None."""
    if isinstance(result, Mapping):
        return {str(k): _plain(v) for k, v in result.items()}
    if isinstance(result, list | tuple):
        return [_plain(v) for v in result]
    if isinstance(result, float):
        return result if abs(result) < float("inf") else None
    return result if result is None or isinstance(result, bool | int | str) else str(result)


def _files(folder: Path) -> list[dict[str, Any]]:
    """What a person may want to open: files, and folders as one, with sizes in bytes."""
    found = (p for p in sorted(folder.iterdir()) if p.name not in _PLUMBING and not p.name.startswith("."))
    return [{"name": p.name + "/" * p.is_dir(), "bytes": _size(p)} for p in found]


def _size(path: Path) -> int:
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) if path.is_dir() else path.stat().st_size


def _show(plan: list[Stage]) -> None:
    """The table at the end."""
    rows, total = [], 0.0
    for stage in plan:
        marker = json.loads((stage.folder / STAGE_FILE).read_text(encoding="utf-8"))
        total += marker["seconds"]
        score = ""
        if (stage.folder / EVALUATION).is_file():
            score = str(estimate(read_json(stage.folder / EVALUATION, "evaluation")["score"]))
        names = ", ".join(f["name"] for f in marker["files"])
        rows.append((stage.name, duration(marker["seconds"]), score, f"{stage.folder.name}: {names}"))
    rows.append(("all", duration(total), "", ""))
    show_table("", ("stage", "time", "mean score, 95 % interval", "files"), rows, numbers=(1,))
