"""Every option of every group, every experiment and every sweep that ships: composes, checks and builds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gameagent.catalog import CATALOG, Entry
from gameagent.component import locate
from gameagent.config import build, check, compose, expand, render, save
from gameagent.config.sources import experiments, options, sweeps


def owner(entry: Entry) -> list[str]:
    """What to choose so that a part's group is in use: `job=evaluate` for `job/sampler`."""
    parent, _, part = entry.group.rpartition("/")
    if not parent:
        return []
    for other in CATALOG:
        if other.group == parent and part in {f.name for f in fields(locate(other.target))}:
            return [f"{parent}={other.option}", *required(other)]
    raise AssertionError(f"no {parent} has the part {part}")


def required(entry: Entry) -> list[str]:
    """Overrides for the fields that have no default."""
    cls = locate(entry.target)
    missing = [n for n, f in cls.__pydantic_fields__.items() if f.is_required() and n not in entry.preset]
    return [f"{entry.group.replace('/', '.')}.{name}=some_run" for name in missing]


def choose(group: str, option: str) -> str:
    """The override that chooses it."""
    return f"{group}=[{option}]" if group in ("logger", "callbacks") else f"{group}={option}"


@pytest.mark.parametrize("entry", CATALOG, ids=lambda e: f"{e.group}/{e.option}")
def test_every_option_composes_with_all_its_fields_and_builds(entry: Entry) -> None:
    plain = compose([*owner(entry), choose(entry.group, entry.option), *required(entry)])
    built: Any = build(plain)
    part: Any = plain
    for name in entry.group.split("/"):
        part, built = part[name], getattr(built, name)
    if entry.group in ("logger", "callbacks"):
        part, built = part[entry.option], built[entry.option]
    assert type(built) is locate(entry.target)
    assert set(part) == {"_target_", *(f.name for f in fields(built))}
    assert entry.option in options(entry.group)


def test_conf_agrees_with_the_components(repository: Path) -> None:
    assert render.differences(repository / "conf", render.render()) == [], "type: make conf"


def test_the_default_is_catch_by_ppo() -> None:
    experiment = build(compose([]))
    assert type(experiment.env).__name__ == "MiniEnv"
    assert experiment.env.game == "catch"  # type: ignore[attr-defined]
    assert type(experiment.learner).__name__ == "PPO"
    assert set(experiment.logger) == {"csv", "tensorboard"}
    assert set(experiment.callbacks) == {"checkpoint", "progress", "stop"}


@pytest.mark.parametrize("name", [name for name, _ in experiments()])
def test_every_experiment_composes_builds_and_says_what_it_is(name: str, tmp_path: Path) -> None:
    plain = compose([f"+experiment={name}"])
    assert build(plain).name == name
    save(plain, tmp_path / "config.yaml")
    assert compose([], base=plain) == plain
    assert dict(experiments())[name], "the first comment of the file stands in --help"


@pytest.mark.parametrize("name", [name for name, _ in experiments()])
@pytest.mark.parametrize(
    "swap", ["learner=sft", "learner=none", "env=gym", "env=mini", "policy/encoder=nature", "job=doctor"]
)
def test_every_experiment_survives_a_swapped_component(name: str, swap: str) -> None:
    check(compose([f"+experiment={name}", swap]))


@pytest.mark.parametrize("name", [name for name, _ in sweeps()])
def test_every_sweep_expands_to_runs_that_build(name: str) -> None:
    jobs = expand([f"+sweeps={name}"])
    assert len(jobs) > 1
    for overrides in jobs:
        check(compose(overrides))
    assert dict(sweeps())[name]
