"""Check and build a plain configuration, bottom-up, every mistake at once.

check(plain); experiment = build(plain)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gameagent.component import locate, wrong_bools
from gameagent.config.wording import shown, takes, wrong_value
from gameagent.errors import ConfigError, UserError

if TYPE_CHECKING:
    from gameagent.experiment import Experiment

Origin = Callable[[str], str]
"""Key -> who set it, or an empty text."""

_FAILED: Any = object()
_REQUIRED = "???"


def check(plain: Mapping[str, Any], origin: Origin | None = None) -> None:
    """Raise `ConfigError` with every mistake: key, what was given, what is allowed, and (by `origin`) who set it."""
    components(plain, origin)


def build(plain: Mapping[str, Any], origin: Origin | None = None) -> Experiment:
    """The experiment, each of its components built once.

    Raises:
        ConfigError: with every mistake; nothing is built then.
    """
    from gameagent.experiment import Experiment

    experiment = components(plain, origin)
    if not isinstance(experiment, Experiment):
        raise ConfigError("_target_: the root of a configuration is gameagent.experiment.Experiment")
    return experiment


def components(plain: Any, origin: Origin | None = None) -> Any:
    """Build any tree of `_target_` nodes. Raises ConfigError with every mistake."""
    walk = _Walk(origin or (lambda _: ""))
    built = walk.build(plain, "")
    if walk.problems:
        raise ConfigError(walk.problems)
    return built


class _Walk:
    def __init__(self, origin: Origin) -> None:
        self.problems: list[str] = []
        self._origin = origin

    def build(self, node: Any, key: str) -> Any:
        """The object for a node, or `_FAILED` after noting why."""
        if isinstance(node, Mapping):
            values = {k: self.build(v, _join(key, k)) for k, v in node.items() if k != "_target_"}
            if "_target_" in node:
                return self._component(node["_target_"], values, key)
            return _FAILED if any(v is _FAILED for v in values.values()) else values
        if isinstance(node, list | tuple):
            items = [self.build(value, _join(key, i)) for i, value in enumerate(node)]
            return _FAILED if any(v is _FAILED for v in items) else items
        return node

    def _note(self, key: str, text: str) -> None:
        where = self._origin(key)
        self.problems.append(f"{text}  [{where}]" if where else text)

    def _component(self, target: Any, values: dict[str, Any], key: str) -> Any:
        try:
            cls = locate(target if isinstance(target, str) else "")
        except (ImportError, TypeError) as error:
            self._note(_join(key, "_target_"), f"{_join(key, '_target_')}: {error}")
            return _FAILED
        before = len(self.problems)
        good = self._usable(cls, values, key)
        built = _FAILED
        try:
            built = cls(**good)
        except ValidationError as error:
            self._explain(cls, error, values, key)
        except (ValueError, TypeError, UserError, OSError) as error:
            self._note(key, f"{key or cls.__name__}: {error}")
        failed = len(self.problems) > before or any(v is _FAILED for v in values.values())
        return _FAILED if failed else built

    def _usable(self, cls: type[Any], values: dict[str, Any], key: str) -> dict[str, Any]:
        """Values worth handing to the class, after noting what is wrong with the others."""
        known = [f.name for f in fields(cls)]
        wrong = wrong_bools(cls, {k: v for k, v in values.items() if v is not _FAILED})
        good = {}
        for name, value in values.items():
            full = _join(key, name)
            if name not in known:
                near = get_close_matches(str(name), known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; it has: {', '.join(known) or 'none'}"
                self._note(full, f"{full}: {cls.__name__} has no key {name!r}{hint}")
            elif isinstance(value, str) and value == _REQUIRED:
                self._note(full, f"{full}: required; type {full}=…, {takes(cls, name, full)}")
            elif name in wrong:
                self._note(full, f"{full}: got {shown(value)}; it takes {takes(cls, name, full)}")
            elif value is not _FAILED:
                good[name] = value
        return good

    def _explain(self, cls: type[Any], error: ValidationError, values: dict[str, Any], key: str) -> None:
        seen = set()
        for item in error.errors(include_url=False):
            name = str(item["loc"][0]) if item["loc"] else ""
            full = _join(key, name) if name else key
            if name in seen or (item["type"] == "missing" and name in values):
                continue
            seen.add(name)
            if item["type"] == "missing":
                self._note(full, f"{full}: required; type {full}=…, {takes(cls, name, full)}")
            elif not name:
                self._note(full, f"{full or cls.__name__}: {item['msg'].removeprefix('Value error, ')}")
            else:
                self._note(full, wrong_value(cls, name, full, item))


def _join(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)
