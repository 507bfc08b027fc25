"""Trap 6: Gymnasium renamed keys and changed its default mode; nothing here relies on either."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv

import gameagent.envs
from gameagent.envs.gym import GymEnv


@pytest.mark.parametrize(
    "env",
    [
        gymnasium.make_vec("gameagent/MiniCatch-v0", num_envs=2, obs="features", max_episode_steps=3),
        GymEnv(max_episode_steps=3).make(2),
    ],
    ids=["native", "gym"],
)
def test_mode_is_the_enum_member_and_keys_are_todays(env: VectorEnv) -> None:  # type: ignore[type-arg]
    assert gameagent.envs.GAMES
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    env.reset(seed=0)
    for _ in range(3):
        obs, *_, info = env.step(np.zeros(2, np.int64))
    assert {"final_obs", "_final_obs", "final_info", "_final_info"} <= set(info)
    assert not {"final_observation", "_final_observation"} & set(info)
    assert info["final_obs"].shape == obs.shape
    assert info["_final_obs"].dtype == np.bool_


def test_gymnasiums_default_mode_is_not_relied_on() -> None:
    """SyncVectorEnv's default is another one; the adapter names the mode."""
    default = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")]).metadata["autoreset_mode"]
    assert default is not AutoresetMode.SAME_STEP
    assert GymEnv().make(1).sync.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
