"""Plain YAML in and out, the files of a run folder, and what differs between two configurations.

save(plain, "config.yaml"); load("outputs/x/…/config.yaml"); diff(old, new) -> [Change("learner.lr", 3e-4, 1e-4)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gameagent.errors import ConfigError, UserError
from gameagent.files import replacing

CONFIG = "config.yaml"
"""A run folder's whole configuration, resolved; can be run again."""
OVERRIDES = "overrides.yaml"
"""A run folder's list of what was typed, those of resumed runs last."""


class _Missing:
    def __repr__(self) -> str:
        return "(not there)"


MISSING: Any = _Missing()
"""Stands for the value on the side of a `Change` that has no such key."""


class Change(NamedTuple):
    """One key that differs between two configurations."""

    key: str
    """Full path, dotted."""
    old: Any
    """Value before, `MISSING` where the key is new."""
    new: Any
    """Value after, `MISSING` where the key is gone."""

    def __str__(self) -> str:
        return f"{self.key}: {self.old} -> {self.new}"


def save(plain: Any, path: Path | str, comment: str = "") -> None:
    """Write plain data as YAML, whole or not at all: to a temporary name, then renamed. `comment` is its first line.

    Raises:
        UserError: the folder can't be written; the message says what to type.
    """
    path = Path(path)
    head = f"# {comment}\n" if comment else ""
    body = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)
    try:
        with replacing(path) as part:
            part.write_text(head + body, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{path} can't be written: {error.strerror or error}; choose another folder: out=PATH"
        ) from error


def load(path: Path | str) -> dict[str, Any]:
    """Read what `save` wrote. A run folder stands for the config.yaml in it.

    Raises:
        ConfigError: no such file, or no YAML mapping.
    """
    from omegaconf import OmegaConf  # reads 1e-4 as a number, which PyYAML doesn't

    path = Path(path).expanduser()
    file = path / CONFIG if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(f"{file}: there is no such file; a run folder holds a {CONFIG}")
    try:
        plain = OmegaConf.to_container(OmegaConf.load(file), resolve=True)
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{file} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(plain, dict):
        raise ConfigError(f"{file} holds a {type(plain).__name__}; a configuration is a mapping of keys to values")
    return {str(key): value for key, value in plain.items()}


def save_run(plain: Mapping[str, Any], run_dir: Path, overrides: Sequence[str]) -> None:
    """Write a run folder's `CONFIG` and `OVERRIDES`. Running the saved file again makes a folder of its own.

    Raises:
        UserError: the folder can't be written.
    """
    again = {**plain, "out": None}
    if isinstance(job := again.get("job"), Mapping) and job.get("resume") is not None:
        again["job"] = {**job, "resume": None}
    comment = f"Run again: python run.py --config-path {run_dir} --config-name config [key=value …]"
    save(again, run_dir / CONFIG, comment)
    save(list(overrides), run_dir / OVERRIDES)


def overrides_of(run_dir: Path) -> list[str]:
    """What was typed for the runs of a folder so far; empty where it doesn't say."""
    file = run_dir / OVERRIDES
    return [str(text) for text in yaml.safe_load(file.read_text(encoding="utf-8")) or []] if file.is_file() else []


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Keys whose values differ, in the order of `new`, then those that are gone. Lists are compared whole."""
    before, after = _flat(old), _flat(new)
    keys = [*after, *(key for key in before if key not in after)]
    changes = [Change(key, before.get(key, MISSING), after.get(key, MISSING)) for key in keys]
    return [c for c in changes if c.old is MISSING or c.new is MISSING or c.old != c.new]


def _flat(node: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
