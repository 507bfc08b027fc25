"""The wheel is whole: built, installed in a venv without the checkout, its console script runs from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "GAMEAGENT"))}


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist and the wheel that was built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, repository, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("gameagent-*.whl"))


@pytest.fixture(scope="module")
def clean_venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv that holds the wheel and sees the libraries of this one, but not its editable gameagent.

    Python reads .pth files in a venv's own site-packages only, so the editable install's one is not followed.
    """
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    here = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(here) / "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    run(sys.executable, "-m", "pip", "--python", python, "install", "-qq", "--no-deps", "--no-index", wheel, cwd=folder)
    return folder


def repository_files(root: Path, folder: str) -> set[str]:
    return {str(p.relative_to(root)) for p in (root / folder).rglob("*.yaml")}


@pytest.mark.parametrize("folder", ["conf", "sweeps"])
def test_wheel_holds_every_config(wheel: Path, repository: Path, folder: str) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"gameagent/{name}" for name in repository_files(repository, folder)}
    assert wanted <= inside, f"missing: {sorted(wanted - inside)}"


def test_wheel_holds_every_source_file_and_nothing_else(wheel: Path, repository: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = repository / "src"
    wanted = {str(p.relative_to(source)) for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    packaged = {name for name in inside if not name.startswith(("gameagent/conf/", "gameagent/sweeps/"))}
    assert packaged == wanted


def test_wheel_holds_the_licence(wheel: Path) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())


def test_sdist_holds_what_a_build_and_the_tests_need(built: Path) -> None:
    with tarfile.open(next(built.glob("gameagent-*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "constraints.txt", "Makefile", "run.py", "LICENSE", "tests/conftest.py"} <= inside


def test_installed_package_is_the_wheels_own(clean_venv: Path, tmp_path: Path) -> None:
    found = run(clean_venv / "bin" / "python", "-c", "import gameagent; print(gameagent.__file__)", cwd=tmp_path)
    assert Path(found.strip()).is_relative_to(clean_venv)


def test_console_script_lists_experiments_from_another_folder(clean_venv: Path, tmp_path: Path) -> None:
    assert "catch_demo" in run(clean_venv / "bin" / "gameagent", "--help", cwd=tmp_path)


def test_console_script_composes_the_wheels_conf(clean_venv: Path, tmp_path: Path) -> None:
    printed = run(clean_venv / "bin" / "gameagent", "--cfg", "job", cwd=tmp_path)
    assert "_target_: gameagent.experiment.Experiment" in printed


def test_printing_a_config_writes_nothing(clean_venv: Path, tmp_path: Path) -> None:
    run(clean_venv / "bin" / "gameagent", "+experiment=catch_demo", "--cfg", "job", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
