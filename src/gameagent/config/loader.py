"""Hydra's config loader with what gameagent needs on top: swapped components, saved runs as a start, readable errors.

    loader = make_loader(repair); cfg = loader.load_configuration("config", ["learner=sft"], RunMode.RUN)

Hydra itself (run, multirun, --cfg, launchers) works with the same loader: a run of a sweep is composed like any other.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.default_element import ConfigDefault, GroupDefault, InputDefault
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.types import Override
from hydra.core.utils import setup_globals
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, flag_override
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from gameagent.config.sources import conf_folders, sweep_folders

SAVED = "_saved_run_"
"""Name under which a loader's `base` is the primary config."""
EXTRA_GROUPS = ("experiment", "sweeps")
"""Groups that are added (`+experiment=x`), never chosen by default."""
COMPOSITION_ERRORS = (HydraException, OmegaConfBaseException, YAMLError, ValueError, TypeError, AssertionError, OSError)
"""What Hydra raises for input that it can't compose."""

Rest = tuple[RunMode, bool, bool]
"""The other arguments of `ConfigLoaderImpl.load_configuration`: run_mode, from_shell, validate_sweep_overrides."""
Repair = Callable[["Loader", "str | None", "list[str]", Rest, Exception], "list[str]"]


class SweepsSource(FileConfigSource):
    """The folder that holds sweeps/, and nothing else in it: `tests` or `seed` there must not become groups."""

    @staticmethod
    def scheme() -> str:
        """The search path's prefix."""
        return "sweeps"

    def is_group(self, config_path: str) -> bool:
        """Whether it is the root, sweeps/ or below."""
        return _is_sweep(config_path, root=True) and super().is_group(config_path)

    def is_config(self, config_path: str) -> bool:
        """Whether it is a file in sweeps/."""
        return _is_sweep(config_path, root=False) and super().is_config(config_path)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """What lies in it."""
        return super().list(config_path, results_filter) if _is_sweep(config_path, root=True) else []


def _is_sweep(config_path: str, root: bool) -> bool:
    parts = Path(config_path).parts
    return parts[:1] == ("sweeps",) or (root and not parts)


class Loader(ConfigLoaderImpl):
    """Composes as Hydra does; see the module.

    Args:
        search_path: where Hydra looks for files.
        base: a saved configuration that stands for the primary config.
        repair: `repair(loader, config_name, overrides, rest, error)` gives overrides that compose where `overrides`
            do not, or raises (config/diagnosis.py).
    """

    def __init__(self, search_path: Any, base: dict[str, Any] | None, repair: Repair) -> None:
        super().__init__(config_search_path=search_path)
        self.base = base
        self.repair = repair
        self.notes: dict[str, None] = {}
        """What was dropped from experiment files because a component was swapped, one line each; a dict keeps order."""

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """Compose.

        Raises:
            ConfigError: with every mistake in `overrides`.
        """
        rest = (run_mode, from_shell, validate_sweep_overrides)
        try:
            cfg = self.plainly(config_name, overrides, rest)
        except COMPOSITION_ERRORS as error:
            overrides = self.repair(self, config_name, overrides, rest, error)
            cfg = self.plainly(config_name, overrides, rest)
        self._drop_leftovers(cfg, config_name, overrides)
        return cfg

    def plainly(self, config_name: str | None, overrides: list[str], rest: Rest) -> DictConfig:
        """Compose as Hydra does, its own errors included."""
        return super().load_configuration(config_name, overrides, *rest)

    def own_target(
        self, cfg: DictConfig, repository: CachingConfigRepository, key: str
    ) -> tuple[str | None, DictConfig]:
        """`_target_` and keys of the config file chosen for the component at `key`; (None, {}) where none was."""
        group, choices = key.replace(".", "/"), cfg.hydra.runtime.choices
        parent, _, name = group.rpartition("/")
        file = f"{group}/{choices[group]}" if group in choices else f"{parent}/{name}" if parent in choices else None
        result = repository.load_config(file) if file is not None and repository.config_exists(file) else None
        config = result.config if result is not None and isinstance(result.config, DictConfig) else OmegaConf.create({})
        return config.get("_target_"), config

    def _drop_leftovers(self, cfg: DictConfig, config_name: str | None, overrides: list[str]) -> None:
        """A `_target_` set by hand leaves keys of the component it replaced: drop those that the new class lacks."""
        nodes = dict(_components(cfg))
        repository: CachingConfigRepository | None = None
        for key, node in nodes.items():
            target = str(node["_target_"])
            if target.startswith("gameagent.") and not any(f"{key}._target_" in text for text in overrides):
                continue
            repository = repository or self._parse_overrides_and_create_caching_repo(config_name, overrides)[1]
            own, config = self.own_target(cfg, repository, key)
            if own is None or own == target:
                continue
            group, choices = key.replace(".", "/"), cfg.hydra.runtime.choices
            typed = {text.lstrip("+").partition("=")[0].removeprefix(f"{key}.").partition(".")[0] for text in overrides}
            for name in set(map(str, node)) - _fields(target) - typed - {"_target_"}:
                if name in config or f"{group}/{name}" in choices:
                    with flag_override(node, ["struct", "readonly"], False):
                        del node[name]

    def _parse_overrides_and_create_caching_repo(
        self, config_name: str | None, overrides: list[str]
    ) -> tuple[list[Override], CachingConfigRepository]:
        parsed, repository = super()._parse_overrides_and_create_caching_repo(config_name, overrides)
        return parsed, Repository(self, repository, config_name, parsed)


class Repository(CachingConfigRepository):
    """Config files as one composition sees them: without what belongs to components that its overrides swapped away."""

    def __init__(
        self, loader: Loader, files: CachingConfigRepository, primary: str | None, parsed: list[Override]
    ) -> None:
        super().__init__(files)
        self._loader, self._primary = loader, primary
        self._chosen: dict[str, Any] = {
            o.key_or_group: o.value()
            for o in parsed
            if not (o.is_sweep_override() or o.is_add() or o.is_delete() or o.package)
            and self.group_exists(o.key_or_group)
        }
        self._swept = [o.key_or_group for o in parsed if o.is_sweep_override() and self.group_exists(o.key_or_group)]

    def load_config(self, config_path: str) -> ConfigResult | None:
        """The file, pruned."""
        key = f"config_path={config_path}"
        if key not in self.cache:
            if config_path == SAVED:
                self.cache[key] = self._saved()
            elif (result := super().load_config(config_path)) is not None and self._is_global(config_path, result):
                self._prune(config_path, result)
        return self.cache[key]

    def config_exists(self, config_path: str) -> bool:
        """Whether there is such a file."""
        return config_path == SAVED or super().config_exists(config_path)

    def _is_global(self, config_path: str, result: ConfigResult) -> bool:
        at_root = result.header.get("package") == "_global_" or config_path == self._primary
        return at_root and isinstance(result.config, DictConfig) and not config_path.startswith("hydra/")

    def _saved(self) -> ConfigResult:
        """The saved run as a primary config. Groups chosen anew leave it, and join its defaults list instead."""
        base = copy.deepcopy(self._loader.base or {})
        chosen = [g for g in sorted({*self._chosen, *self._swept}) if not g.startswith("hydra/")]
        chosen = [g for g in chosen if not any(g.startswith(f"{other}/") for other in chosen)]
        for group in chosen:
            _pop(base, group.split("/"))
        own = super().load_config("config")
        hydra = own.config["hydra"] if own is not None and isinstance(own.config, DictConfig) else {}
        defaults: list[InputDefault] = [ConfigDefault(path="_self_")]
        defaults += [GroupDefault(group=group, value=None) for group in chosen]
        return ConfigResult(
            provider="saved run",
            path="the saved run",
            config=OmegaConf.create({**base, "hydra": hydra}),
            header={"package": None},
            defaults_list=defaults,
        )

    def _prune(self, config_path: str, result: ConfigResult) -> None:
        """Take out of a file what it sets for components that it meant and the user swapped for others."""
        defaults = result.defaults_list or []
        for group, chosen in self._chosen.items():
            if config_path.startswith(f"{group}/"):
                continue
            meant = self._choice(group, defaults)
            if meant is None or _names(meant) == _names(chosen):
                continue
            result.defaults_list = defaults = [d for d in defaults if not _overrides_part(d, group)]
            path = group.split("/")
            gone = [[*path, n] for n in sorted(_names(meant) - _names(chosen))] if isinstance(meant, list) else [path]
            lost = [text for where in gone for text in _pop(result.config, where)]
            if lost and config_path != self._primary:
                given = f"[{','.join(chosen)}]" if isinstance(chosen, list) else chosen
                self._loader.notes[f"{config_path}.yaml: {', '.join(lost)} dropped, as you chose {group}={given}"] = (
                    None
                )

    def _choice(self, group: str, defaults: list[InputDefault], chosen_first: bool = False) -> Any:
        """Option of `group` that a file with these `defaults` means: its own override, else what stands by default."""
        if chosen_first and group in self._chosen:
            return self._chosen[group]
        for default in defaults:
            if isinstance(default, GroupDefault) and default.override and str(default.group).lstrip("/") == group:
                return default.value
        parent, _, part = group.rpartition("/")
        if parent:
            option = self._choice(parent, defaults, chosen_first=True)
            files = [f"{parent}/{option}"] if isinstance(option, str) else []
        else:
            files = [name for name in (self._primary, "config") if name is not None and name != SAVED]
        for file in files:
            result = self.delegate.load_config(file) if self.delegate.config_exists(file) else None
            for default in (result.defaults_list or []) if result else []:
                if isinstance(default, GroupDefault) and not default.override and default.group == part:
                    return default.value
        return None


def _components(node: Any, key: str = "") -> Iterator[tuple[str, DictConfig]]:
    for name in list(node):
        child = node._get_node(name)
        if (
            isinstance(child, DictConfig)
            and not child._is_none()
            and not child._is_missing()
            and (key or name != "hydra")
        ):
            if "_target_" in child:
                yield f"{key}{name}", child
            yield from _components(child, f"{key}{name}.")


def _fields(target: str) -> set[str]:
    """Keys of a component class; none where it can't be imported, which the check of the configuration then tells."""
    from gameagent.component import locate  # pydantic: only where a class was named by hand

    try:
        return {f.name for f in fields(locate(target))}
    except (ImportError, TypeError):
        return set()


def _names(option: Any) -> set[str]:
    return set(map(str, option)) if isinstance(option, list) else {str(option)}


def _overrides_part(default: InputDefault, group: str) -> bool:
    return (
        isinstance(default, GroupDefault)
        and default.override
        and str(default.group).lstrip("/").startswith(f"{group}/")
    )


def _pop(node: Any, path: list[str]) -> list[str]:
    """Take `path` out of nested dicts. Gives what was there, as key=value texts."""
    for part in path[:-1]:
        node = node.get(part) if isinstance(node, dict | DictConfig) else None
    if not isinstance(node, dict | DictConfig) or path[-1] not in node:
        return []
    value = node.pop(path[-1])
    plain = OmegaConf.to_container(value, resolve=False) if OmegaConf.is_config(value) else value
    return list(_texts(".".join(path), plain))


def _texts(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _texts(f"{key}.{name}", part)
    else:
        yield f"{key}={value}"


def make_loader(
    repair: Repair,
    *,
    config_dir: Path | str | None = None,
    config_path: Path | str | None = None,
    base: dict[str, Any] | None = None,
) -> Loader:
    """A loader over all sources. `config_path`: a folder whose files come before all others.

    Raises:
        ConfigError: a folder is missing.
    """
    version.setbase("1.3")
    setup_globals()
    SourcesRegistry.instance().register(SweepsSource)
    OmegaConf.register_new_resolver("slug", slug, replace=True)
    folders = conf_folders(config_dir)
    first = Path(config_path).resolve() if config_path is not None else folders.pop(0).path
    search_path = create_config_search_path(str(first))
    schema = SearchPathQuery(provider="schema")
    for provider, path in folders:
        search_path.prepend(provider=provider, path=f"file://{path}", anchor=schema)
    for path in sweep_folders():
        search_path.prepend(provider="sweeps", path=f"sweeps://{path}", anchor=schema)
    return Loader(search_path, base, repair)


def slug(number: object, text: object) -> str:
    """Name of a sweep's run folder: its number and what was varied, fit for any file system."""
    return re.sub(r"[^\w=,.+-]+", "_", f"{number}-{text}").strip("_-")[:100]
