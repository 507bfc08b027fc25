"""The one decorator behind every component, and the plain form that a component is saved in.

`@component` makes a frozen, keyword-only dataclass whose fields are checked when it is built, whoever builds it:
Python, Hydra's `instantiate`, a saved policy. `to_config` turns one into plain `_target_` dicts, `from_config` back.
Building one imports the module that defines it, so `check_trusted` limits which ones a saved file may name.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import Field as DataclassField
from dataclasses import field, fields, is_dataclass
from enum import Enum
from importlib.metadata import entry_points
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any, TypeVar, dataclass_transform, get_args

import pydantic.dataclasses
from pydantic import ConfigDict, model_validator
from pydantic.fields import Field
from pydantic_core import ArgsKwargs

__all__ = [
    "TRUST",
    "ComponentFileError",
    "UntrustedError",
    "check_trusted",
    "component",
    "from_config",
    "is_component",
    "locate",
    "target_of",
    "to_config",
    "wrong_bools",
]

T = TypeVar("T")
Plain = Any
"""None, bool, int, float, str, or lists and string-keyed dicts of these."""

_CHECKS = ConfigDict(arbitrary_types_allowed=True, extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)
_MARK = "__gameagent_component__"
_FILE_MODULE = "gameagent_file_"
_PLUGINS = "gameagent.plugins"
TRUST = "GAMEAGENT_TRUST"
"""Environment variable: folders, separated by `os.pathsep`, whose Python files a saved file may run."""


class UntrustedError(ImportError):
    """A saved file names code that nobody here has chosen to run."""


class ComponentFileError(ImportError):
    """The file of a component is missing or broken; `path` names it."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field, Field, DataclassField))
def component(cls: type[T]) -> type[T]:
    """Make `cls` a component: a frozen, keyword-only dataclass that refuses wrong types and unknown keys.

    Fields are the component's configuration. Put a docstring under each one: meaning, unit, range. Annotate fields that
    hold components with a plain base class (`encoder: Encoder`); an object of another kind is then refused.
    """
    before: Any = model_validator(mode="before")
    type.__setattr__(cls, "__refuse_wrong_bools__", before(classmethod(_refuse_wrong_bools)))
    made = pydantic.dataclasses.dataclass(cls, frozen=True, kw_only=True, config=_CHECKS)
    setattr(made, _MARK, True)
    return made  # type: ignore[return-value]


def is_component(cls: object) -> bool:
    """Whether `cls` is a class made by `component`."""
    return isinstance(cls, type) and is_dataclass(cls) and getattr(cls, _MARK, False)


def wrong_bools(cls: type[Any], values: Mapping[str, Any]) -> list[str]:
    """Names of `values` that hold True or False where the field takes none: pydantic would read them as 1 or 0."""
    known = getattr(cls, "__pydantic_fields__", {})
    return [k for k, v in values.items() if k in known and _holds_bool(v) and not _takes_bool(known[k].annotation)]


def _refuse_wrong_bools(cls: type[Any], values: Any) -> Any:
    given = values.kwargs if isinstance(values, ArgsKwargs) else values
    if isinstance(given, Mapping) and (wrong := wrong_bools(cls, given)):
        raise ValueError(f"{', '.join(wrong)}: true or false is not allowed here")
    return values


def _holds_bool(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_bool, value.values()))
    return isinstance(value, bool) or (isinstance(value, list | tuple) and any(map(_holds_bool, value)))


def _takes_bool(annotation: object) -> bool:
    return any(annotation is x for x in (bool, Any, object, True, False)) or any(map(_takes_bool, get_args(annotation)))


def target_of(cls: type[Any]) -> str:
    """What to write behind `_target_` for a component class: `package.module.Class`, or `/path/to/file.py:Class`."""
    if cls.__module__.startswith(_FILE_MODULE):
        return f"{sys.modules[cls.__module__].__file__}:{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def to_config(value: object) -> Plain:
    """The plain form of a component (or of a container of components): dicts with a `_target_` key, lists, scalars.

    Raises:
        TypeError: a value has no plain form.
    """
    if is_component(type(value)):
        plain = {f.name: to_config(getattr(value, f.name)) for f in fields(value)}  # type: ignore[arg-type]
        return {"_target_": target_of(type(value)), **plain}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): to_config(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_config(v) for v in value]
    raise TypeError(
        f"{type(value).__name__} has no plain form; a component's fields hold scalars, lists, dicts, components"
    )


def locate(target: str) -> type[Any]:
    """The component class that a `_target_` names: `gameagent.learn.ppo.PPO`, or `./my_reward.py:MyReward` for a file.

    Raises:
        ImportError: no such file, module or class, or it fails to import.
        TypeError: it is not a component, and so nothing that a saved file may build.
    """
    file, _, name = target.rpartition(":")
    if file.endswith(".py"):
        module = _load_file(Path(file).expanduser().resolve())
    else:
        module_name, _, name = target.replace(":", ".").rpartition(".")
        if not module_name:
            raise ImportError(f"{target!r} names no module; write package.module.Class or ./file.py:Class")
        module = importlib.import_module(module_name)
    if not hasattr(module, name):
        if file.endswith(".py"):
            raise ComponentFileError(f"{file} has no {name!r}", path=module.__file__)
        raise ImportError(f"{module.__name__} has no {name!r}")
    found = getattr(module, name)
    if not is_component(found):
        raise TypeError(f"{target} is no component; decorate the class with @gameagent.component.component")
    return found  # type: ignore[no-any-return]


def _load_file(path: Path) -> ModuleType:
    """Import a file under a name that depends on its path alone, so that the same file is always the same module."""
    name = _module_of(path)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ComponentFileError(f"there is no file {path}", path=str(path))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ComponentFileError(f"{path} fails to import: {type(error).__name__}: {error}", path=str(path)) from error
    return module


def _module_of(path: Path) -> str:
    return f"{_FILE_MODULE}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"


def check_trusted(target: str) -> None:
    """Refuse a `_target_` of a saved file whose import would run code that nobody here has chosen. Imports nothing.

    Trusted are modules of gameagent, modules that are imported already, packages with an entry point in the group
    `gameagent.plugins`; and files that are loaded already or lie below the current folder or one of `$GAMEAGENT_TRUST`.
    What doesn't exist passes: `locate` tells that better.

    Raises UntrustedError.
    """
    file, _, _ = target.rpartition(":")
    if file.endswith(".py"):
        path = Path(file).expanduser().resolve()
        if path.is_file() and _module_of(path) not in sys.modules and not _below_trusted(path):
            raise UntrustedError(
                f"{target} would run {path}, which is neither below the current folder nor trusted; if you trust that "
                f"file, type cd {path.parent} or export {TRUST}={path.parent}"
            )
        return
    module = target.replace(":", ".").rpartition(".")[0]
    package = module.partition(".")[0]
    if package == "gameagent" or module in sys.modules or not package or importlib.util.find_spec(package) is None:
        return
    if package not in {
        entry.value.partition(":")[0].partition(".")[0].strip() for entry in entry_points(group=_PLUGINS)
    }:
        raise UntrustedError(
            f"{target} would run the module {module}, which is not imported and whose package {package} is no plugin "
            f"of gameagent; if you trust it, type import {module} in Python before loading, or give the package an "
            f"entry point in the group {_PLUGINS}. A component of a file instead (/folder/file.py:Class) may run after "
            f"cd /folder or with {TRUST}=/folder"
        )


def _below_trusted(path: Path) -> bool:
    folders = [Path.cwd(), *(Path(f).expanduser() for f in os.environ.get(TRUST, "").split(os.pathsep) if f)]
    return any(path.is_relative_to(folder.resolve()) for folder in folders)


def from_config(plain: Plain, *, saved: bool = False) -> Any:
    """Build what `to_config` gave. Only component classes are built, never an arbitrary callable.

    Args:
        plain: dicts with a `_target_` key, lists, scalars.
        saved: it comes from a file that anybody may have written, so `check_trusted` is asked before each import.

    Raises:
        UntrustedError: see `check_trusted`.
        ImportError, TypeError: see `locate`.
        pydantic.ValidationError: a value has the wrong type, or a key is unknown.
    """
    if isinstance(plain, Mapping):
        values = {k: from_config(v, saved=saved) for k, v in plain.items() if k != "_target_"}
        if "_target_" not in plain:
            return values
        target = plain["_target_"]
        if not isinstance(target, str):
            raise TypeError(f"_target_ names a class as text, got {target!r}")
        if saved:
            check_trusted(target)
        return locate(target)(**values)
    if isinstance(plain, list | tuple):
        return [from_config(v, saved=saved) for v in plain]
    return plain
