"""Compose a plain configuration from files and overrides; expand a sweep into its runs.

plain = compose(["+experiment=catch_ppo", "learner.lr=1e-4"])
for overrides in expand(["seed=1,2,3"]): compose(overrides)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, flag_override
from omegaconf.errors import OmegaConfBaseException

from gameagent.config.diagnosis import repair, worded
from gameagent.config.loader import COMPOSITION_ERRORS, SAVED, Loader, make_loader
from gameagent.errors import ConfigError

log = logging.getLogger(__name__)


@dataclass
class Composition:
    """What to compose: a loader, the primary config's name, and overrides."""

    loader: Loader
    name: str
    overrides: list[str]

    def config(self, mode: RunMode = RunMode.RUN) -> DictConfig:
        """With the node `hydra`. Raises ConfigError."""
        return self.loader.load_configuration(self.name, self.overrides, mode)

    def origin(self, key: str) -> str:
        """The file that set `key`, or the command line."""
        for text in reversed(self.overrides):
            typed, _, value = text.lstrip("+").partition("=")
            inside = key.startswith(f"{typed}.") and ("." in typed or value.startswith("{"))
            if key == typed.replace("/", ".") or inside:
                return f"typed: {text}"
        try:
            defaults = self.loader.compute_defaults_list(self.name, self.overrides, RunMode.RUN).defaults
            repository = self.loader._parse_overrides_and_create_caching_repo(self.name, self.overrides)[1]
            for default in reversed(defaults):
                result = repository.load_config(default.config_path or "")
                if result is None:
                    continue
                node = self.loader._embed_result_config(result, default.package).config
                if OmegaConf.select(node, key, default=_NOT_THERE, throw_on_missing=False) is not _NOT_THERE:
                    return _file(result.path, default.config_path or "")
        except COMPOSITION_ERRORS:
            log.debug("no origin of %s", key, exc_info=True)
        return ""


_NOT_THERE = object()


def _file(source: str, config_path: str) -> str:
    if "://" not in source:
        return source
    path = Path(source.partition("://")[2]) / f"{config_path}.yaml"
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def compose(
    overrides: Sequence[str] = (),
    *,
    base: Mapping[str, Any] | None = None,
    config_dir: Path | str | None = None,
    config_path: Path | str | None = None,
    config_name: str = "config",
) -> dict[str, Any]:
    """The plain, resolved configuration: dicts with `_target_`, lists, scalars. Imports no component.

    Args:
        overrides: what one types, e.g. `["+experiment=catch_ppo", "learner.lr=1e-4"]`.
        base: a saved configuration to start from in place of conf/config.yaml, e.g. `load(run)`.
        config_dir: folder laid out like conf/ that joins in last.
        config_path: folder whose files come first.
        config_name: primary config.

    Raises:
        ConfigError: with every mistake in the overrides.
    """
    composition = composition_of(
        list(overrides), base=base, config_dir=config_dir, config_path=config_path, config_name=config_name
    )
    plain = to_plain(composition.config())
    for note in composition.loader.notes:
        log.warning(note)
    return plain


def composition_of(
    overrides: list[str],
    *,
    base: Mapping[str, Any] | None = None,
    config_dir: Path | str | None = None,
    config_path: Path | str | None = None,
    config_name: str = "config",
) -> Composition:
    """Everything ready to compose. See `compose`."""
    loader = make_loader(
        repair, config_dir=config_dir, config_path=config_path, base=dict(base) if base is not None else None
    )
    return Composition(loader, SAVED if base is not None else config_name, overrides)


def to_plain(cfg: DictConfig) -> dict[str, Any]:
    """Without Hydra's own node, `${…}` resolved, and files of outside components named by their full path.

    Raises:
        ConfigError: a `${…}` leads nowhere.
    """
    with flag_override(cfg, ["struct", "readonly"], [False, False]):
        own = {str(key): cfg._get_node(key) for key in cfg if key != "hydra"}
    try:
        plain = {
            k: OmegaConf.to_container(v, resolve=True) if OmegaConf.is_config(v) else cfg[k] for k, v in own.items()
        }
    except OmegaConfBaseException as error:
        raise ConfigError(worded(error)) from error
    return {key: _absolute(value) for key, value in plain.items()}


def _absolute(node: Any) -> Any:
    if isinstance(node, list):
        return [_absolute(value) for value in node]
    if not isinstance(node, dict):
        return node
    plain = {str(key): _absolute(value) for key, value in node.items()}
    file, _, name = str(plain.get("_target_", "")).rpartition(":")
    if file.endswith(".py"):
        plain["_target_"] = f"{Path(file).expanduser().resolve()}:{name}"
    return plain


def expand(overrides: Sequence[str], **sources: Any) -> list[list[str]]:
    """The overrides of every run of a grid sweep, in the order in which they run. `sources` as for `compose`.

    Raises:
        ConfigError: a mistake in the overrides.
    """
    return expanded(composition_of(list(overrides), **sources))


def expanded(composition: Composition) -> list[list[str]]:
    """See `expand`; a sweeper other than Hydra's grid chooses as it goes, and then there is nothing to list."""
    cfg = composition.config(RunMode.MULTIRUN)
    if not str(cfg.hydra.sweeper.get("_target_", "")).endswith("BasicSweeper"):
        return []
    params = [f"{key}={value}" for key, value in (cfg.hydra.sweeper.params or {}).items()]
    texts = [*params, *cfg.hydra.overrides.task]
    parser = OverridesParser.create(config_loader=composition.loader)
    try:
        return [job for batch in BasicSweeper.split_arguments(parser.parse_overrides(texts), None) for job in batch]
    except COMPOSITION_ERRORS as error:
        raise ConfigError(worded(error)) from error
