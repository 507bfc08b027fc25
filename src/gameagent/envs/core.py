"""`Core`: N games of one kind and nothing else. `vector.CoreVectorEnv` turns one into a whole `VectorEnv`.

A new native game (an emulator, a simulator) implements this class; seeds, autoreset, skip, limits and rewards are not
its job.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from gameagent.contract import ActionSpace, Array, BoolArray, FloatArray, IntArray, Obs, ObsSpace
from gameagent.envs.base import State


class Core(ABC):
    """N copies of a game, advanced one frame at a time. Envs never affect each other."""

    name: str
    """Names the game in messages; a state of another name is refused."""
    num_envs: int
    """N."""
    space: ObsSpace
    """What `observe` draws, for one env."""
    actions: ActionSpace
    """What a player can do in one frame."""
    max_frames: int | None = None
    """The game's own limit on an episode, in frames, or None."""
    cut: BoolArray | None = None
    """Envs (N,) whose episode the outside world ended in the last `advance` (a dead emulator, say), or None."""

    @abstractmethod
    def reset(self, mask: BoolArray, keys: NDArray[np.uint64]) -> None:
        """Start a new episode where `mask` (N,); all its randomness comes from that env's key of `keys` (N,)."""

    @abstractmethod
    def advance(self, actions: IntArray, active: BoolArray) -> BoolArray:
        """Play one frame where `active` (N,); the others stand still. Gives a new array: which games ended (N,)."""

    @abstractmethod
    def observe(self, out: Obs, mask: BoolArray) -> None:
        """Write the current observation of the masked envs into their rows of `out` (`space.empty(N)`)."""

    @abstractmethod
    def context(self) -> dict[str, FloatArray]:
        """The signals now, in new arrays (N,) float64, that rewards look at. `score` is the game's own score."""

    def expert(self) -> IntArray | None:
        """The built-in expert's flat actions (N,) for now, or None where there is none."""
        return None

    def frames(self, mask: BoolArray | None = None) -> Array | None:
        """Pictures (N, H, W, 3) uint8 for people, drawn where `mask` (default: all), or None where there are none."""
        return None

    @abstractmethod
    def get_state(self) -> State:
        """Everything needed to go on exactly from here, what `context` gives included."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Inverse of `get_state`. Raises EnvError for a state that doesn't fit."""

    def close(self) -> None:  # noqa: B027
        """Free what the operating system should get back."""
