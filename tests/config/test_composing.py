from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from gameagent.config import ConfigError, compose, expand

from .conftest import Project, fake


def problems(*overrides: str, **sources: object) -> list[str]:
    """Mistakes found in these overrides."""
    with pytest.raises(ConfigError) as error:
        compose(list(overrides), **sources)  # type: ignore[arg-type]
    assert "+" not in "".join(error.value.problems), "advice to add a key would add the typo"
    return error.value.problems


def test_plain_has_every_component_with_its_target_and_no_hydra_node(project: Project) -> None:
    plain = compose([])
    assert plain["_target_"] == "gameagent.experiment.Experiment"
    assert plain["learner"]["_target_"] == fake("FakePPO")
    assert plain["env"]["reward"] == {"_target_": fake("Simple"), "bomb": -1.5}
    assert plain["logger"]["csv"]["flush"] == 10
    assert "hydra" not in plain


def test_experiment_file_chooses_and_sets_and_the_command_line_wins(project: Project) -> None:
    plain = compose(["+experiment=quick", "learner.lr=0.5"])
    assert plain["name"] == "quick"
    assert plain["env"]["reward"] == {"_target_": fake("Kda"), "kill": 7.0}
    assert (plain["env"]["num_envs"], plain["learner"]["clip"], plain["learner"]["lr"]) == (4, 0.1, 0.5)
    assert plain["logger"]["wandb"]["project"] == "games"


def test_composing_imports_no_component(repository: Path) -> None:
    code = (
        "import sys; from gameagent.config import compose; compose(['seed=3']);"
        "heavy = {'torch', 'lightning', 'numba', 'gymnasium', 'pydantic'} & set(sys.modules);"
        "own = [m for m in sys.modules if m.startswith('gameagent.')];"
        "print(heavy, [m for m in own if not m.startswith(('gameagent.config', 'gameagent.errors'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set() []"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("learner.lrr=1", "there is no key 'learner.lrr'; did you mean 'learner.lr'?"),
        ("lerner.lr=1", "did you mean 'learner.lr'?"),
        ("lr=1", "did you mean 'learner.lr'?"),
        ("sede=1", "did you mean 'seed'?"),
        ("learner.epochs=1", "the chosen learner has no key 'epochs'; learner=sft has"),
        ("learner=sfs", "there is no option of learner 'sfs'; did you mean 'sft'? There are: none, ppo, sft"),
        ("lerner=sft", "there is no key 'lerner'; did you mean 'learner'?"),
        ("policy/encodr=mlp", "there is no group 'policy/encodr'; did you mean 'policy/encoder'?"),
        ("job/sampler=temperature", "the chosen job has no part 'sampler'; job options that have one: score"),
        ("logger.wandb.project=x", "logger.wandb isn't chosen; add wandb to logger=[…]"),
        ("experiment=quik", "there is no experiment 'quik'; did you mean 'quick'? There are: quick"),
        ("name=my run!", "put a value with special characters into quotes"),
        ("learner", "this is no override; type key=value or group=option"),
        ("seed=1,2", "several values. One run for each: add -m."),
        ("learner=ppo,sft", "several values. One run for each: add -m."),
    ],
)
def test_a_mistake_names_what_was_given_and_the_nearest(project: Project, override: str, expected: str) -> None:
    (problem,) = problems(override)
    assert problem.startswith(override)
    assert expected in problem


def test_key_of_a_component_that_is_null_names_the_choices(project: Project) -> None:
    assert problems("learner=none", "learner.clip=1") == ["learner.clip=1: learner is null; choose one: learner=ppo"]


def test_all_mistakes_come_at_once(project: Project) -> None:
    found = problems("learner.lrr=1", "env=gam", "foo", "seed=2")
    assert [text.partition(":")[0] for text in found] == ["foo", "env=gam", "learner.lrr=1"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("experiment=quick", "+experiment=quick"), ("+learner=sft", "learner=sft"), ("learner=null", "learner=none")],
)
def test_what_leaves_no_doubt_is_repaired(project: Project, typed: str, meant: str) -> None:
    assert compose([typed]) == compose([meant])


def test_an_open_mapping_takes_new_keys_without_a_plus(project: Project) -> None:
    assert compose(["env.knobs.speed=2", "env.knobs.size=3"])["env"]["knobs"] == {"speed": 2, "size": 3}


def test_values_for_a_swapped_component_are_dropped_and_named(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    plain = compose(["+experiment=quick", "learner=sft"])
    assert plain["learner"] == {"_target_": fake("FakeSFT"), "lr": 1e-3, "epochs": 5, "init_from": None}
    assert plain["env"]["num_envs"] == 4, "only the swapped component loses its values"
    assert caplog.messages == [
        "experiment/quick.yaml: learner.lr=0.0001, learner.clip=0.1 dropped, as you chose learner=sft"
    ]


def test_the_same_choice_typed_again_drops_nothing(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    assert compose(["+experiment=quick", "learner=ppo", "env=kda_game"]) == compose(["+experiment=quick"])
    assert caplog.messages == []


def test_parts_that_a_swapped_component_lacks_are_dropped_with_it(project: Project) -> None:
    plain = compose(["+experiment=quick", "policy=blind", "env=plain"])
    assert plain["policy"] == {"_target_": fake("Blind")}
    assert plain["env"] == {"_target_": fake("Plain"), "num_envs": 8}


def test_a_swapped_part_keeps_its_owners_values(project: Project) -> None:
    plain = compose(["+experiment=quick", "env/reward=simple"])
    assert plain["env"]["reward"] == {"_target_": fake("Simple"), "bomb": -1.5}
    assert plain["env"]["num_envs"] == 4


def test_values_for_a_logger_left_out_are_dropped(project: Project) -> None:
    assert set(compose(["+experiment=quick", "logger=[csv]"])["logger"]) == {"csv"}
    assert compose(["logger=[]"]).get("logger") is None


def test_learner_none_is_null(project: Project) -> None:
    assert compose(["+experiment=quick", "learner=none"])["learner"] is None


def test_from_a_saved_run_keys_and_groups_can_be_changed(project: Project) -> None:
    base = compose(["+experiment=quick"])
    assert compose([], base=base) == base
    changed = compose(["seed=9", "policy/encoder=tiny", "logger=[csv]", "learner=sft", "learner.epochs=2"], base=base)
    assert changed["seed"] == 9
    assert changed["policy"]["encoder"] == {"_target_": fake("Tiny"), "channels": [32, 64]}
    assert set(changed["logger"]) == {"csv"}
    assert changed["learner"] == {"_target_": fake("FakeSFT"), "lr": 1e-3, "epochs": 2, "init_from": None}
    assert changed["env"] == base["env"]


def test_an_experiment_over_a_saved_run_is_refused(project: Project) -> None:
    with pytest.raises(ConfigError, match="a saved run is complete"):
        compose(["+experiment=quick"], base=compose([]))


def test_a_component_of_an_outside_file_replaces_another_and_its_keys(project: Project) -> None:
    (project.work / "mine.py").write_text(OUTSIDE)
    plain = compose(["env.reward._target_=./mine.py:MyReward", "env.reward.bonus=2"])
    assert plain["env"]["reward"] == {"_target_": f"{project.work}/mine.py:MyReward", "bonus": 2}


def test_an_outside_subclass_keeps_the_values_it_shares(project: Project) -> None:
    (project.work / "mine.py").write_text(OUTSIDE)
    plain = compose(["+experiment=quick", "learner._target_=./mine.py:MyLearner", "learner.margin=3"])
    assert (plain["learner"]["clip"], plain["learner"]["margin"]) == (0.1, 3)


def test_an_outside_component_can_be_named_in_an_experiment_file(project: Project) -> None:
    (project.work / "mine.py").write_text(OUTSIDE)
    experiment = project.home / "conf/experiment/mine.yaml"
    experiment.write_text("# @package _global_\nenv: {reward: {_target_: './mine.py:MyReward', bonus: 4}}\n")
    assert compose(["+experiment=mine"])["env"]["reward"] == {
        "_target_": f"{project.work}/mine.py:MyReward",
        "bonus": 4,
    }


OUTSIDE = f"""
import importlib.util
from typing import Any
from gameagent.component import component, locate
from gameagent.rewards.base import Reward
FakePPO = locate({fake("FakePPO")!r})

@component
class MyReward(Reward):
    bonus: float = 1.0
    def __call__(self, ctx: Any) -> Any:
        return ctx

@component
class MyLearner(FakePPO):
    margin: float = 0.5
"""


def test_an_outside_folder_joins_by_config_dir_and_by_searchpath(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "learner").mkdir(parents=True)
    (outside / "learner/mine.yaml").write_text(f"_target_: {fake('FakeSFT')}\nepochs: 77\n")
    assert compose(["learner=mine"], config_dir=outside)["learner"]["epochs"] == 77
    assert compose(["learner=mine", f"hydra.searchpath=['{outside}']"])["learner"]["epochs"] == 77


def test_an_installed_plugin_joins_without_being_imported(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    files = {
        "fancy/__init__.py": "raise RuntimeError('imported')",
        "fancy/conf/learner/fancy.yaml": f"_target_: {fake('FakeSFT')}\nepochs: 88\n",
        "fancy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: fancy\nVersion: 1.0\n",
        "fancy-1.0.dist-info/entry_points.txt": "[gameagent.plugins]\nfancy = fancy\n",
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    monkeypatch.syspath_prepend(str(site))
    assert [e.name for e in entry_points(group="gameagent.plugins")] == ["fancy"]
    assert compose(["learner=fancy"])["learner"]["epochs"] == 88


def test_folders_beside_sweeps_are_no_groups(project: Project) -> None:
    for folder in (project.home / "seed", project.work / "seed", project.work / "name"):
        folder.mkdir()
        (folder / "x.yaml").write_text("a: 1\n")
    (project.work / "sweeps").mkdir()
    assert compose(["seed=3", "name=x"])["seed"] == 3


def test_a_sweep_expands_to_the_product_of_its_values(project: Project) -> None:
    jobs = expand(["+sweeps=lr", "+experiment=quick", "env.num_envs=2,3"])
    assert len(jobs) == 8
    assert {(p["learner"]["lr"], p["seed"], p["env"]["num_envs"]) for p in map(compose, jobs)} == {
        (lr, seed, n) for lr in (1e-4, 1e-3) for seed in (0, 1) for n in (2, 3)
    }


def test_a_sweep_over_components_drops_what_each_run_swaps(project: Project) -> None:
    first, second = map(compose, expand(["+experiment=quick", "learner=ppo,sft"]))
    assert (first["learner"]["_target_"], first["learner"]["clip"]) == (fake("FakePPO"), 0.1)
    assert (second["learner"]["_target_"], second["learner"]["lr"]) == (fake("FakeSFT"), 1e-3)


def test_an_interpolation_that_leads_nowhere_is_told(project: Project) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        compose(["name=${nowhere}"])
