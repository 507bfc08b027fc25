"""What every test shares: one quiet thread, nothing online, an own folder, `require` for outside programs.

OMP_NUM_THREADS=1 .venv/bin/python -m pytest -q tests/envs
"""

from __future__ import annotations

import os

# Before anything imports torch or numba: they read these once. Sleeping instead of spinning threads keeps a shared
# machine fast; one thread makes sums, and so whole trainings, the same bit for bit.
os.environ |= {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "NUMBA_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "MPLBACKEND": "Agg",
    "SDL_VIDEODRIVER": "dummy",
    "SDL_AUDIODRIVER": "dummy",
}

import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent

# Same examples on every machine and every run; `HYPOTHESIS_PROFILE=thorough` looks for new ones.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=1000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


class Outside(NamedTuple):
    """Something that a test may need and that pip does not install by default."""

    names: tuple[str, ...]
    """Programs, any of which will do; or the one module, where `module` is true."""
    install: str
    """What to type when it is missing."""
    module: bool = False

    def find(self) -> str | None:
        """Path of the program, or name of the module; None where it is missing."""
        if self.module:
            return self.names[0] if find_spec(self.names[0]) else None
        return next((path for name in self.names if (path := shutil.which(name))), None)


OUTSIDE = {
    "chromium": Outside(("chromium", "chromium-browser", "google-chrome"), "make system"),
    "ale-py": Outside(("ale_py",), ".venv/bin/pip install -e '.[atari]' -c constraints.txt", module=True),
    "pygame-ce": Outside(("pygame",), ".venv/bin/pip install -e '.[desktop]' -c constraints.txt", module=True),
    "transformers": Outside(("transformers",), ".venv/bin/pip install -e '.[llm]' -c constraints.txt", module=True),
}


@pytest.fixture(scope="session")
def require() -> Callable[[str], str]:
    """`require("chromium")` gives the program's path, or skips the test and says what to type.

    Where GAMEAGENT_REQUIRE (names, separated by commas) lists it, as in `.ci/run`, absence fails the test.
    """

    def find(name: str) -> str:
        outside = OUTSIDE[name]
        if found := outside.find():
            return found
        message = f"needs {name}; type: {outside.install}"
        if name in os.environ.get("GAMEAGENT_REQUIRE", "").split(","):
            pytest.fail(f"{message} (GAMEAGENT_REQUIRE names it)")
        pytest.skip(message)

    return find


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout. Tests run in a temporary folder, so a path into the repository starts here."""
    return REPOSITORY


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs in its own folder: what it writes to outputs/ is its own and not the user's."""
    monkeypatch.chdir(tmp_path)
