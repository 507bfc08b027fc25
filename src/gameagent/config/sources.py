"""Where configuration comes from: the folders of conf/ files, found without importing Hydra or any component.

conf_folders("my_conf"); options("learner") -> ["none", "ppo", "sft"]; experiments() -> [("catch_ppo", "Catch by PPO")]
"""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from gameagent.errors import ConfigError

PLUGINS = "gameagent.plugins"
"""Entry-point group of installed packages whose conf/ folder joins in: `name = "package"`."""


class ConfFolder(NamedTuple):
    """A folder laid out like conf/."""

    provider: str
    """Who brought it, as Hydra reports it."""
    path: Path
    """Absolute."""


def home() -> Path:
    """The folder that holds conf/ and sweeps/: the repository, or the installed package."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package, package.parents[1]):
        if (folder / "conf" / "config.yaml").is_file():
            return folder
    raise ConfigError(f"conf/config.yaml is neither in {package} nor in {package.parents[1]}; install gameagent again")


def plugin_folders() -> list[ConfFolder]:
    """conf/ of every installed package that registers under `gameagent.plugins`. The packages are not imported."""
    specs = {entry.name: find_spec(entry.value) for entry in entry_points(group=PLUGINS)}
    places = [(n, Path(place) / "conf") for n, s in specs.items() if s for place in s.submodule_search_locations or []]
    return [ConfFolder(f"plugin {name}", path.resolve()) for name, path in places if path.is_dir()]


def conf_folders(config_dir: Path | str | None = None) -> list[ConfFolder]:
    """All folders laid out like conf/, first come, first served: gameagent's, plugins', then `--config-dir`.

    Raises:
        ConfigError: `config_dir` is no folder.
    """
    folders = [ConfFolder("main", home() / "conf"), *plugin_folders()]
    if config_dir is not None:
        path = Path(config_dir).expanduser().resolve()
        if not path.is_dir():
            raise ConfigError(f"--config-dir {config_dir}: there is no such folder ({path})")
        folders.append(ConfFolder("command-line", path))
    return folders


def sweep_folders() -> list[Path]:
    """Folders that hold a sweeps/ folder: where the command is typed, then gameagent's."""
    return [p for p in dict.fromkeys([Path.cwd(), home()]) if (p / "sweeps").is_dir()]


def options(group: str) -> list[str]:
    """What can be typed after `group=`, e.g. `policy/encoder`; empty where there is no such group."""
    return sorted({file.stem for folder in conf_folders() for file in (folder.path / group).glob("*.yaml")})


def experiments(config_dir: Path | str | None = None) -> list[tuple[str, str]]:
    """Names of the experiments and the first comment of each file."""
    return _described([f.path / "experiment" for f in conf_folders(config_dir)])


def sweeps() -> list[tuple[str, str]]:
    """Names of the sweeps and the first comment of each file."""
    return _described([f / "sweeps" for f in sweep_folders()])


def _described(folders: list[Path]) -> list[tuple[str, str]]:
    found = {file.stem: _first_comment(file) for folder in reversed(folders) for file in folder.glob("*.yaml")}
    return sorted(found.items())


def _first_comment(file: Path) -> str:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") and not line.startswith("# @"):
            return line.lstrip("# ").rstrip()
    return ""
