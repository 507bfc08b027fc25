"""A core whose every number can be worked out by hand, and game files for the tests of the framework."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gameagent.contract import ActionSpace, Array, BoolArray, FloatArray, IntArray, Obs, ObsPart, ObsSpace, Part
from gameagent.envs.base import State
from gameagent.envs.core import Core


class Clock(Core):
    """Shows and scores the number of frames played; episode lengths follow from the key, or are all `length`.

    It always draws into, and reads from, buffers of its own: whoever doesn't copy is found out.
    """

    name = "clock"
    actions = ActionSpace({"act": ("slow", "fast", "odd")})
    space = ObsSpace(frame=(4, 6, 3), features=ObsPart(Part.features, (3,)))

    def __init__(self, num_envs: int, length: int | None = None, max_frames: int | None = None) -> None:
        self.num_envs, self.max_frames, self.length = num_envs, max_frames, length
        self.key = np.zeros(num_envs, np.uint64)
        self.time, self.gain, self.last = (np.zeros(num_envs, np.int64) for _ in range(3))
        self.drawn = 0
        """Frames drawn so far, over all envs."""

    def lengths(self) -> IntArray:
        """Frames after which each env's episode ends."""
        return np.full(self.num_envs, self.length) if self.length else 3 + (self.key % np.uint64(5)).astype(np.int64)

    def reset(self, mask: BoolArray, keys: NDArray[np.uint64]) -> None:
        self.key[mask], self.time[mask], self.gain[mask], self.last[mask] = keys[mask], 0, 0, 0

    def advance(self, actions: IntArray, active: BoolArray) -> BoolArray:
        self.last[active] = actions[active]
        self.gain[active] = 1 + actions[active]
        self.time[active] += 1
        return active & (self.time >= self.lengths())

    def observe(self, out: Obs, mask: BoolArray) -> None:
        self.drawn += int(mask.sum())
        shade = (self.time + (self.key % np.uint64(100)).astype(np.int64)).astype(np.uint8)
        out["frame"][mask] = shade[mask, None, None, None]
        out["features"][mask, 0] = self.time[mask]
        out["features"][mask, 1] = (self.key % np.uint64(1000))[mask]
        out["features"][mask, 2] = self.last[mask]

    def context(self) -> dict[str, FloatArray]:
        return {"score": 10.0 * self.time, "gain": self.gain.astype(np.float64)}

    def expert(self) -> IntArray:
        return self.time % 3

    def frames(self, mask: BoolArray | None = None) -> Array:
        return np.broadcast_to(self.time.astype(np.uint8)[:, None, None, None], (self.num_envs, 4, 6, 3)).copy()

    def get_state(self) -> State:
        return {n: getattr(self, n).copy() for n in ("time", "gain", "last")} | {"key": self.key.view(np.int64).copy()}

    def set_state(self, state: State) -> None:
        self.time, self.gain, self.last = (np.array(state[n]) for n in ("time", "gain", "last"))
        self.key = np.array(state["key"]).view(np.uint64)


WALK = '''"""Walk right; falls at random."""
from gameagent.envs.mini.draw import disc, fill, number, rect
from gameagent.envs.mini.rng import randint, uniform

ACTIONS = {"move": ("left", "right"), "jump": ("no", "yes", "high")}
STATE = [("x", float), ("steps", int), ("seen", int, 3), ("went", bool, 2)]
SIGNALS = ("score", "luck")
FEATURES = ("x", "steps")
CONFIG = {"pace": 1.5, "limit": 20, "wild": True}
LIMITS = {"pace": (0.5, 4.0)}
SIZE = (24, 32)
MAX_STEPS = 15
KEYMAP = {"a": ("move", "left"), "d": ("move", "right")}


def reset(s, cfg, rng):
    s.x = 10.0 * uniform(rng)
    s.seen[0] = randint(rng, 5, 8)


def step(s, move, jump, cfg, rng):
    s.x += (2 * move - 1) * cfg.pace * (1 + jump)
    s.steps += 1
    s.seen[s.steps % 3] = jump
    s.went[move] = True
    return s.steps >= cfg.limit or (cfg.wild and uniform(rng) < 0.1)


def render(s, img, cfg):
    fill(img, (10, 20, 30))
    rect(img, s.x, 5, 3, 4, (200, 0, 0))
    disc(img, 31 - s.x, 15, 4.5, (0, 200, 0))
    number(img, 1, 18, s.steps, 1, (255, 255, 255))


def signals(s, out, cfg):
    out.score = s.steps
    out.luck = s.x / 3.0


def features(s, out, cfg):
    out[0] = s.x
    out[1] = s.steps


def expert(s, cfg):
    return 3 if s.x < 10.0 else 0


def text(s, cfg):
    return f"x={s.x:.3f} after {s.steps}, pace {cfg.pace:g}"
'''
"""A complete game file. Tests break single lines of it."""

SLIM = WALK.replace("from gameagent.envs.mini.draw import disc, fill, number, rect\n", "")
SLIM = SLIM[: SLIM.index("    fill(img")] + "    img[0, 0, 0] = s.steps\n\n\n" + SLIM[SLIM.index("def signals") :]
"""The same without drawing: compiles in a fraction of the time."""
