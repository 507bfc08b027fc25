from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

from gameagent.config import compose, files, load, running
from gameagent.errors import UserError

from .conftest import Project, fake

Cli = Callable[..., tuple[int, str, str]]


def runs(project: Project, pattern: str = "outputs/*/*") -> list[Path]:
    """Run folders."""
    return sorted(p for p in project.work.glob(pattern) if p.is_dir())


def test_a_run_makes_one_folder_with_its_configuration(project: Project, cli: Cli) -> None:
    assert cli("+experiment=quick", "seed=4") == (0, "", "")
    (folder,) = runs(project)
    assert folder.parent == project.work / "outputs/quick"
    assert json.loads((folder / "result.json").read_text())["seed"] == 4
    assert {p.name for p in folder.iterdir()} == {"config.yaml", "overrides.yaml", "result.json", ".lock"}
    assert load(folder) == compose(["+experiment=quick", "seed=4"])
    assert yaml.safe_load((folder / "overrides.yaml").read_text()) == ["+experiment=quick", "seed=4"]


def test_out_is_the_run_folder_and_nothing_else_is_made(project: Project, cli: Cli) -> None:
    assert cli("out=mine/here")[0] == 0
    assert {p.name for p in project.work.iterdir()} == {"mine"}
    assert (project.work / "mine/here/result.json").is_file()


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(project: Project, cli: Cli) -> None:
    (project.work / "mine").mkdir()
    (project.work / "mine/kept.txt").write_text("kept")
    code, _, err = cli("out=mine")
    assert (code, [p.name for p in (project.work / "mine").iterdir()]) == (2, ["kept.txt"])
    assert "isn't empty" in err
    assert "job.resume=" in err


def test_a_run_that_another_process_is_at_is_left_alone(project: Project, cli: Cli) -> None:
    assert cli("out=mine")[0] == 0
    before = (project.work / "mine/result.json").read_text()
    with FileLock(project.work / "mine/.lock"):
        code, _, err = cli("job.resume=mine", "seed=9")
    assert code == 1
    assert "in use by another process" in err
    assert (project.work / "mine/result.json").read_text() == before


def test_of_two_runs_begun_at_once_in_one_folder_the_second_is_refused(
    project: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(cfg: Any, kind: str, typed: Path, overrides: list[str]) -> Path:
        """Looks while the folder is still empty; then the other run is faster."""
        folder = made(cfg, kind, typed, overrides)
        files.save_run({}, folder, ["the other"])
        return folder

    made = running._folder
    monkeypatch.setattr(running, "_folder", too_late)
    code, _, err = cli("out=mine")
    assert code == 2
    assert "another process has just made its run there" in err
    assert files.overrides_of(project.work / "mine") == ["the other"]


def test_mistakes_that_a_job_finds_exit_2_too(project: Project, cli: Cli) -> None:
    code, _, err = cli("job.end=mistake")
    assert (code, "stage sft: a mistake" in err) == (2, True)


def test_a_path_that_cannot_be_read_comes_back_in_quotes(project: Project, cli: Cli) -> None:
    code, _, err = cli("out=a=b c!")
    assert code == 2
    assert """put a value with special characters into quotes: 'out="a=b c!"'""" in err
    assert cli('out="a=b c!"')[0] == 0
    assert (project.work / "a=b c!/result.json").is_file()


def test_runs_of_the_same_second_get_folders_of_their_own(project: Project, cli: Cli, monkeypatch: Any) -> None:
    monkeypatch.setattr("hydra.core.utils.datetime", FixedClock)
    for _ in range(3):
        assert cli()[0] == 0
    assert [p.name for p in runs(project)] == ["noon", "noon-2", "noon-3"]


class FixedClock:
    """It is always noon."""

    @staticmethod
    def now() -> FixedClock:
        return FixedClock()

    def strftime(self, pattern: str) -> str:
        return "noon"


def test_wrong_configuration_exits_2_before_anything_is_made(project: Project, cli: Cli) -> None:
    code, out, err = cli("learner.lr=abc", "learner.clipp=1", "env.num_envs=true")
    assert (code, out, runs(project, "*")) == (2, "", [])
    assert "Traceback" not in err
    assert "learner.clipp=1: there is no key 'learner.clipp'; did you mean 'learner.clip'?" in err
    assert "learner.lr: got the text 'abc'; it takes a number > 0  [typed: learner.lr=abc]" in err
    assert "env.num_envs: got true; it takes a whole number >= 1  [typed: env.num_envs=true]" in err


def test_a_wrong_value_names_the_file_that_set_it(project: Project, cli: Cli) -> None:
    file = project.home / "conf/experiment/quick.yaml"
    file.write_text(file.read_text().replace("lr: 1e-4", "lr: -1"))
    code, _, err = cli("+experiment=quick")
    assert code == 2
    assert f"learner.lr: got -1; it takes a number > 0  [{file}]" in err


def test_a_saved_run_runs_again_with_changed_values(project: Project, cli: Cli) -> None:
    cli("+experiment=quick", "out=first")
    assert cli("--config-path", "first", "--config-name", "config", "learner.lr=0.5", "out=second") == (0, "", "")
    assert load("second")["learner"]["lr"] == 0.5
    changed = [c.key for c in files.diff(load("first"), load("second"))]
    assert changed == ["learner.lr"]
    cli("--config-path", str(project.work / "first"))
    assert [p.parent.name for p in runs(project)] == ["quick"], "the name gives the folder, as for the first run"


def test_config_dir_of_a_run_folder_says_what_to_type(project: Project, cli: Cli) -> None:
    cli("out=first")
    code, _, err = cli("--config-dir", "first")
    assert (code, runs(project)) == (2, [])
    assert "--config-path first --config-name config" in err


def test_own_primary_config_extends_the_shipped_one(project: Project, cli: Cli) -> None:
    (project.work / "own").mkdir()
    (project.work / "own/mine.yaml").write_text("defaults: [config, _self_]\nname: mine\nlearner: {lr: 0.125}\n")
    assert cli("--config-path", "own", "--config-name", "mine", "out=x")[0] == 0
    assert (load("x")["name"], load("x")["learner"]["lr"]) == ("mine", 0.125)
    code, _, err = cli("--config-path", "own", "--config-name", "yours")
    assert code == 2
    assert "there is no file own/yours.yaml" in err


def test_resume_goes_on_in_the_same_folder_with_changes(project: Project, cli: Cli) -> None:
    cli("+experiment=quick", "out=first")
    assert cli("job.resume=first", "learner.lr=0.5")[0] == 0
    assert json.loads((project.work / "first/result.json").read_text())["resume"] == "first"
    assert runs(project) == []
    saved = load("first")
    assert (saved["learner"]["lr"], saved["job"]["resume"], saved["out"]) == (0.5, None, None)
    assert files.overrides_of(Path("first")) == ["+experiment=quick", "learner.lr=0.5"]


def test_what_a_resumed_job_refuses_is_not_saved(project: Project, cli: Cli) -> None:
    cli("out=first")
    before = load("first")
    assert cli("job.resume=first", "learner.lr=0.5", "job.end=user")[0] == 1
    assert load("first") == before
    assert files.overrides_of(Path("first")) == []


@pytest.mark.parametrize("more", [["-m", "seed=1,2"], ["out=x"]])
def test_resume_has_its_folder_and_takes_no_other(project: Project, cli: Cli, more: list[str]) -> None:
    cli("out=first")
    assert "leave out" in cli("job.resume=first", *more)[2]


def test_resume_of_nothing_is_told(project: Project, cli: Cli) -> None:
    assert "there is no such folder" in cli("job.resume=nowhere")[2]
    (project.work / "last.ckpt").touch()
    assert "that is a file; give the run folder" in cli("job.resume=last.ckpt")[2]
    (project.work / "empty").mkdir()
    assert "a run folder holds a config.yaml" in cli("job.resume=empty")[2]


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("user", 1, "the data is missing; type job=collect\n"),
        ("ioerror", 1, "episodes.zarr: No space left on device; free some space or choose another folder: out=PATH\n"),
        ("stop", 128 + 15, "stopped at 5 steps\n"),
    ],
)
def test_a_job_ends_with_one_message_and_its_exit_code(
    project: Project, cli: Cli, end: str, code: int, said: str
) -> None:
    assert cli(f"job.end={end}", "out=x") == (code, "", said)


def test_a_bug_comes_with_its_traceback(project: Project, cli: Cli) -> None:
    code, _, err = cli("job.end=bug", "out=x")
    assert code == 1
    assert "Traceback" in err
    assert "ZeroDivisionError: a bug" in err


def test_full_error_shows_the_traceback_of_any_error(
    project: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    assert "Traceback" in cli("job.end=user", "out=x")[2]


def test_a_multirun_names_its_folders_and_finishes_in_spite_of_failures(project: Project, cli: Cli) -> None:
    code, out, err = cli("-m", "+experiment=quick", "seed=1,2", "job.end=user,well", "learner.lr=0.5")
    assert code == 1
    (sweep,) = runs(project)
    assert sweep.name.startswith("multirun-")
    names = sorted(p.name for p in sweep.iterdir() if p.is_dir())
    assert names == [
        "0-job.end=user,seed=1",
        "1-job.end=well,seed=1",
        "2-job.end=user,seed=2",
        "3-job.end=well,seed=2",
    ]
    failed = [line for line in err.splitlines() if line.startswith("failed: ")]
    assert [line.rpartition("/")[2] for line in failed] == [
        f"{name}: the data is missing; type job=collect" for name in (names[0], names[2])
    ]
    assert out.splitlines()[-1] == f"{sweep}: 2 of 4 runs failed"
    assert load(sweep / names[1])["job"]["end"] == "well"


def test_a_multirun_that_goes_well_exits_0(project: Project, cli: Cli) -> None:
    code, out, _ = cli("-m", "+sweeps=lr", "out=all")
    assert code == 0
    assert out.splitlines()[-1] == f"{project.work}/all: all 4 runs done"
    assert sorted(p.name for p in runs(project, "all/*"))[0] == "0-learner.lr=0.0001,seed=0"


def test_a_multirun_checks_every_run_before_the_first_starts(project: Project, cli: Cli) -> None:
    code, _, err = cli("-m", "learner.lr=0.1,abc")
    assert (code, runs(project)) == (2, [])
    assert "learner.lr=abc:" in err
    assert "got the text 'abc'" in err


def test_a_stopped_run_ends_the_multirun(project: Project, cli: Cli) -> None:
    assert cli("-m", "job.end=stop", "seed=1,2", "out=all")[0] == 143
    assert len(runs(project, "all/*")) == 1


def test_an_outputs_folder_that_cannot_be_written_is_told_before_work_starts(project: Project, cli: Cli) -> None:
    (project.work / "outputs").write_text("a file where a folder should be")
    code, _, err = cli()
    assert code == 1
    assert "outputs/default" in err
    assert "choose another folder: out=PATH" in err
    assert "Traceback" not in err


def test_a_full_disk_is_told_before_work_starts(project: Project, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    code, _, err = cli("out=x")
    assert (code, list((project.work / "x").iterdir())) == (1, [])
    assert "No space left on device; choose another folder: out=PATH" in err


def test_cfg_prints_what_would_run(project: Project, cli: Cli) -> None:
    code, out, err = cli("--cfg", "job", "+experiment=quick", "learner=sft")
    assert (code, runs(project)) == (0, [])
    assert yaml.safe_load(out)["learner"]["_target_"] == fake("FakeSFT")
    assert "dropped, as you chose learner=sft" in err


def test_rerun_from_a_pickle_is_refused(project: Project, cli: Cli) -> None:
    assert "unpickles" in cli("--experimental-rerun", "x.pickle")[2]


def test_an_outside_reward_and_learner_run_and_run_again_from_elsewhere(
    project: Project, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.work / "mine.py").write_text(
        "from gameagent.component import component, locate\n"
        "from gameagent.rewards.base import Reward\n"
        "@component\nclass MyReward(Reward):\n    bonus: float = 1.0\n    def __call__(self, ctx): return ctx\n"
        f"@component\nclass MyLearner(locate({fake('FakePPO')!r})):\n    margin: float = 0.5\n"
    )
    mine = ["env.reward._target_=./mine.py:MyReward", "learner._target_=./mine.py:MyLearner", "learner.margin=2"]
    assert cli(*mine, "out=first") == (0, "", "")
    assert load("first")["learner"]["margin"] == 2
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cli("--config-path", str(project.work / "first"), "learner.margin=3", "out=second") == (0, "", "")
    assert load("second")["env"]["reward"]["_target_"] == f"{project.work}/mine.py:MyReward"


def test_a_module_beside_the_command_is_found(project: Project, cli: Cli) -> None:
    (project.work / "beside_module.py").write_text(
        "from gameagent.component import component, locate\n"
        f"@component\nclass Mine(locate({fake('FakeSFT')!r})): pass\n"
    )
    assert cli("learner=sft", "learner._target_=beside_module.Mine", "out=x") == (0, "", "")


def test_help_lists_experiments_groups_and_commands_and_imports_nothing_heavy(repository: Path) -> None:
    code = (
        "import sys; sys.argv = ['run.py', '--help']\nfrom gameagent.config import main\n"
        "try: main()\nexcept SystemExit as stop: assert stop.code == 0\n"
        "print('heavy:', sorted({'torch', 'lightning', 'pydantic', 'hydra', 'omegaconf', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert "python run.py job.resume=RUN" in done.stdout
    assert "catch_ppo" in done.stdout
    assert "policy/encoder" in done.stdout
    assert done.stdout.endswith("heavy: []\n")


def test_the_script_reports_mistakes_without_a_traceback(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(repository / "run.py"), "--cfg", "job", "lerner.lr=1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 2
    assert done.stderr.startswith("The configuration has a mistake:\n  lerner.lr=1: there is no key 'lerner.lr'")


def test_fresh_folder_survives_a_race(tmp_path: Path) -> None:
    made = [running._fresh(tmp_path / "run") for _ in range(3)]
    assert [p.name for p in made] == ["run", "run-2", "run-3"]


def test_user_error_is_not_a_config_error() -> None:
    assert not issubclass(UserError, ValueError)
