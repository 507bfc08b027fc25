"""Writes the reference pages from the code: every setting from its field, every metric from the table of metrics.

.venv/bin/python docs/generate.py
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from gameagent.catalog import CATALOG, Entry
from gameagent.component import locate
from gameagent.config.render import field_docs, render
from gameagent.experiment import Experiment
from gameagent.learn.metrics import METRICS

NOTE = "<!-- Written by `make conf` from the code. Change it there. -->\n"
CONFIG_HEAD = f"""{NOTE}
# Configuration

Every key that can be set, by config group: choose a component with `group=option`, set a value with `key=value`. The
files in `conf/` say the same. `python run.py --cfg job` prints what a command would run.
"""
METRICS_HEAD = f"""{NOTE}
# Metrics

Everything that a run may log to `metrics.csv`, TensorBoard or Weights & Biases. The x axis is `env_steps`.
"""


def pages() -> dict[str, str]:
    """File name below docs/ -> text."""
    return {"config-reference.md": config_reference(), "metrics-reference.md": metrics_reference()}


def config_reference() -> str:
    """A section for every group, a table for every component."""
    files = render()
    root = _table(Experiment, "", yaml.safe_load(_root_file()))
    parts = [CONFIG_HEAD, "## The experiment\n", root]
    for group, entries in groupby(CATALOG, key=lambda entry: entry.group):
        parts.append(f"## {group}\n")
        seen: dict[str, str] = {}
        for entry in entries:
            values = yaml.safe_load(files[f"{entry.group}/{entry.option}.yaml"])
            parts += _component(entry, values, seen)
    return "\n".join(parts)


def _root_file() -> str:
    return (Path(__file__).resolve().parent.parent / "conf" / "config.yaml").read_text(encoding="utf-8")


def _component(entry: Entry, values: dict[str, Any], seen: dict[str, str]) -> Iterator[str]:
    """Heading, what it is, and its table; a preset of a class that has one already only says what differs."""
    several = entry.group in ("logger", "callbacks")
    yield f"### `{entry.group}={f'[{entry.option}]' if several else entry.option}`\n"
    if entry.target in seen:
        preset = ", ".join(f"`{name}: {json.dumps(value)}`" for name, value in entry.preset.items())
        yield f"`{entry.group}={seen[entry.target]}` with {preset}.\n"
        return
    seen[entry.target] = entry.option
    cls = locate(entry.target)
    prefix = f"{entry.group}.{entry.option}" if several else entry.group.replace("/", ".")
    yield _paragraph(inspect.getdoc(cls) or "") + "\n"
    yield _table(cls, f"{prefix}.", values)


def _table(cls: type[Any], prefix: str, values: dict[str, Any]) -> str:
    """A row for every field: full key, default, meaning."""
    docs = field_docs(cls)
    rows = [f"| `{prefix}{f.name}` | {_default(f.name, values)} | {_cell(docs[f.name])} |" for f in fields(cls)]
    if not rows:
        return "No settings.\n"
    return "\n".join(["| Key | Default | Meaning |", "|---|---|---|", *rows]) + "\n"


def _default(name: str, values: dict[str, Any]) -> str:
    """The default, or the option of the group that the field is; `???` has to be given."""
    groups = [item for item in values.get("defaults", []) if isinstance(item, dict)]
    chosen = {name: option for group in groups for name, option in group.items()}
    if name in chosen:
        return f"group, {_code(chosen[name])}"
    return "required" if values[name] == "???" else _code(values[name])


def _code(value: Any) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _cell(text: str) -> str:
    """Text for a table's cell; what stands in backticks is left alone, except for the bar."""
    return re.sub(r"`[^`]*`|<", lambda m: r"\<" if m[0] == "<" else m[0], text).replace("|", r"\|")


def metrics_reference() -> str:
    """A table for every prefix of a metric's name."""
    parts = [METRICS_HEAD]
    for prefix, rows in groupby(
        METRICS.items(), key=lambda row: row[0].partition("/")[0] if "/" in row[0] else "counters"
    ):
        parts.append(f"## {prefix}\n")
        parts.append("| Metric | Meaning |\n|---|---|")
        parts += [f"| `{name}` | {_cell(meaning)} |" for name, meaning in rows]
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    """Write the pages that changed."""
    folder = Path(__file__).resolve().parent
    for name, text in pages().items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
