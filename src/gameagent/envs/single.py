"""Gymnasium's faces of the mini-games: what `gymnasium.make` and `gymnasium.make_vec` build.

import gymnasium, gameagent.envs
env = gymnasium.make("gameagent/MiniCatch-v0", frame_size=56, frame_skip=4)
envs = gymnasium.make_vec("gameagent/MiniCatch-v0", num_envs=64, obs="features")
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from gameagent.contract import Array, Part
from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.vector import CoreVectorEnv


class SingleEnv(gymnasium.Env[Any, Any]):
    """One game as a plain Gymnasium env: N = 1 of the same core as the vector env, without autoreset.

    Args:
        render_mode: None or "rgb_array".
        **fields: of `MiniEnv`, such as game, obs, frame_skip, frame_size, knobs.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(self, render_mode: str | None = None, **fields: Any) -> None:
        self.render_mode = render_mode
        self.batch = MiniEnv(**fields).make(1, None, render_mode, AutoresetMode.DISABLED)
        self.observation_space = self.batch.single_observation_space
        self.action_space = self.batch.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the first episode of `seed`, or without one the next episode of the last."""
        super().reset(seed=seed)
        obs, _ = self.batch.reset(seed=[seed])
        return self._first(obs), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step. The info holds the reward's terms and, at the end of an episode, the game's `score`."""
        obs, reward, terminated, truncated, info = self.batch.step(np.asarray(action).reshape(1))
        own: dict[str, Any] = {"reward_terms": {name: float(term[0]) for name, term in info["reward_terms"].items()}}
        if "final_info" in info:
            own["score"] = float(info["final_info"]["score"][0])
        return self._first(obs), float(reward[0]), bool(terminated[0]), bool(truncated[0]), own

    def render(self) -> Any:
        """The picture (H, W, 3); after the end of an episode still its last one."""
        frames = self.batch.frames()
        return None if frames is None or self.render_mode is None else frames[0]

    def close(self) -> None:
        """Free the game."""
        self.batch.close()

    def _first(self, obs: Any) -> Any:
        """The only env's observation: a batch of one without its batch axis."""
        parts = {n: _row(n, part) for n, part in self.batch.obs_space.as_parts(obs).items()}
        return parts if len(parts) > 1 else next(iter(parts.values()))


def _row(name: str, part: Array) -> Any:
    return str(part[0]) if name == Part.text else part[0]


def make_batch(num_envs: int = 1, render_mode: str | None = None, **fields: Any) -> CoreVectorEnv:
    """The native vector env, for `gymnasium.make_vec`. Fields are those of `MiniEnv`; seeds come from `reset`."""
    return MiniEnv(**fields).make(num_envs, None, render_mode)
