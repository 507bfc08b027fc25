"""Start jobs and sweeps by Hydra, once the configuration is known to be good and the run folder is there.

    code = run(["-m", "seed=1,2", "+experiment=catch_ppo"])

Imports pydantic and numpy only where something is built, so that `--cfg` answers fast.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from hydra._internal.hydra import Hydra
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig

from gameagent.config.composing import Composition, composition_of, expanded, to_plain
from gameagent.config.console import message, program, report
from gameagent.config.diagnosis import OverridesError
from gameagent.config.files import CONFIG, load, overrides_of, save, save_run
from gameagent.config.loader import EXTRA_GROUPS
from gameagent.config.origin import trained_with
from gameagent.errors import ConfigError, UserError

LOCK = ".lock"
"""Held by the process that works in a run folder."""
ERROR = "error.txt"
"""A failed run of a sweep leaves its traceback under this name."""


@dataclass
class Request:
    """What the command line asks for, apart from Hydra's own flags."""

    composition: Composition
    out: Path | None = None
    """Run folder typed as out=PATH or job.resume=PATH."""
    resumed: bool = False
    """Whether `out` holds a run to go on with."""


def run(args: list[str]) -> int:
    """Do what the arguments say. Gives the exit code.

    Raises:
        ConfigError: before anything started.
        KeyboardInterrupt: a signal stopped it.
    """
    parser = get_args_parser()
    parser.prog = program()
    options = parser.parse_intermixed_args(args)
    if options.experimental_rerun is not None:
        raise ConfigError("--experimental-rerun unpickles a file; type --config-path RUN --config-name config instead")
    request = _request(options)
    composition = request.composition
    hydra = Hydra(task_name="gameagent", config_loader=composition.loader)
    GlobalHydra.instance().clear()
    GlobalHydra.instance().initialize(hydra)
    try:
        if options.cfg or options.info or options.hydra_help or options.shell_completion:
            return _show(hydra, options, composition)
        return _sweep(hydra, request) if options.multirun else _single(hydra, request)
    finally:
        GlobalHydra.instance().clear()


def _request(options: argparse.Namespace) -> Request:
    overrides, out, resume = [], None, None
    for text in options.overrides:
        key, _, value = text.lstrip("+").partition("=")
        if key in ("out", "job.resume") and value and value != "null":
            path = _text(text)
            out, resume = (path, resume) if key == "out" else (out, path)
        else:
            overrides.append(text)
    sources: dict[str, Any] = {"config_dir": options.config_dir, "config_name": options.config_name or "config"}
    if resume is not None:
        return _resuming(resume, out, overrides, options)
    if options.config_path is not None:
        sources |= _primary(Path(options.config_path).expanduser(), sources["config_name"])
    elif options.config_dir is not None and options.config_name is None and _is_run(Path(options.config_dir)):
        raise ConfigError(
            f"--config-dir {options.config_dir}: that is a run folder, which --config-dir would not run; type\n"
            f"{program()} --config-path {options.config_dir} --config-name config"
        )
    known = trained_with(overrides) if options.config_path is None and options.config_name is None else None
    if known is not None:
        sources["base"] = known[1]
    composition = composition_of(overrides, **sources)
    if known is not None:
        composition.loader.notes[f"env and policy as in {known[0]}; choose others with env=… or +experiment=…"] = None
    return Request(composition, Path(out).expanduser() if out is not None else None)


def _text(override: str) -> str:
    """Value of an override that is one text."""
    try:
        value = OverridesParser.create().parse_override(override).value()
    except Exception as error:
        key, _, text = override.partition("=")
        raise ConfigError(f"{override}: put a value with special characters into quotes: '{key}=\"{text}\"'") from error
    if not isinstance(value, str | int | float):
        raise ConfigError(f"{override}: it takes one path")
    return str(value)


def _quoted(path: Path) -> str:
    escaped = str(path).replace("'", "\\'")
    return f"'{escaped}'"


def _is_run(folder: Path) -> bool:
    file = folder.expanduser() / CONFIG
    return file.is_file() and _is_saved(load(file))


def _is_saved(plain: dict[str, Any]) -> bool:
    return "defaults" not in plain and str(plain.get("_target_", "")).endswith("Experiment")


def _primary(folder: Path, name: str) -> dict[str, Any]:
    """Where to start from for --config-path: a saved run as it is, else a primary config for Hydra."""
    file = folder / f"{name.removesuffix('.yaml')}.yaml"
    if not file.is_file():
        raise ConfigError(f"--config-path {folder} --config-name {name}: there is no file {file}")
    plain = _raw(file)
    return {"base": load(file)} if _is_saved(plain) else {"config_path": folder}


def _raw(file: Path) -> dict[str, Any]:
    try:
        return load(file)
    except ConfigError:
        raise
    except Exception:  # an interpolation that only Hydra can resolve: then it is no saved run
        return {"defaults": []}


def _resuming(resume: str, out: str | None, overrides: list[str], options: argparse.Namespace) -> Request:
    if options.multirun or out is not None or options.config_path is not None:
        raise ConfigError("job.resume=RUN goes on in the folder RUN; leave out -m, out= and --config-path")
    folder = Path(resume).expanduser()
    if folder.is_file():
        raise ConfigError(f"job.resume={resume}: that is a file; give the run folder, which knows its last checkpoint")
    if not folder.is_dir():
        raise ConfigError(f"job.resume={resume}: there is no such folder; a run folder lies in outputs/<name>/<time>")
    texts = [*overrides, f"++job.resume={_quoted(folder)}"]
    return Request(composition_of(texts, base=load(folder), config_dir=options.config_dir), folder, resumed=True)


def _show(hydra: Hydra, options: argparse.Namespace, composition: Composition) -> int:
    """Hydra's own views: --cfg, --info, --hydra-help, --shell-completion."""
    name, overrides = composition.name, composition.overrides
    if options.cfg:
        hydra.show_cfg(name, overrides, options.cfg, options.package, options.resolve)
    elif options.info:
        hydra.show_info(options.info, name, overrides)
    elif options.hydra_help:
        hydra.hydra_help(name, get_args_parser(), options)
    else:
        hydra.shell_completion(name, overrides)
    _print_notes(composition)
    return 0


def _print_notes(composition: Composition) -> None:
    for note in composition.loader.notes:
        print(note, file=sys.stderr)
    composition.loader.notes.clear()


def _checked(composition: Composition) -> DictConfig:
    """The configuration, known to build. Raises ConfigError with the mistakes of overrides and of values together."""
    from gameagent.config.checking import build

    try:
        cfg = composition.config()
    except OverridesError as error:
        try:
            rest = Composition(composition.loader, composition.name, error.good)
            build(to_plain(rest.config()), rest.origin)
        except ConfigError as more:
            raise ConfigError([*error.problems, *more.problems]) from error
        raise
    build(to_plain(cfg), composition.origin)
    return cfg


def _single(hydra: Hydra, request: Request) -> int:
    composition = request.composition
    cfg = _checked(composition)
    _print_notes(composition)
    if cfg.hydra.mode == RunMode.MULTIRUN:
        return _sweep(hydra, request)
    if request.resumed and request.out is not None:
        folder = request.out.absolute()
    else:
        folder = _folder(cfg, "run", request.out, composition.overrides)
    errors: list[Exception] = []

    def attempt(cfg: DictConfig) -> Any:
        try:
            return _job(cfg, folder, resumed=request.resumed)
        except Exception as error:
            errors.append(error)
            return None

    hydra.run(composition.name, attempt, [*composition.overrides, f"hydra.run.dir={_quoted(folder)}"])
    for error in errors:
        report(error)
    return max((2 if isinstance(error, ConfigError) else 1 for error in errors), default=0)


def _folder(cfg: DictConfig, kind: str, typed: Path | None, overrides: list[str]) -> Path:
    """Make the run or sweep folder: the one typed, which must be new or empty, else a fresh one."""
    HydraConfig.instance().set_config(cfg)
    chosen = typed is not None or any(text.startswith(f"hydra.{kind}.dir=") for text in overrides)
    folder = (typed if typed is not None else Path(str(cfg.hydra[kind].dir))).absolute()
    try:
        if chosen:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise ConfigError(
                    f"{folder} isn't empty; choose another folder, or go on with its run: job.resume={folder}"
                )
        else:
            folder = _fresh(folder)
        save({}, folder / CONFIG)
        (folder / CONFIG).unlink()
    except OSError as error:
        raise UserError(
            f"{folder} can't be used: {error.strerror or error}; choose another folder: out=PATH"
        ) from error
    return folder


def _fresh(folder: Path) -> Path:
    """A folder that nothing else made: the name given, or with -2, -3, … behind it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        made = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        try:
            made.mkdir()
        except FileExistsError:
            number += 1
        else:
            return made


@contextmanager
def _alone(folder: Path, *, resumed: bool) -> Iterator[None]:
    """Keep other processes out of a run folder; the lock goes away with this one, however it ends."""
    try:
        with FileLock(folder / LOCK, timeout=0):
            if not resumed and (folder / CONFIG).exists():
                raise ConfigError(f"{folder}: another process has just made its run there; choose another folder")
            yield
    except Timeout as error:
        raise UserError(f"{folder} is in use by another process; wait for it, or choose another folder") from error


def _job(cfg: DictConfig, folder: Path, *, resumed: bool = False) -> Any:
    """Build and run in `folder`. Where a resumed job refuses what was changed, the folder's files stay as they were."""
    from gameagent.config.checking import build
    from gameagent.contract import ContractError

    plain = {**to_plain(cfg), "out": str(folder)}
    typed = [text for text in HydraConfig.get().overrides.task if "job.resume=" not in text]
    experiment = build(plain)
    with _alone(folder, resumed=resumed):
        if not resumed:
            save_run(plain, folder, typed)
            return experiment.run()
        before, typed_before = load(folder), overrides_of(folder)
        save_run(plain, folder, [*typed_before, *typed])
        try:
            return experiment.run()
        except (UserError, ContractError):
            save_run(before, folder, typed_before)
            raise


def job_of_sweep(cfg: DictConfig) -> Any:
    """One run of a sweep, wherever the launcher starts it. Leaves `ERROR` in its folder when it fails."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    folder = Path(HydraConfig.get().runtime.output_dir)
    try:
        return _job(cfg, folder)
    except Exception as error:
        (folder / ERROR).write_text(
            f"{message(error)}\n\n{''.join(traceback.format_exception(error))}", encoding="utf-8"
        )
        raise


def _sweep(hydra: Hydra, request: Request) -> int:
    composition = request.composition
    for overrides in expanded(composition):
        try:
            _checked(Composition(composition.loader, composition.name, overrides))
        except ConfigError as error:
            raise ConfigError([f"{' '.join(overrides)}:", *error.problems]) from error
    _print_notes(composition)
    folder = _folder(composition.config(RunMode.MULTIRUN), "sweep", request.out, composition.overrides)
    try:
        hydra.multirun(composition.name, job_of_sweep, [*composition.overrides, *_sweep_settings(composition, folder)])
    except Exception as error:
        if not list(folder.glob(f"*/{ERROR}")):
            report(error)
            return 1
    failed = sorted(folder.glob(f"*/{ERROR}"))
    for file in failed:
        print(f"failed: {file.parent}: {file.read_text(encoding='utf-8').splitlines()[0]}", file=sys.stderr)
    print(
        f"{folder}: {len(failed)} of {_runs(folder)} runs failed"
        if failed
        else f"{folder}: all {_runs(folder)} runs done"
    )
    return 1 if failed else 0


def _runs(folder: Path) -> int:
    return len(list(folder.glob(f"*/{CONFIG}")))


def _sweep_settings(composition: Composition, folder: Path) -> list[str]:
    """Where the sweep goes, and which keys are the same in all of its runs and so left out of their names."""
    parsed = OverridesParser.create().parse_overrides(composition.overrides)
    same = sorted({o.key_or_group for o in parsed if not o.is_sweep_override()} | set(EXTRA_GROUPS))
    names = ",".join(f"'{name}'" for name in same)
    return [f"hydra.sweep.dir={_quoted(folder)}", f"hydra.job.config.override_dirname.exclude_keys=[{names}]"]
