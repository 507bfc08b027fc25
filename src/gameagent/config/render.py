"""conf/ written from the components: one file for every line of the catalog.

    for name, text in render().items(): ...   # "learner/ppo.yaml" -> its text

`make conf` writes them, `make check` compares them. config.yaml and experiment/ are written by hand.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import yaml

from gameagent.catalog import CATALOG, Entry
from gameagent.component import locate, target_of, to_config
from gameagent.config.sources import home

WIDTH = 118
"""Comments are wrapped at this column."""
_NAMED = ("logger", "callbacks")
"""Groups of which several options are chosen: each file fills `<group>.<option>`."""


def render(catalog: Sequence[Entry] = CATALOG) -> dict[str, str]:
    """Path below conf/ -> text, for every component and for the `none` of every nullable one."""
    classes = {(e.group, e.option): locate(e.target) for e in catalog}
    files = {f"{e.group}/{e.option}.yaml": _File(e, classes).text() for e in catalog}
    for (group, _), cls in classes.items():
        files.update(_nones(cls, group, classes))
    files.update(_nones(locate("gameagent.experiment.Experiment"), "", classes))
    return dict(sorted(files.items()))


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Make `folder` hold these files, and no others in the groups that they belong to."""
    for path in stale(folder, files):
        path.unlink()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def differences(folder: Path, files: Mapping[str, str]) -> list[str]:
    """One line for every file that is missing, differs, or has no component any more."""
    found = [f"{path.relative_to(folder)}: no component makes this file" for path in stale(folder, files)]
    for name, text in files.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name}: missing")
        elif path.read_text(encoding="utf-8") != text:
            found.append(f"{name}: differs from its class")
    return found


def stale(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Files in generated groups that nothing generates."""
    groups = {name.partition("/")[0] for name in files}
    found = [path for group in sorted(groups) for path in sorted((folder / group).rglob("*.yaml"))]
    return [path for path in found if path.relative_to(folder).as_posix() not in files]


class _File:
    """One component's file."""

    def __init__(self, entry: Entry, classes: Mapping[tuple[str, str], type[Any]]) -> None:
        self.entry, self.classes = entry, classes
        self.cls = classes[entry.group, entry.option]
        self.docs = field_docs(self.cls)
        unknown = set(entry.preset) - {f.name for f in fields(self.cls)}
        if unknown:
            raise ValueError(
                f"catalog: {entry.group}/{entry.option} presets {sorted(unknown)}, unknown to {self.cls.__name__}"
            )

    def text(self) -> str:
        """The whole file."""
        package = f"# @package {self.entry.group}.{self.entry.option}\n" if self.entry.group in _NAMED else ""
        defaults: list[str] = []
        body: list[str] = []
        for f in fields(self.cls):
            comment = _comment(self._doc(f))
            option, rest = self._nested(f)
            if option is not None:
                defaults += [*(f"  {line}" for line in comment), f"  - {f.name}: {option}"]
            if rest is not MISSING:
                body += [*([] if option is not None else comment), *_yaml(f.name, rest)]
        head = [
            *_comment(_first_paragraph(self.cls)),
            f"# Written by `make conf` from {self.entry.target}; change it there.",
        ]
        if defaults:
            head += ["defaults:", *defaults, "  - _self_", ""]
        return package + "\n".join([*head, f"_target_: {target_of(self.cls)}", *body]) + "\n"

    def _doc(self, f: Field[Any]) -> str:
        doc = self.docs.get(f.name)
        if doc is None:
            raise ValueError(
                f"{target_of(self.cls)}.{f.name} has no docstring under it; it becomes the comment in conf/"
            )
        members = _members(self.cls.__pydantic_fields__[f.name].annotation)
        return f"{doc} One of: {', '.join(members)}." if members else doc

    def _nested(self, f: Field[Any]) -> tuple[str | None, Any]:
        """Option of the field's own group, and what else the file must say about it (`MISSING`: nothing)."""
        group = f"{self.entry.group}/{f.name}"
        known = {option: cls for (g, option), cls in self.classes.items() if g == group}
        value = self.entry.preset.get(f.name, _default(f))
        if not known:
            return None, _plain(value)
        if isinstance(value, str) and f.name in self.entry.preset:
            return value, MISSING
        if value is None:
            return "none", MISSING
        option = next((o for o, cls in known.items() if cls is type(value)), None)
        if option is None:
            return None, _plain(value)
        changed = {n.name: to_config(v) for n in fields(value) if (v := getattr(value, n.name)) != _default(n)}
        return option, changed or MISSING


def _nones(cls: type[Any], group: str, classes: Mapping[tuple[str, str], type[Any]]) -> dict[str, str]:
    """`none.yaml` for every field of a class that has a group and may be null."""
    files = {}
    for f in fields(cls):
        nested = f"{group}/{f.name}".lstrip("/")
        if any(g == nested for g, _ in classes) and NoneType in get_args(cls.__pydantic_fields__[f.name].annotation):
            package = group.replace("/", ".") or "_global_"
            lines = [f"# @package {package}", *_comment(f"None: {field_docs(cls)[f.name]}"), f"{f.name}: null"]
            files[f"{nested}/none.yaml"] = "\n".join(lines) + "\n"
    return files


def field_docs(cls: type[Any]) -> dict[str, str]:
    """Docstring under each field, those of base classes included, on one line each."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ in ("builtins", "abc", "typing"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for statement, following in pairwise(statements):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                text = following.value.value if _is_text(following) else None  # type: ignore[attr-defined]
                if text is not None:
                    docs[statement.target.id] = " ".join(text.split())
    return docs


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _default(f: Field[Any]) -> Any:
    if f.default is not MISSING:
        return f.default
    return f.default_factory() if f.default_factory is not MISSING else MISSING


def _plain(value: Any) -> Any:
    return "???" if value is MISSING else to_config(value)


def _members(annotation: Any) -> list[str]:
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(member.value) for member in kind]
    return []


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _first_paragraph(cls: type[Any]) -> str:
    return " ".join((inspect.getdoc(cls) or cls.__name__).split("\n\n")[0].split())


class _Dumper(yaml.SafeDumper):
    """Floats as Python writes them."""


def _float(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    text = repr(value)
    text = text.replace("e", ".0e") if "e" in text and "." not in text else text
    return dumper.represent_scalar(
        "tag:yaml.org,2002:float", {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)
    )


_Dumper.add_representer(float, _float)


def _yaml(name: str, value: Any) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [f"{name}:", *(f"  {line}" for key, part in value.items() for line in _yaml(str(key), part))]
    if isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        return [f"{name}:", *(f"  {line}" for line in _dump(value, flow=False))]
    return [f"{name}: {' '.join(_dump(value, flow=True))}"]


def _dump(value: Any, *, flow: bool) -> list[str]:
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=flow)
    return text.removesuffix("...\n").rstrip("\n").split("\n")


def main(arguments: Sequence[str]) -> int:
    """Write conf/, or with `--check` only say what differs. Gives the exit code."""
    folder, files = home() / "conf", render()
    if "--check" not in arguments:
        write(folder, files)
        return 0
    found = differences(folder, files)
    print("\n".join([*found, "type: make conf"] if found else [f"conf/: {len(files)} files agree with the components"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
