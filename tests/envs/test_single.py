"""Gymnasium's faces: the registered single env and native vector env."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
import stable_baselines3 as sb3
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import gameagent.envs
from gameagent.envs.vector import CoreVectorEnv

ID = "gameagent/MiniCatch-v0"


@pytest.mark.parametrize(
    "fields", [{}, {"obs": "features"}, {"obs": "both", "frame_skip": 4, "frame_size": 56}, {"obs": "text"}]
)
def test_single_env_passes_gymnasiums_checker_without_a_warning(fields: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ID, render_mode="rgb_array", **fields).unwrapped)


def test_registering_again_is_harmless() -> None:
    gameagent.envs.register()
    assert ID in gymnasium.registry


def test_single_env_is_the_vector_env_without_autoreset() -> None:
    single = gymnasium.make(ID, frame_skip=4, knobs={"lives": 1, "bombs": 0.8}, render_mode="rgb_array")
    batch = gymnasium.make_vec(ID, num_envs=3, frame_skip=4, knobs={"lives": 1, "bombs": 0.8})
    one, _ = single.reset(seed=12)
    many, _ = batch.reset(seed=10)
    rng = np.random.default_rng(0)
    for _ in range(2):
        done = False
        while not done:
            np.testing.assert_array_equal(one, many[2])
            action = int(rng.integers(6))
            one, reward, done, _, info = single.step(action)
            many, rewards, terminated, _, infos = batch.step(np.full(3, action))
            assert (reward, done) == (rewards[2], terminated[2])
        np.testing.assert_array_equal(one, infos["final_obs"][2])
        assert info["score"] == infos["final_info"]["score"][2]
        np.testing.assert_array_equal(single.render(), one)  # still the last picture
        one, _ = single.reset()


def test_native_vector_env_is_what_make_vec_gives() -> None:
    env = gymnasium.make_vec(ID, num_envs=5, obs="features", vectorization_mode="vector_entry_point")
    assert isinstance(env, CoreVectorEnv)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, _ = env.reset(seed=0)
    assert obs in env.observation_space


def test_gymnasiums_own_vector_envs_and_statistics_work_with_it() -> None:
    for mode in ("sync", "vector_entry_point"):
        env = RecordEpisodeStatistics(
            gymnasium.make_vec(
                ID,
                num_envs=2,
                obs="features",
                max_episode_steps=5,
                vectorization_mode=mode,
                vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP} if mode == "sync" else {},
            )
        )
        env.reset(seed=0)
        lengths = []
        for _ in range(15):
            *_, info = env.step(np.ones(2, np.int64))
            episode = info.get("final_info", {}).get("episode") or info.get("episode")
            if episode is not None:
                lengths += episode["l"].tolist()
        assert lengths == [5] * 6


def test_unseeded_envs_differ() -> None:
    one, other = (gymnasium.make(ID, obs="features").reset()[0] for _ in range(2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("fields", [{"obs": "features"}, {"frame_skip": 4, "frame_size": 56}])
def test_stable_baselines3_trains_on_it_unmodified(fields: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ID, **fields)
        policy = "MlpPolicy" if "obs" in fields else "CnnPolicy"
        model = sb3.PPO(policy, env, n_steps=256, batch_size=64, n_epochs=1, device="cpu", seed=0)
        model.learn(2048)
    assert model.num_timesteps == 2048
