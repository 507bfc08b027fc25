"""Small components of every kind for the tests of the configuration; their jobs write, fail or stop as told.

Named in configurations as file targets: `/path/fakes.py:FakeTrain`.
"""

from __future__ import annotations

import json
import signal
from dataclasses import field
from enum import StrEnum, auto
from typing import Annotated, Any

from pydantic import Field

from gameagent.component import component
from gameagent.contract import RewardContext
from gameagent.envs.base import Env, VectorEnv
from gameagent.errors import ConfigError, Interrupted, UserError
from gameagent.experiment import Experiment, Job
from gameagent.learn.base import Learner, LearnerModule
from gameagent.learn.trainer import LoggerSpec, TrainerSpec
from gameagent.nets.base import Encoder
from gameagent.policies.base import Architecture
from gameagent.rewards.base import Reward

UNCALLED = "the tests of the configuration build components, and call none of them"


@component
class Simple(Reward):
    """Rewards simply."""

    bomb: float = -1.5
    """Of a bomb."""

    def __call__(self, ctx: RewardContext) -> Any:
        raise AssertionError(UNCALLED)


@component
class Kda(Reward):
    """Kills, deaths, assists."""

    kill: float = 5.0
    """Of a kill."""

    def __call__(self, ctx: RewardContext) -> Any:
        raise AssertionError(UNCALLED)


@component
class FakeEnv(Env):
    """A game."""

    num_envs: Annotated[int, Field(ge=1)] = 64
    """Games side by side, 1 or more."""
    reward: Reward = field(default_factory=Simple)
    """What is rewarded."""
    knobs: dict[str, float] = field(default_factory=dict)
    """Settings of the game."""

    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> VectorEnv:
        raise AssertionError(UNCALLED)


@component
class Plain(Env):
    """A game without parts."""

    num_envs: int = 8
    """Games side by side."""

    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> VectorEnv:
        raise AssertionError(UNCALLED)


@component
class Tiny(Encoder):
    """Few layers."""

    channels: tuple[int, ...] = (32, 64)
    """Of each layer."""

    def build(self, obs_space: Any) -> Any:
        raise AssertionError(UNCALLED)


@component
class Mlp(Encoder):
    """Dense layers."""

    hidden: tuple[int, ...] = (64,)
    """Width of each layer."""

    def build(self, obs_space: Any) -> Any:
        raise AssertionError(UNCALLED)


@component
class TwoHeads(Architecture):
    """Actor and critic."""

    encoder: Encoder = field(default_factory=Tiny)
    """Of the actor."""
    critic_encoder: Encoder | None = None
    """Of the critic; null: like the actor's."""

    def build(self, obs_space: Any, action_space: Any) -> Any:
        raise AssertionError(UNCALLED)


@component
class Blind(Architecture):
    """Sees nothing."""

    def build(self, obs_space: Any, action_space: Any) -> Any:
        raise AssertionError(UNCALLED)


class Schedule(StrEnum):
    """How a rate moves."""

    fixed = auto()
    adaptive = auto()


@component
class FakePPO(Learner):
    """Learns from play."""

    lr: Annotated[float, Field(gt=0)] = 3e-4
    """Step size, more than 0."""
    clip: float = 0.2
    """Of the ratio."""
    schedule: Schedule = Schedule.fixed
    """How lr moves."""
    target_kl: float | None = None
    """Upper limit; null: none."""
    total_steps: int = 1000
    """Environment steps."""
    init_from: str | None = None
    """Policy to start from."""

    def module(self, **about: Any) -> LearnerModule:
        raise AssertionError(UNCALLED)


@component
class FakeSFT(Learner):
    """Learns from examples."""

    lr: float = 1e-3
    """Step size."""
    epochs: int = 5
    """Passes."""
    init_from: str | None = None
    """Policy to start from."""

    def module(self, **about: Any) -> LearnerModule:
        raise AssertionError(UNCALLED)


@component
class FakeTrain(Job):
    """Writes what it was given, and ends as told."""

    resume: str | None = None
    """Run folder to go on from."""
    end: str = "well"
    """well, user, mistake, ioerror, bug, stop: how it ends."""

    def run(self, experiment: Experiment) -> float:
        about = {"seed": experiment.seed, "resume": self.resume, "name": experiment.name}
        (experiment.run_dir / "result.json").write_text(json.dumps(about))
        if self.end == "user":
            raise UserError("the data is missing; type job=collect")
        if self.end == "mistake":
            raise ConfigError("stage sft: a mistake")
        if self.end == "ioerror":
            raise OSError(28, "No space left on device", "episodes.zarr")
        if self.end == "bug":
            raise ZeroDivisionError("a bug")
        if self.end == "stop":
            raise Interrupted(signal.SIGTERM, "stopped at 5 steps")
        return 1.0


@component
class Sampler:
    """Chooses."""

    temperature: float = 1.0
    """Of the choice."""


@component
class FakeScore(Job):
    """Has a part and a value that must be given."""

    policy: str
    """Run folder."""
    sampler: Sampler = field(default_factory=lambda: Sampler(temperature=0.5))
    """How to choose."""

    def run(self, experiment: Experiment) -> dict[str, Any]:
        return {}


@component
class FakeTrainer(TrainerSpec):
    """Drives."""

    threads: int = 1
    """Of torch."""

    def build(self, **about: Any) -> Any:
        raise AssertionError(UNCALLED)


@component
class Csv(LoggerSpec):
    """Rows."""

    flush: int = 10
    """Rows between two writes."""

    def build(self, **about: Any) -> Any:
        raise AssertionError(UNCALLED)


@component
class Wandb(LoggerSpec):
    """Charts."""

    project: str = "gameagent"
    """Where runs are listed."""
    offline: bool = True
    """No network."""

    def build(self, **about: Any) -> Any:
        raise AssertionError(UNCALLED)
