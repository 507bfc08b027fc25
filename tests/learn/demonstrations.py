"""Recorded episodes with a rule to learn: go right where feature 0 is positive, dash where feature 1 is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.learn.fakes import fit

from gameagent.component import component
from gameagent.contract import ActionSpace, ObsSpace
from gameagent.data.episodes import EpisodeStore
from gameagent.envs.base import Env, VectorEnv
from gameagent.learn.sft import SFT, SFTModule
from gameagent.nets.encoders import Mlp
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.base import Policy

ACTIONS = ActionSpace({"move": ("left", "right"), "act": ("wait", "dash")})
SPACE = ObsSpace(features=(2,))


@component
class Untouched(Env):
    """Cloning asks its environment for transforms only."""

    num_envs: int = 1

    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> VectorEnv:
        raise AssertionError("cloning plays nothing")


def demonstrations(folder: Path, episodes: int = 10, length: int = 30, seed: int = 0) -> EpisodeStore:
    """A store that follows the rule."""
    rng = np.random.default_rng(seed)
    store = EpisodeStore.create(folder / "episodes.zarr", obs_space=SPACE, action_space=ACTIONS, env={}, source={})
    for e in range(episodes):
        writer = store.writer(seed=e)
        for _ in range(length):
            x = rng.normal(size=2).astype(np.float32)
            writer.add({"features": x}, 2 * int(x[0] > 0) + int(x[1] > 0), 0.0)
        writer.finish(score=0)
    return store


def policy(seed: int = 0) -> Policy:
    """A small network with fresh weights."""
    torch.manual_seed(seed)
    return ActorCritic(encoder=Mlp(hidden=(16,))).build(SPACE, ACTIONS)


def cloned(store: EpisodeStore, *, seed: int = 0, trainer: dict[str, Any] | None = None, **fields: Any) -> SFTModule:
    """A module after training."""
    learner = SFT(data=str(store.path), **fields)
    module = learner.module(env=Untouched(), policy=policy(), seed=seed)
    fit(module, **(trainer or {}))
    return module
