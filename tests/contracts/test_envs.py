"""Every env that ships with gameagent keeps the promises of `VectorEnv`."""

from __future__ import annotations

from typing import Any

import pytest

from gameagent.envs.base import Env
from gameagent.envs.check import check_vector_env
from gameagent.envs.gym import GymEnv
from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.mini.game import BUILT_IN
from gameagent.rewards.catch import CatchReward

SHORT: dict[str, dict[str, Any]] = {"catch": {"knobs": {"lives": 1, "bombs": 0.6}}}
"""Knobs with which each game's episodes are short enough to see some ends."""


def envs() -> dict[str, Env]:
    """Every built-in game in every way of looking at it, and Gymnasium's."""
    made: dict[str, Env] = {
        "gym": GymEnv(),
        "gym, wrapped": GymEnv(id="Acrobot-v1", frame_stack=2, frame_skip=2, sticky=0.2, max_episode_steps=40),
    }
    for game in BUILT_IN:
        for name, fields in {
            "pixels": {"reward": CatchReward(tracking=0.5)},
            "policy input": {"frame_skip": 4, "frame_size": 56, "frame_stack": 2, "grey": True, "sticky": 0.25},
            "features": {"obs": "features", "frame_skip": 2},
            "both": {"obs": "both", "frame_size": 28, "max_episode_steps": 30},
            "text": {"obs": "text", "frame_skip": 4},
        }.items():
            made[f"{game}, {name}"] = MiniEnv(game=game, **SHORT[game], **fields)
    return made


@pytest.mark.parametrize("env", envs().values(), ids=envs().keys())
def test_env_keeps_the_contract(env: Env) -> None:
    assert check_vector_env(env.make, steps=120) == []


@pytest.mark.parametrize("env", envs().values(), ids=envs().keys())
def test_raw_env_keeps_the_contract_and_transforms_lead_to_the_policys_space(env: Env) -> None:
    raw = env.raw()
    space = raw.make(1, 0).obs_space
    transforms = env.transforms(space)
    assert (transforms[-1].space if transforms else space) == env.make(1, 0).obs_space
    assert raw.frame_skip == 1
