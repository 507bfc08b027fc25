"""The two faces of an environment: `Env`, the component that is configured, and `VectorEnv`, the batch that it makes.

env = MiniEnv(game="catch", frame_skip=4).make(num_envs=64, seed=0)
obs, info = env.reset(seed=0)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymVectorEnv

from gameagent.contract import ActionSpace, Array, BoolArray, FloatArray, IntArray, Obs, ObsSpace

_BITS = 2**64 - 1
State = dict[str, Any]
"""A whole env's state: str keys, numpy arrays, numbers, strings, bytes, lists and dicts of these. No objects."""


class VectorEnv(GymVectorEnv[Any, Any, Any]):
    """N environments stepped together; a Gymnasium vector env with a few promises on top.

    * Autoreset is SAME_STEP: the obs of a finished env is the first of its next episode, and `info["final_obs"]` holds
      a copy of the last one (rows where `info["_final_obs"]` is False mean nothing).
    * Actions are flat ids (N,) int64 of `actions`.
    * `reset(seed=s)` gives env i the seed s+i, `reset(seed=[…])` each its own; episode k of an env then draws from
      `episode_key(seed, k)`: independent of N, of other envs and of when they finish.
      `reset(seed=[…], options={"reset_mask": mask})` restarts the masked envs only.
    * `terminated` says that the game ended, `truncated` that a limit cut the episode short; as in Gymnasium both are
      True where they coincide: bootstrap where `truncated & ~terminated`.
    * A step's info holds `"reward_terms"` {name: (N,) float64}, and where an env finished, `"final_info"` with
      `"score"` (N,) float64, the game's own score, valid where `"_final_info"` is True.
    """

    metadata: dict[str, Any] = {
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
        "render_fps": 30,
    }
    obs_space: ObsSpace
    """Parts of one env's observation, after wrappers."""
    actions: ActionSpace
    """Labelled heads behind `single_action_space`, which is Discrete(actions.n)."""
    frames_per_step: int = 1
    """Emulated frames that one step plays (frame skip); env steps and frames are logged apart."""

    @abstractmethod
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes; without a seed each env goes on to its next one. Gives observations and an info."""

    @abstractmethod
    def get_state(self) -> State:
        """Everything needed to go on exactly from here, RNGs included."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Inverse of `get_state`. Raises EnvError for a state of another env, batch size or configuration."""

    @abstractmethod
    def observe(self) -> Any:
        """The current observation in Gymnasium's form, without stepping (after `set_state`, say)."""

    def expert(self) -> IntArray | None:
        """Flat actions (N,) of the built-in expert for the current state, or None where the game has none."""
        return None

    def score(self) -> FloatArray | None:
        """The game's own score so far (N,), or None where the game keeps none while it is played."""
        return None

    def frames(self) -> Array | None:
        """What a person would see now: (N, H, W, 3) uint8 at the game's full size, or None.

        After an autoreset it shows the new episode; `info["final_frame"]` (N, H, W, 3) keeps the last picture where
        `render_mode` is rgb_array.
        """
        return None

    def render(self) -> tuple[Array, ...] | None:
        """Gymnasium's form of `frames`."""
        frames = self.frames()
        return None if frames is None else tuple(frames)


class Env(ABC):
    """Base of every environment component (`conf/env/*.yaml`). Subclasses have a field `num_envs`."""

    num_envs: int
    frame_skip: int = 1
    """Emulated frames a step: the stride at which SFT reads stored frames."""
    frame_stack: int = 1
    """Latest observations seen at once: how far a sample of SFT looks back."""

    @abstractmethod
    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> VectorEnv:
        """The batch of `num_envs` envs (default: the field), seeded as `VectorEnv` says. Not yet reset."""

    def raw(self) -> Env:
        """The same game one frame at a time, unresized, unstacked, unskipped: what collecting demonstrations uses."""
        return self

    def transforms(self, raw: ObsSpace) -> Sequence[Transform]:
        """What this env does to raw observations before the policy sees them: applied to stored episodes by SFT."""
        return ()


class Transform(ABC):
    """One batched step from observations to observations (resize, grey, stack). Made for one batch; may hold state."""

    space: ObsSpace
    """Of what it gives."""

    @abstractmethod
    def __call__(self, parts: Obs, fresh: BoolArray, rows: IntArray | None = None) -> Obs:
        """Transform a batch. `fresh` marks rows that begin an episode: nothing of the past may reach them.

        `parts` and `fresh` hold all N envs, or, where `rows` is given, only the envs of these indices (after an
        autoreset, say). What it gives is never written to again.
        """

    def peek(self, parts: Obs) -> Obs:
        """What it gave last, made again from the parts that it was given last; nothing is remembered."""
        return self(parts, np.zeros(len(next(iter(parts.values()))), np.bool_))

    def get_state(self) -> State:
        """What it remembers."""
        return {}

    def set_state(self, state: State) -> None:  # noqa: B027
        """Inverse of `get_state`."""


def episode_key(seed: int, episode: int) -> np.uint64:
    """The 64-bit key that episode `episode` of an env seeded with `seed` draws all its randomness from.

    Two rounds of splitmix64 (Steele et al. 2014): neighbouring seeds and episodes have unrelated keys.
    """
    return np.uint64(_mixed(_mixed(seed) + episode))


def _mixed(value: int) -> int:
    z = (value + 1) * 0x9E3779B97F4A7C15 & _BITS
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _BITS
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _BITS
    return z ^ z >> 31


__all__ = ["AutoresetMode", "Env", "FloatArray", "State", "Transform", "VectorEnv", "episode_key"]
