"""`Episodes`: a wrapper that gives a single Gymnasium env per-episode seeds and an exact, plain state.

env = Episodes(gymnasium.make("CartPole-v1"), "CartPole-v1"); env.reset(seed=7); …; state = env.get_state()
"""

from __future__ import annotations

import hashlib
from typing import Any

import gymnasium
import numpy as np

from gameagent.envs.base import State, episode_key
from gameagent.errors import EnvError


class Episodes(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Episode k of seed s is reset with a seed made of both; the state of an episode is its actions, played again.

    That needs nothing of the env but that it is deterministic under a seed; where a replay comes out differently, it is
    refused.

    Args:
        env: the env, other wrappers included.
        name: of the env, for messages.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], name: str) -> None:
        super().__init__(env)
        self._name = name
        self._seed, self._episode = 0, -1
        self._played: list[Any] = []
        self._rewards = hashlib.blake2b(digest_size=16)
        self.obs: Any = None
        """The last observation."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the first episode of `seed`, or without one the next episode of the last."""
        if seed is not None:
            self._seed, self._episode = seed, 0
        else:
            self._episode += 1
        self._played, self._rewards = [], hashlib.blake2b(digest_size=16)
        # A Gymnasium env's seed may go into a 32-bit generator.
        start = int(episode_key(self._seed, self._episode) >> np.uint64(33))
        obs, info = self.env.reset(seed=start, options=options)
        self.obs = _copied(obs)
        return self.obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; the last one's info holds the last picture as `final_frame` where the env draws any."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._played.append(np.asarray(action).tolist())
        self._rewards.update(np.float64(reward).tobytes())
        self.obs = _copied(obs)
        if (terminated or truncated) and self.render_mode == "rgb_array":
            info = {**info, "final_frame": np.asarray(self.env.render(), np.uint8)}
        return self.obs, reward, terminated, truncated, info

    def get_state(self) -> State:
        """Seed, episode and actions so far, with a digest of all rewards and of the last observation."""
        return {"seed": self._seed, "episode": self._episode, "played": list(self._played), "digest": self._digest()}

    def set_state(self, state: State) -> None:
        """Play the episode again up to where it was saved. Raises EnvError where it comes out differently."""
        self._seed, self._episode = int(state["seed"]), int(state["episode"]) - 1
        self.reset()
        for action in state["played"]:
            self.step(np.asarray(action, np.int64) if isinstance(action, list) else np.int64(action))
        if self._digest() != bytes(state["digest"]):
            raise EnvError(
                f"{self._name} cannot be resumed exactly: the same seed and actions gave other observations or "
                "rewards. It draws randomness from elsewhere than its own np_random, or its version or arguments "
                "changed; start the run anew, or fix the env's seeding"
            )

    def _digest(self) -> bytes:
        digest = self._rewards.copy()
        for part in self.obs.values() if isinstance(self.obs, dict) else (self.obs,):
            digest.update(part.tobytes())
        return digest.digest()


def _copied(obs: Any) -> Any:
    """Many envs draw into one buffer over and over; autoreset would draw over the last observation."""
    return {key: np.array(part) for key, part in obs.items()} if isinstance(obs, dict) else np.array(obs)
