from __future__ import annotations

from typing import Any

import pytest
from hydra.errors import InstantiationException
from hydra.utils import instantiate

from gameagent.component import locate
from gameagent.config import ConfigError, build, check, compose
from gameagent.config.checking import components

from .conftest import Project, fake


def problems(plain: Any) -> list[str]:
    """Mistakes found in a plain configuration."""
    with pytest.raises(ConfigError) as error:
        check(plain)
    return error.value.problems


def node(name: str, **values: Any) -> dict[str, Any]:
    """A plain fake component."""
    return {"_target_": fake(name), **values}


def test_build_makes_each_component_once(project: Project) -> None:
    experiment = build(compose(["+experiment=quick"]))
    assert type(experiment.learner).__name__ == "FakePPO"
    assert experiment.policy.encoder.hidden == (16,)  # type: ignore[attr-defined]
    assert experiment.env.reward.kill == 7.0  # type: ignore[attr-defined]
    assert set(experiment.logger) == {"csv", "wandb"}


def test_every_mistake_is_found_bottom_up(project: Project) -> None:
    plain = compose([])
    plain["env"]["reward"]["bom"] = 1
    plain["env"]["num_envs"] = 0
    plain["learner"] |= {"lr": "abc", "schedule": "adaptve", "target_kl": "x", "total_steps": 2.5}
    plain["policy"]["encoder"]["channels"] = [1, "two"]
    plain["seed"] = None
    assert problems(plain) == [
        "env.reward.bom: Simple has no key 'bom'; did you mean 'bomb'?",
        "env.num_envs: got 0; it takes a whole number >= 1",
        "policy.encoder.channels.1: got the text 'two'; it takes a list, each a whole number",
        "learner.lr: got the text 'abc'; it takes a number > 0",
        "learner.schedule: got the text 'adaptve'; it takes one of fixed, adaptive; did you mean 'adaptive'?",
        "learner.target_kl: got the text 'x'; it takes a number, or null",
        "learner.total_steps: got 2.5; it takes a whole number",
        "seed: got null; it takes a whole number >= 0",
    ]


def test_numbers_are_finite_and_seeds_not_negative(project: Project) -> None:
    plain = compose([])
    plain["learner"]["lr"], plain["seed"] = float("inf"), -1
    assert problems(plain) == [
        "learner.lr: got inf; it takes a finite one, a number > 0",
        "seed: got -1; it takes a whole number >= 0",
    ]


@pytest.mark.parametrize("name", ["lr", "clip", "total_steps", "target_kl"])
def test_true_is_no_number(project: Project, name: str) -> None:
    (problem,) = problems(node("FakePPO", **{name: True}))
    assert problem.startswith(f"{name}: got true; it takes a")


def test_true_inside_a_list_of_numbers_is_refused(project: Project) -> None:
    assert problems(node("Tiny", channels=[1, True]))[0].startswith("channels: got")


def test_whole_floats_numbers_as_text_fields_and_lists_are_converted() -> None:
    ppo = components(node("FakePPO", total_steps=1e6, schedule="adaptive", lr=1))
    assert (ppo.total_steps, type(ppo.total_steps), ppo.schedule.name, ppo.lr) == (1_000_000, int, "adaptive", 1.0)
    assert components(node("Tiny", channels=[1, 2])).channels == (1, 2)


def test_a_component_of_the_wrong_kind_names_the_right_ones(project: Project) -> None:
    plain = compose([])
    plain["env"]["reward"] = node("Tiny")
    plain["learner"] = node("Csv")
    first, second = problems(plain)
    assert first.startswith("env.reward: got the component Tiny (")
    assert first.endswith("it takes a component of kind Reward (env/reward=kda|simple)")
    assert second.endswith("it takes a component of kind Learner (learner=none|ppo|sft), or null")


def test_an_options_name_in_place_of_a_component_says_what_to_type(project: Project) -> None:
    plain = compose(["policy.encoder=mlp"])
    assert problems(plain)[0].endswith("type policy/encoder=mlp")


def test_a_wrong_logger_is_named_by_its_key(project: Project) -> None:
    plain = compose([])
    plain["logger"]["csv"] = node("Simple")
    (problem,) = problems(plain)
    assert problem.startswith("logger.csv: got the component Simple")


def test_required_values_say_what_to_type(project: Project) -> None:
    assert problems(compose(["job=score"])) == ["job.policy: required; type job.policy=…, text"]
    plain = compose([])
    del plain["env"]
    assert problems(plain)[0].startswith("env: required; type env=…, a component of kind Env (env=game|kda_game|plain)")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("gameagent.nowhere.X", "No module named 'gameagent.nowhere'"),
        ("gameagent.contract.Nothing", "gameagent.contract has no 'Nothing'"),
        ("os.system", "os.system is no component; decorate the class"),
        ("./nothing.py:X", "there is no file"),
        ("X", "names no module; write package.module.Class or ./file.py:Class"),
    ],
)
def test_a_wrong_target_is_told(project: Project, target: str, said: str) -> None:
    (problem,) = problems({"_target_": target})
    assert problem.startswith("_target_: ")
    assert said in problem


def test_only_an_experiment_is_an_experiment() -> None:
    with pytest.raises(ConfigError, match=r"gameagent\.experiment\.Experiment"):
        build(node("Tiny"))


def test_hydras_own_instantiate_validates_the_same_way() -> None:
    target = f"{locate(fake('FakePPO')).__module__}.FakePPO"
    made = instantiate({"_target_": target, "lr": 1, "schedule": "adaptive"})
    assert (made.lr, made.schedule.name) == (1.0, "adaptive")
    for wrong in ({"lr": "abc"}, {"lr": True}, {"lr": -1}, {"lrr": 1}, {"schedule": "x"}):
        with pytest.raises(InstantiationException):
            instantiate({"_target_": target, **wrong})
