"""Why Hydra could not compose: every mistake in the overrides found and worded, harmless ones repaired.

    overrides = repair(loader, "config", ["lerner.lr=1"], rest, error)  # raises ConfigError: did you mean 'learner.lr'?

Hydra stops at the first mistake and advises `+key=…`, which would add a typo to the configuration.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from hydra._internal.config_repository import CachingConfigRepository
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, ConfigTypeError, OmegaConfBaseException

from gameagent.config.loader import COMPOSITION_ERRORS, EXTRA_GROUPS, SAVED, Loader, Rest
from gameagent.errors import ConfigError


class OverridesError(ConfigError):
    """Mistakes in overrides. `good` are the others, so that the rest of the configuration can be checked as well."""

    def __init__(self, problems: list[str], good: list[str]) -> None:
        super().__init__(problems)
        self.good = good


def repair(loader: Loader, config_name: str | None, overrides: list[str], rest: Rest, error: Exception) -> list[str]:
    """Overrides that compose, where what is wrong leaves no doubt about what was meant.

    Repaired are `experiment=x` (wants a +), `+learner=sft` (wants none), `learner=null` (the option is `none`), and a
    new key in a field that is an open mapping.

    Raises:
        OverridesError: all mistakes, where there is doubt.
        ConfigError: the mistake is not in the overrides but in a file.
    """
    search = _Search(loader, config_name, rest)
    parsed = search.parse(overrides)
    search.groups(parsed)
    if (cfg := search.compose(error)) is not None:
        search.values(parsed, cfg)
    if search.problems:
        raise OverridesError(search.problems, search.fixed)
    if search.fixed == overrides:
        raise ConfigError(worded(error))
    return search.fixed


def nearest(given: str, known: list[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'x'?`, or nothing."""
    found = get_close_matches(given, known, n=1, cutoff=cutoff)
    return f"; did you mean {found[0]!r}?" if found else ""


def choices(given: str, known: list[str], have: str) -> str:
    """The nearest name, then all of them: `; did you mean 'x'? There are: x, y`."""
    near = nearest(given, known)
    return f"{near} {have.capitalize()}: {', '.join(known)}" if near else f"; {have}: {', '.join(known) or 'none'}"


def worded(error: BaseException) -> str:
    """Hydra's own message, on one line, without its advice to add keys and its list of search paths."""
    causes = [error, *([error.__cause__] if error.__cause__ else [])]
    text = " ".join(str(cause) for cause in causes if str(cause)) or type(error).__name__
    text = re.sub(
        r"To append [^\n]*|See https?:[^\n]*|(Config search|Search) path:.*|full_key:.*|object_type=\S*",
        "",
        text,
        flags=re.DOTALL,
    )
    return " ".join(text.split())


@dataclass
class _Search:
    loader: Loader
    config_name: str | None
    rest: Rest
    problems: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)
    repository: CachingConfigRepository = field(init=False)

    def parse(self, overrides: list[str]) -> list[Override]:
        """What can be read at all."""
        parser, parsed = OverridesParser.create(config_loader=self.loader), []
        for text in overrides:
            try:
                parsed += parser.parse_overrides([text])
            except HydraException as error:
                self.problems.append(_syntax(text, error))
        self.repository = self._repository([o.input_line or "" for o in parsed if o.key_or_group == "hydra.searchpath"])
        return parsed

    def _repository(self, search_path: list[str]) -> CachingConfigRepository:
        try:
            return self.loader._parse_overrides_and_create_caching_repo(self.config_name, search_path)[1]
        except COMPOSITION_ERRORS as error:
            raise ConfigError(worded(error)) from error

    def is_group(self, override: Override) -> bool:
        return self.repository.group_exists(override.key_or_group) and not isinstance(override.value(), dict)

    def options(self, group: str) -> list[str]:
        return self.repository.get_group_options(group, ObjectType.CONFIG)

    def groups(self, parsed: list[Override]) -> None:
        """Put into `fixed` the choices that are possible, parents before their parts."""
        chosen = [o for o in parsed if self.is_group(o) or o.is_hydra_override()]
        for override in sorted(chosen, key=lambda o: o.key_or_group.count("/")):
            text = self._mended(override)
            if override.is_hydra_override() and not self.is_group(override):
                self.fixed.append(text)
            elif (
                problem := self._wrong_option(override)
                or self._ambiguous(override)
                or self._wrong_place(override, text)
            ):
                self.problems.append(problem)
            else:
                self.fixed.append(text)

    def _mended(self, override: Override) -> str:
        text, group = override.input_line or "", override.key_or_group
        if override.is_delete():
            return text
        if override.value() is None and "none" in self.options(group):
            text = f"{group}=none"
        if group in EXTRA_GROUPS:
            return f"+{text.lstrip('+')}"
        return text.lstrip("+") if self._defaults([text.lstrip("+")]) else text

    def _wrong_option(self, override: Override) -> str | None:
        group, known = override.key_or_group, self.options(override.key_or_group)
        if override.is_delete() or (override.value() is None and "none" in known):
            return None
        given = override.value() if not override.is_sweep_override() else _swept(override)
        for option in given if isinstance(given, list) else [given]:
            if not isinstance(option, str) or not self.repository.config_exists(f"{group}/{option}"):
                kind = "experiment" if group == "experiment" else f"option of {group}"
                which = choices(str(option), known, "there are")
                return f"{override.input_line}: there is no {kind} {str(option)!r}{which}"
        return None

    def _ambiguous(self, override: Override) -> str | None:
        if override.is_sweep_override() and self.rest[0] == RunMode.RUN and self.rest[2]:
            return _needs_multirun(override)
        return None

    def _wrong_place(self, override: Override, text: str) -> str | None:
        """A part (`job/sampler`) of a component that has none, or an experiment for a saved run."""
        group = override.key_or_group
        if group == "experiment" and self.config_name == SAVED:
            return f"{text}: a saved run is complete, no experiment can be laid over it; set single keys instead"
        if override.is_sweep_override() or self._defaults([text]):
            return None
        parent, _, part = group.rpartition("/")
        if not parent:
            return f"{text}: {worded(self._error([text]) or ValueError('this group is not in use'))}"
        owners = [o for o in self.options(parent) if self._has_part(f"{parent}/{o}", part)]
        have = ", ".join(owners) or "none"
        return f"{text}: the chosen {parent} has no part {part!r}; {parent} options that have one: {have}"

    def _has_part(self, config: str, part: str) -> bool:
        result = self.repository.load_config(config)
        defaults = (result.defaults_list or []) if result is not None else []
        return any(getattr(d, "group", None) == part for d in defaults)

    def _defaults(self, more: list[str]) -> bool:
        return self._error(more) is None

    def _error(self, more: list[str]) -> Exception | None:
        try:
            self.loader.compute_defaults_list(self.config_name, [*self.fixed, *more], self.rest[0])
        except COMPOSITION_ERRORS as error:
            return error
        return None

    def compose(self, error: Exception) -> DictConfig | None:
        """The configuration with the choices only; None where that fails too, for a reason then told."""
        try:
            return self.loader.plainly(self.config_name, self.fixed, self.rest)
        except COMPOSITION_ERRORS as again:
            if isinstance(again, MissingConfigException) or not self.problems:
                self.problems.append(worded(again) or worded(error))
            return None

    def values(self, parsed: list[Override], cfg: DictConfig) -> None:
        """Apply every `key=value`, noting those that can't be."""
        cfg = copy.deepcopy(cfg)
        for override in sorted(parsed, key=lambda o: not o.key_or_group.endswith("._target_")):
            if self.is_group(override) or override.is_hydra_override():
                continue
            text = override.input_line or ""
            if override.is_sweep_override():
                problem = self._ambiguous(override) or (None if _exists(cfg, override) else self._no_key(override, cfg))
            elif not _exists(cfg, override) and not self._is_open(cfg, override.key_or_group):
                problem = self._no_key(override, cfg)
            else:
                text = text if _exists(cfg, override) or override.is_delete() else f"++{text.lstrip('+')}"
                problem = self._apply([text], cfg)
            if problem:
                self.problems.append(problem)
            else:
                self.fixed.append(text)

    def _is_open(self, cfg: DictConfig, key: str) -> bool:
        """Whether a key may be new: in a mapping that is a component's field, or where `_target_` was set by hand."""
        parent = key.rpartition(".")[0]
        node = _select(cfg, parent)
        if isinstance(node, DictConfig) and "_target_" in node:
            return self.loader.own_target(cfg, self.repository, parent)[0] not in (None, node["_target_"])
        return _is_open(cfg, key)

    def _apply(self, texts: list[str], cfg: DictConfig) -> str | None:
        try:
            self.loader._apply_overrides_to_config(OverridesParser.create().parse_overrides(texts), cfg)
        except COMPOSITION_ERRORS as error:
            return f"{texts[0]}: {worded(error)}"
        return None

    def _no_key(self, override: Override, cfg: DictConfig) -> str:
        key, text = override.key_or_group, override.input_line
        groups = [g for g in self._all_groups() if g not in EXTRA_GROUPS]
        if "/" in key:
            return f"{text}: there is no group {key!r}{nearest(key, groups)}"
        parent, _, name = key.rpartition(".")
        if reason := self._not_chosen(parent, name, cfg):
            return f"{text}: {reason}"
        known = [k for k in _all_keys(cfg) if not k.endswith("_target_")]
        node = _select(cfg, parent) if parent else cfg
        if not isinstance(node, DictConfig):
            return f"{text}: there is no key {key!r}{nearest(key, known)}"
        have = sorted(str(k) for k in node if k not in ("_target_", "hydra"))
        if near := get_close_matches(name, have, n=1):
            return f"{text}: there is no key {key!r}; did you mean {f'{parent}.{near[0]}'.lstrip('.')!r}?"
        if same := [k for k in known if k.endswith(f".{name}")]:
            return f"{text}: there is no key {key!r}; did you mean {' or '.join(map(repr, same[:3]))}?"
        return f"{text}: {parent or 'the configuration'} has no key {name!r}; it has: {', '.join(have)}"

    def _not_chosen(self, parent: str, name: str, cfg: DictConfig) -> str | None:
        """The key belongs to a component that exists but isn't chosen."""
        group, _, option = parent.replace(".", "/").rpartition("/")
        if (
            group
            and option in self.options(group)
            and _select(cfg, parent) is None
            and self.repository.group_exists(group)
        ):
            return f"{parent} isn't chosen; add {option} to {group}=[…]"
        if not parent or not self.repository.group_exists(group := parent.replace(".", "/")):
            return None
        owners = [o for o in self.options(group) if self._has_key(f"{group}/{o}", name)]
        if _select(cfg, parent) is None:
            return f"{parent} is null; choose one: {group}={'|'.join(owners or self.options(group))}"
        return f"the chosen {group} has no key {name!r}; {group}={'|'.join(owners)} has" if owners else None

    def _has_key(self, config: str, name: str) -> bool:
        result = self.repository.load_config(config)
        return result is not None and isinstance(result.config, DictConfig) and name in result.config

    def _all_groups(self, parent: str = "") -> list[str]:
        groups = []
        for name in self.repository.get_group_options(parent, ObjectType.GROUP):
            group = f"{parent}/{name}" if parent else name
            groups += [group, *self._all_groups(group)] if name != "hydra" else []
        return groups


def _syntax(text: str, error: HydraException) -> str:
    if "=" not in text and not text.startswith("~"):
        return f"{text}: this is no override; type key=value or group=option (flags begin with --)"
    key, _, value = text.partition("=")
    where = re.search(r"char (\d+)", str(error))
    place = f" at character {int(where.group(1)) + 1}" if where else ""
    return f"{text}: can't be read{place}; put a value with special characters into quotes: '{key}=\"{value}\"'"


def _needs_multirun(override: Override) -> str:
    key, value = override.key_or_group, override.get_value_string()
    ways = f"One run for each: add -m. One list: {key}=[{value}]. One text: {key}=\\'{value}\\'"
    return f"{override.input_line}: several values. {ways}"


def _swept(override: Override) -> list[Any]:
    try:
        return [str(value) for value in override.sweep_iterator()]
    except HydraException:
        return []


def _select(cfg: DictConfig, key: str) -> Any:
    try:
        return OmegaConf.select(cfg, key, throw_on_missing=False)
    except OmegaConfBaseException:
        return None


def _exists(cfg: DictConfig, override: Override) -> bool:
    try:
        parent, _, name = override.key_or_group.rpartition(".")
        node = OmegaConf.select(cfg, parent) if parent else cfg
        if isinstance(node, ListConfig):
            return name.isdigit() and int(name) < len(node)
        return isinstance(node, DictConfig) and name in node.keys()  # noqa: SIM118 - `in` hides keys whose value is ???
    except (ConfigAttributeError, ConfigKeyError, ConfigTypeError, OmegaConfBaseException):
        return False


def _is_open(cfg: DictConfig, key: str) -> bool:
    """Whether `key` would be new in a mapping that is one field of a component: any key is allowed there."""
    parent = _select(cfg, key.rpartition(".")[0])
    if not isinstance(parent, DictConfig) or "_target_" in parent:
        return False
    path = key.split(".")[:-1]
    nodes = [_select(cfg, ".".join(path[:depth])) for depth in range(1, len(path))]
    inside = any(isinstance(node, DictConfig) and "_target_" in node for node in nodes)
    return inside and not any(isinstance(v, DictConfig) and "_target_" in v for v in parent.values())


def _all_keys(node: Any, prefix: str = "") -> list[str]:
    keys = []
    for name in node if isinstance(node, DictConfig) else ():
        if prefix or name != "hydra":
            key = f"{prefix}{name!s}"
            keys += [key, *_all_keys(node._get_node(name), f"{key}.")]
    return keys
