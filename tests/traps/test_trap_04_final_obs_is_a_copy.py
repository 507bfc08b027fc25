"""Trap 4: an env that draws into one buffer again and again must not change observations that it gave before."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from tests.envs.test_gym import toy
from tests.envs.toys import Clock

from gameagent.envs.base import VectorEnv
from gameagent.envs.vector import CoreVectorEnv


def batches() -> list[VectorEnv]:
    core = CoreVectorEnv(Clock(3), lambda ctx: (ctx.signals["gain"].copy(), {}))
    return [core, toy().make(3, seed=0)]


@pytest.mark.parametrize("env", batches(), ids=["native core", "gymnasium env with one buffer"])
def test_final_obs_is_the_last_observation_and_stays_it(env: VectorEnv) -> None:
    obs, _ = env.reset(seed=0)
    first = {name: part.copy() for name, part in env.obs_space.as_parts(obs).items()}
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    steps = np.zeros(3, np.int64)
    for _ in range(30):
        obs, _, terminated, truncated, info = env.step(np.zeros(3, np.int64))
        steps += 1
        done = terminated | truncated
        if done.any():
            final, now = env.obs_space.as_parts(info["final_obs"])["frame"], env.obs_space.as_parts(obs)["frame"]
            for i in np.flatnonzero(done):
                assert not np.array_equal(final[i], now[i])
                assert (final[i].astype(int) - now[i] != 0).all()
            kept.append((final, final.copy()))
            steps[done] = 0
    assert kept
    for given, copy in kept:
        np.testing.assert_array_equal(given, copy)
    assert first.keys() == env.obs_space.keys()


def test_gymnasiums_own_loop_would_have_aliased_it() -> None:
    """Why `GymEnv` copies: the same buffer is the final and, after the reset, the first observation."""
    env = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("gameagent-tests/Toy-v0")], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP
    )
    env.reset(seed=0)
    for _ in range(8):
        *_, terminated, _, info = env.step(np.zeros(1, np.int64))
        if terminated[0]:
            assert (info["final_obs"][0] == 0).all()  # the episode's last frame showed 4 or more
            return
    pytest.fail("no episode ended")
