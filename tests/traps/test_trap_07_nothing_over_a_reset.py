"""Trap 7: frame stacks, skipped frames and sticky actions that carry something of the last episode into the next."""

from __future__ import annotations

import numpy as np
import pytest
from tests.envs.test_gym import toy
from tests.envs.toys import Clock

from gameagent.envs.base import VectorEnv
from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.vector import CoreVectorEnv
from gameagent.envs.wrappers import Stack


def batches() -> dict[str, VectorEnv]:
    core = CoreVectorEnv(
        Clock(4), lambda ctx: (ctx.signals["gain"].copy(), {}), transforms=[Stack(Clock.space, 4)], frame_skip=2
    )
    game = MiniEnv(frame_stack=4, frame_skip=4, frame_size=28, knobs={"lives": 1, "bombs": 0.9})
    return {"core": core, "mini": game.make(4), "gym": toy(frame_stack=4, frame_skip=2).make(4)}


@pytest.mark.parametrize("name", batches())
def test_all_stacked_frames_equal_the_first_after_reset_and_autoreset(name: str) -> None:
    env, ends = batches()[name], 0

    def alike(obs: object, rows: np.ndarray) -> None:
        frame = env.obs_space.as_parts(obs)["frame"][rows]
        depth = frame.shape[-1] // 4
        for k in range(1, 4):
            np.testing.assert_array_equal(frame[..., :depth], frame[..., k * depth : (k + 1) * depth])

    alike(env.reset(seed=0)[0], np.arange(4))
    for _ in range(120):
        obs, _, terminated, truncated, _ = env.step(np.full(4, 2))
        ended = np.flatnonzero(terminated | truncated)
        alike(obs, ended)
        ends += len(ended)
    assert ends > 3
    alike(env.reset(options={"reset_mask": np.array([True, False, True, False])})[0], np.array([0, 2]))


def test_an_action_does_not_stick_over_a_reset() -> None:
    env = CoreVectorEnv(Clock(1, length=3), lambda ctx: (ctx.signals["gain"].copy(), {}), sticky=1.0)
    env.reset(seed=0)
    for action in (1, 0, 0):
        env.step(np.array([action]))
    assert env.step(np.array([2]))[0]["features"][0, 2] == 2


def test_a_new_episode_begins_from_a_clean_record() -> None:
    """Whatever a game's `reset` forgets to set is zero, not left from the last episode."""
    env = MiniEnv(obs="features", knobs={"lives": 1, "bombs": 1.0, "items": 6}).make(8)
    env.reset(seed=0)
    for _ in range(300):
        *_, terminated, _, info = env.step(np.full(8, 2))
        if terminated.any():
            assert (env.core.context()["score"][terminated] == 0).all()
            assert (info["final_info"]["score"][terminated] < 0).all()
            return
    pytest.fail("no episode ended")
