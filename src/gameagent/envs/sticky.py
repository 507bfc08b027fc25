"""Sticky actions for a batch: each frame, with some probability, an env repeats the action of the frame before.

sticky = StickyActions(0.25, num_envs); sticky.reset(mask, keys); played = sticky(flat_actions)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gameagent.contract import BoolArray, IntArray
from gameagent.envs.base import State

_STREAM = np.uint64(0xD6E8FEB86659FD93)
"""Sets these draws apart from those that the game makes with the same episode key."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class StickyActions:
    """Machado et al. 2018, "Revisiting the Arcade Learning Environment", §5. Never on an episode's first frame.

    An env's draws depend on its episode key and frame number only.

    Args:
        probability: of repeating, each frame, above 0 and at most 1.
        num_envs: N.
    """

    def __init__(self, probability: float, num_envs: int) -> None:
        if not 0 < probability <= 1:
            raise ValueError(f"sticky is a probability, 0 to 1; got {probability}")
        self._probability = probability
        self._keys = np.zeros(num_envs, np.uint64)
        self._frames = np.zeros(num_envs, np.int64)
        self._last = np.zeros(num_envs, np.int64)

    def reset(self, mask: BoolArray, keys: NDArray[np.uint64]) -> None:
        """Begin an episode where `mask` (N,), with that env's episode key."""
        self._keys[mask] = keys[mask] ^ _STREAM
        self._frames[mask] = 0

    def __call__(self, actions: IntArray) -> IntArray:
        """The actions (N,) that are played in this frame."""
        stick = (uniform_at(self._keys, self._frames) < self._probability) & (self._frames > 0)
        self._last = np.where(stick, self._last, actions)
        self._frames += 1
        return self._last

    def get_state(self) -> State:
        """Everything needed to go on exactly."""
        return {"keys": self._keys.view(np.int64).copy(), "frames": self._frames.copy(), "last": self._last.copy()}

    def set_state(self, state: State) -> None:
        """Inverse of `get_state`."""
        self._keys = np.array(state["keys"], np.int64).view(np.uint64)
        self._frames, self._last = np.array(state["frames"], np.int64), np.array(state["last"], np.int64)


def uniform_at(keys: NDArray[np.uint64], counters: IntArray) -> NDArray[np.float64]:
    """Number `counters` (N,) of the random stream of each key (N,), in [0, 1): splitmix64 (Steele et al. 2014)."""
    z = keys + (counters.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _MIX[0]
    z = (z ^ (z >> np.uint64(27))) * _MIX[1]
    z = z ^ (z >> np.uint64(31))
    uniform: NDArray[np.float64] = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return uniform
