"""Stages of a pipeline: their configurations, what refers to what, and which of them are finished.

plan = plan_stages(base, {"sft": ["job=train", "learner=sft"], "ppo": ["learner.init_from=stage:sft", …]}, root)
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gameagent.config import ConfigError, check, compose
from gameagent.evaluation.run_folder import STAGE_FILE
from gameagent.evaluation.summary import write_json

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_REFERENCE = re.compile(r"stage:([^/]+)(/.*)?")
_PIPELINE = "gameagent.jobs.pipeline.Pipeline"


@dataclass(frozen=True)
class Stage:
    """One step of a pipeline, ready to run."""

    name: str
    folder: Path
    overrides: tuple[str, ...]
    plain: dict[str, Any]
    """Whole configuration, references resolved, `out` set."""
    fingerprint: str
    """Changes whenever its configuration or that of a stage it builds on does."""

    def marker(self) -> dict[str, Any]:
        """What its folder says: `state` (running, finished), `fingerprint`, results; empty before it began."""
        try:
            content = json.loads((self.folder / STAGE_FILE).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return content if isinstance(content, dict) and content.get("fingerprint") == self.fingerprint else {}

    def mark(self, state: str, **content: Any) -> None:
        """Write what `marker` reads."""
        write_json(self.folder / STAGE_FILE, {"state": state, "fingerprint": self.fingerprint, **content})

    def set_aside(self) -> Path | None:
        """Rename what an earlier configuration, or a broken-off job that can't go on, left there; gives where."""
        if not self.folder.exists():
            return None
        number = 1
        while (kept := self.folder.with_name(f"{self.folder.name}~{number}")).exists():
            number += 1
        self.folder.rename(kept)
        return kept


def plan_stages(base: Mapping[str, Any], stages: Mapping[str, Sequence[str]], root: Path) -> list[Stage]:
    """Compose and check every stage before the first one starts.

    Args:
        base: the pipeline's own configuration: what a stage does not override is taken from it.
        stages: overrides by name, in order; `stage:NAME` in a value stands for that stage's folder.
        root: folder of the pipeline's run; stages get folders in it.

    Raises:
        ConfigError: every mistake of every stage.
    """
    problems: list[str] = []
    planned: dict[str, Stage | None] = {}
    for number, (name, overrides) in enumerate(stages.items(), 1):
        planned[name] = None
        try:
            stage = _plan(base, name, overrides, root / f"{number:02d}_{name}", planned)
            check(stage.plain)
            planned[name] = stage
        except ConfigError as e:
            problems += [f"stage {name}: {p}" for p in e.problems]
    if problems:
        raise ConfigError(problems)
    return [stage for stage in planned.values() if stage is not None]


def _plan(
    base: Mapping[str, Any], name: str, overrides: Sequence[str], folder: Path, planned: Mapping[str, Stage | None]
) -> Stage:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"a stage's name is lower-case letters, digits and _, got {name!r}")
    if not any(o.startswith("job=") for o in overrides):
        raise ConfigError("its overrides must choose a job; add job=train, say")
    shared = {k: v for k, v in base.items() if k not in ("job", "out", "name")}
    plain = compose(list(overrides), base={**shared, "name": f"{base['name']}_{name}", "out": None})
    if plain["job"]["_target_"] == _PIPELINE:
        raise ConfigError("a pipeline can't be a stage of a pipeline")
    used: dict[str, str] = {}
    # Where the run lies must not matter, so the fingerprint is taken before references become paths.
    resolved = _resolve(plain, {other: stage for other, stage in planned.items() if other != name}, used)
    text = json.dumps([plain, used], sort_keys=True)
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Stage(name, folder, tuple(overrides), {**resolved, "out": str(folder)}, fingerprint)


def _resolve(value: Any, earlier: Mapping[str, Stage | None], used: dict[str, str]) -> Any:
    """Replace references by folders; collect the fingerprints of the stages referred to in `used`."""
    if isinstance(value, dict):
        return {k: _resolve(v, earlier, used) for k, v in value.items()}
    if isinstance(value, list):
        return [_resolve(v, earlier, used) for v in value]
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    if match[1] not in earlier:
        known = ", ".join(earlier) or "none, it is the first"
        raise ConfigError(f"{value} refers to no earlier stage; earlier ones are: {known}")
    stage = earlier[match[1]]
    if stage is None:  # it has mistakes of its own, which are told: the reference to it is none
        return value
    used[match[1]] = stage.fingerprint
    return f"{stage.folder}{match[2] or ''}"
