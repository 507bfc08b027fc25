"""Small stand-ins that the learner's tests play in: an environment whose every number is known beforehand."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import gymnasium as gym
import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.loggers import Logger

from gameagent.component import component
from gameagent.contract import ActionSpace, ObsSpace
from gameagent.envs.base import AutoresetMode, Env, State, VectorEnv
from gameagent.experiment import Experiment
from gameagent.jobs.train import Train
from gameagent.learn.base import Learner
from gameagent.learn.callbacks import Checkpoint, StopGently
from gameagent.learn.loggers import Csv
from gameagent.learn.ppo import PPO, PPOModule
from gameagent.learn.trainer import Accelerator, Trainer
from gameagent.nets.encoders import Mlp
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.base import Policy

LAST = 100.0
"""Added to the first feature of an episode's last observation: nothing else looks like it."""


class Ending(StrEnum):
    truncated = "truncated"
    terminated = "terminated"
    never = "never"


class CountingEnv(VectorEnv):
    """Feature 0 counts the steps of the episode (plus LAST at its end), feature 1 is drawn from the env's seed.

    The reward is `reward` a step, plus `bonus` where the action is 1. Every call gives the same buffer.
    """

    def __init__(self, spec: FakeEnv, num_envs: int) -> None:
        self.spec, self.num_envs = spec, num_envs
        self.obs_space, self.actions = (
            ObsSpace(features=(2,)),
            ActionSpace({"move": ("stay", "go"), "act": ("no", "yes")}),
        )
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.single_action_space = gym.spaces.Discrete(self.actions.n)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, num_envs)
        self.metadata = {**VectorEnv.metadata, "autoreset_mode": spec.mode}
        self.frames_per_step = spec.frame_skip
        self.count = np.zeros(num_envs, np.int64)
        self.number = np.zeros(num_envs)
        self.rngs = [np.random.default_rng(i) for i in range(num_envs)]
        self.buffer = np.zeros((num_envs, 2), np.float32)
        self.seeds: list[int] = []
        self.steps_taken = 0
        self.closed_times = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.seeds = [seed + i for i in range(self.num_envs)]
        self.rngs = [np.random.default_rng(s) for s in self.seeds]
        self.count[:] = 0
        self.number = np.array([rng.normal() for rng in self.rngs])
        return self.observe(), {}

    def observe(self) -> Any:
        self.buffer[:, 0], self.buffer[:, 1] = self.count / self.spec.scale, self.number
        if self.spec.constant:
            self.buffer[:] = 0
        return self.buffer

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        assert actions.shape == (self.num_envs,)
        assert actions.dtype == np.int64
        self.steps_taken += 1
        self.count += 1
        reward = self.spec.reward + self.spec.bonus * (actions == 1)
        if self.spec.poison and self.steps_taken % self.spec.poison == 0:
            reward[0] = np.nan
        over = (self.count >= self.spec.limit) & (self.spec.ending is not Ending.never)
        info: dict[str, Any] = {"reward_terms": {"step": np.full(self.num_envs, self.spec.reward)}}
        if over.any():
            final = self.observe().copy()
            if final.dtype == np.float32 and not self.spec.constant:
                final[:, 0] += LAST
            info |= {"final_obs": final, "_final_obs": over.copy()}
            info |= {"final_info": {"score": self.count * 10.0}, "_final_info": over.copy()}
            self.count[over] = 0
            for i in np.flatnonzero(over):
                self.number[i] = self.rngs[i].normal()
        ended = over & (self.spec.ending is Ending.terminated)
        return self.observe(), reward, ended, over & ~ended, info

    def get_state(self) -> State:
        return {
            "count": self.count.copy(),
            "number": self.number.copy(),
            "rngs": [rng.bit_generator.state for rng in self.rngs],
        }

    def set_state(self, state: State) -> None:
        self.count, self.number = state["count"].copy(), state["number"].copy()
        for rng, saved in zip(self.rngs, state["rngs"], strict=True):
            rng.bit_generator.state = saved

    def close(self, **kwargs: Any) -> None:
        self.closed_times += 1


class Frames(CountingEnv):
    """Frames whose pixels count the steps."""

    def __init__(self, spec: FakeEnv, num_envs: int) -> None:
        super().__init__(spec, num_envs)
        self.obs_space, self.actions = ObsSpace(frame=(36, 36, 3)), ActionSpace({"move": ("stay", "go")})

    def observe(self) -> np.ndarray:
        return np.broadcast_to(self.count[:, None, None, None].astype(np.uint8), (self.num_envs, 36, 36, 3)).copy()


@component
class FakeEnv(Env):
    """Makes `CountingEnv`s."""

    num_envs: int = 4
    frame_skip: int = 1
    limit: int = 5
    ending: Ending = Ending.truncated
    reward: float = 1.0
    bonus: float = 0.0
    scale: float = 1.0
    constant: bool = False
    """One state only: all features are 0."""
    poison: int = 0
    """Every so many steps a reward is NaN; 0: never."""
    mode: AutoresetMode = AutoresetMode.SAME_STEP

    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> CountingEnv:
        return CountingEnv(self, num_envs or self.num_envs)


def train(learner: PPO, env: FakeEnv, *, seed: int = 0, **trainer: Any) -> PPOModule:
    """Train a small network from scratch; gives the module after training."""
    torch.manual_seed(seed)
    module = learner.module(env=env, policy=small_policy(env), seed=seed)
    fit(module, **trainer)
    return module


def small_policy(env: Env) -> Policy:
    """An actor-critic of one hidden layer."""
    vector = env.make(num_envs=1)
    return ActorCritic(encoder=Mlp(hidden=(16,))).build(vector.obs_space, vector.actions)


def fit(module: PPOModule, ckpt: str | None = None, **trainer: Any) -> pl.Trainer:
    """Drive a module without writing anything."""
    settings: dict[str, Any] = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False} | trainer
    made = pl.Trainer(max_epochs=module.max_epochs, enable_progress_bar=False, enable_model_summary=False, **settings)
    made.fit(module, ckpt_path=ckpt, weights_only=True)
    return made


def weights(policy: torch.nn.Module) -> torch.Tensor:
    """All parameters in one vector."""
    return torch.cat([p.detach().flatten() for p in policy.parameters()])


class Rows(Logger):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int | None, dict[str, float]]] = []

    name = "rows"
    version = ""

    def log_metrics(self, metrics: Any, step: int | None = None) -> None:
        self.rows.append((step, dict(metrics)))

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        pass


def experiment(out: Path, *, learner: Learner, env: Env | None = None, resume: str | None = None) -> Experiment:
    """A training run that writes into `out`, as the command line composes it."""
    return Experiment(
        name="fake",
        out=str(out),
        env=env or FakeEnv(bonus=1.0),
        policy=ActorCritic(encoder=Mlp(hidden=(16,))),
        learner=learner,
        job=Train(resume=resume),
        trainer=Trainer(accelerator=Accelerator.cpu, threads=1),
        logger={"csv": Csv()},
        callbacks={"checkpoint": Checkpoint(every_seconds=0), "stop": StopGently()},
    )
