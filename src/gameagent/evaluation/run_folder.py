"""Reads what a run left in its folder, or a pipeline in its folder of stages: the material of a report.

run = read_run("outputs/catch_demo/…"); run.evaluations, run.curves, run.video
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gameagent.evaluation.curves import Curves, read_metrics
from gameagent.evaluation.summary import Summary, read_json
from gameagent.policies.bundle import read_card

STAGE_FILE = "stage.json"
"""Written by a pipeline into a stage's folder when the stage is finished."""


@dataclass(frozen=True)
class StageRecord:
    """One finished stage of a pipeline."""

    name: str
    seconds: float
    files: tuple[tuple[str, int], ...] = ()
    """Name and size in bytes of what it wrote."""
    headline: str = ""
    """Its result in a few words."""


@dataclass(frozen=True)
class Run:
    """Everything found."""

    path: Path
    name: str
    stages: tuple[StageRecord, ...] = ()
    evaluations: tuple[Summary, ...] = ()
    comparisons: tuple[dict[str, Any], ...] = ()
    curves: dict[str, Curves] = field(default_factory=dict)
    """By stage name; a plain run is its own only stage."""
    configs: dict[str, str] = field(default_factory=dict)
    """YAML text by stage name."""
    provenance: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of each policy.safetensors, by stage name."""
    videos: tuple[Path, ...] = ()


def read_run(path: str | Path) -> Run:
    """Read a run folder.

    Raises:
        FileNotFoundError: no such folder.
        ValueError: a file in it is damaged; the message names it.
    """
    path = Path(path)
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is no run folder; give one under outputs/, as outputs/NAME/TIME")
    stages = _finished(path)
    folders = {path.name: path} | {stage_name(f): f for f in stages}
    return Run(
        path=path,
        name=_name(path),
        stages=tuple(_stage(f, content) for f, content in stages.items()),
        evaluations=tuple(read_json(f, "evaluation") for f in _found(folders, "eval.json").values()),
        comparisons=tuple(read_json(f, "comparison") for f in _found(folders, "compare.json").values()),
        curves={name: read_metrics(f) for name, f in _found(folders, "metrics.csv").items()},
        configs={name: f.read_text(encoding="utf-8") for name, f in _found(folders, "config.yaml").items()},
        provenance={name: read_provenance(f) for name, f in _found(folders, "policy.safetensors").items()},
        videos=tuple(_found(folders, "video.mp4").values()),
    )


def read_provenance(path: Path) -> dict[str, str]:
    """Where a saved policy comes from, as its file says, values as text. Raises PolicyFileError, a ValueError."""
    told = {k: v for k, v in read_card(path)["provenance"].items() if k != "config"}  # config.yaml shows that
    return {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in told.items()}


def stage_name(folder: Path) -> str:
    """`02_sft` -> `sft`: stage folders are numbered so that they sort."""
    return folder.name.partition("_")[2] or folder.name


def _name(path: Path) -> str:
    """What the experiment is called: as its configuration says, else as the folder of its runs."""
    file = path / "config.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    name = content.get("name") if isinstance(content, dict) else None
    return str(name) if name else path.resolve().parent.name


def _finished(path: Path) -> dict[Path, dict[str, Any]]:
    """Folders of finished stages in order, and what they say. Folders that were set aside (`02_sft~1`) don't count."""
    found: dict[Path, dict[str, Any]] = {}
    for marker in sorted(path.glob(f"[0-9]*_*/{STAGE_FILE}")):
        content = json.loads(marker.read_text(encoding="utf-8"))
        if content.get("state") == "finished" and "~" not in marker.parent.name:
            found[marker.parent] = content
    return found


def _stage(folder: Path, content: dict[str, Any]) -> StageRecord:
    files = tuple((str(f["name"]), int(f["bytes"])) for f in content.get("files", ()))
    return StageRecord(stage_name(folder), float(content["seconds"]), files, str(content.get("headline", "")))


def _found(folders: dict[str, Path], name: str) -> dict[str, Path]:
    return {stage: folder / name for stage, folder in folders.items() if (folder / name).is_file()}
