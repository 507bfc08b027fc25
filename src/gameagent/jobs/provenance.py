"""Where a policy comes from: what is written into its file beside its weights.

save_policy(path, policy, provenance=provenance(experiment, env_steps=200_000))
"""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gameagent.component import to_config
from gameagent.config.files import overrides_of
from gameagent.experiment import Experiment

PACKAGES = ("gameagent", "torch", "lightning", "gymnasium", "numpy")
"""Whose versions are noted."""


def provenance(experiment: Experiment, *, env_steps: int) -> dict[str, Any]:
    """Experiment, overrides, configuration, git commit, environment steps, seed and versions, in plain form."""
    return {
        "experiment": experiment.name,
        "overrides": overrides_of(experiment.run_dir),
        "config": to_config(experiment),
        "git_commit": git_commit(),
        "env_steps": env_steps,
        "seed": experiment.seed,
        "versions": {"python": platform.python_version()} | {p: v for p in PACKAGES if (v := _version(p)) is not None},
    }


def git_commit() -> str | None:
    """Commit of the checkout that gameagent runs from, with `+` where files in it were changed; None outside one."""
    here = Path(__file__).resolve().parent
    try:
        commit = _git(here, "rev-parse", "HEAD")
        return commit + ("+" if _git(here, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
