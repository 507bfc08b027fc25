"""A game whose every number follows from its seed, a policy that computes instead of learning, and results made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gameagent.component import component
from gameagent.contract import (
    ActionSpace,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Obs,
    ObsPart,
    ObsSpace,
    Part,
    RewardContext,
)
from gameagent.envs.base import Env, State, VectorEnv, episode_key
from gameagent.envs.core import Core
from gameagent.envs.vector import CoreVectorEnv
from gameagent.evaluation.protocol import EpisodeResult
from gameagent.policies.base import Inference

SHORT, LONG = 2, 40
ACTIONS = ActionSpace({"move": ("stay", "go"), "act": ("no", "yes")})


class LotteryCore(Core):
    """Even keys give SHORT episodes, odd keys LONG ones. Each frame scores 1, or -1 where the action is 0."""

    name = "lottery"
    space = ObsSpace(features=ObsPart(Part.features, (2,)))
    actions = ACTIONS

    def __init__(self, num_envs: int, jitter: float = 0.0) -> None:
        self.num_envs, self.jitter = num_envs, jitter
        self.keys = np.zeros(num_envs, np.uint64)
        self.count = np.zeros(num_envs, np.int64)
        self.points = np.zeros(num_envs)
        self.noise = np.random.default_rng()

    def reset(self, mask: BoolArray, keys: NDArray[np.uint64]) -> None:
        self.keys[mask], self.count[mask], self.points[mask] = keys[mask], 0, 0

    def advance(self, actions: IntArray, active: BoolArray) -> BoolArray:
        self.count[active] += 1
        gain = np.where(actions == 0, -1.0, 1.0) + self.jitter * self.noise.normal(size=self.num_envs)
        self.points += np.where(active, gain, 0.0)
        ended: BoolArray = active & (self.count >= lengths(self.keys))
        return ended

    def observe(self, out: Obs, mask: BoolArray) -> None:
        out["features"][mask, 0] = self.count[mask]
        out["features"][mask, 1] = (self.keys[mask] % np.uint64(97)).astype(np.float32)

    def context(self) -> dict[str, FloatArray]:
        return {"score": self.points.copy(), "win": np.where(self.points > SHORT, 1.0, -1.0)}

    def expert(self) -> IntArray:
        return np.full(self.num_envs, 3)

    def frames(self, mask: BoolArray | None = None) -> Array:
        """A bar as long as the episode is old."""
        pictures = np.zeros((self.num_envs, 24, 32, 3), np.uint8)
        for i in range(self.num_envs):
            pictures[i, :, : 1 + int(self.count[i]) % 32] = (40, 160, 220)
        return pictures

    def get_state(self) -> State:
        return {"keys": self.keys.copy(), "count": self.count.copy(), "points": self.points.copy()}

    def set_state(self, state: State) -> None:
        self.keys, self.count, self.points = (np.array(state[k]) for k in ("keys", "count", "points"))


def lengths(keys: NDArray[np.uint64]) -> IntArray:
    """Frames of the episodes with these keys."""
    return np.where(keys % np.uint64(2) == 0, SHORT, LONG)


def length_of(seed: int) -> int:
    """Frames of the first episode of an env with this seed."""
    return int(lengths(np.array([episode_key(seed, 0)]))[0])


def score_reward(ctx: RewardContext) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Twice the score: told apart from it, with a term."""
    change = ctx.delta("score")
    assert change is not None
    return 2 * change, {"points": 2 * change}


@component
class Lottery(Env):
    """The component of the game above."""

    num_envs: int = 4
    frame_skip: int = 1
    sticky: float = 0.0
    jitter: float = 0.0
    """Spread of unseeded noise in the score: no two episodes are then alike."""

    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> VectorEnv:
        core = LotteryCore(self.num_envs if num_envs is None else num_envs, self.jitter)
        options: dict[str, Any] = {"frame_skip": self.frame_skip, "sticky": self.sticky, "render_mode": render_mode}
        return CoreVectorEnv(core, score_reward, seed=seed, **options)

    def raw(self) -> Env:
        return Lottery(num_envs=self.num_envs, jitter=self.jitter)


class Tilted:
    """A policy whose logits depend on what it sees, so that sampled episodes differ from seed to seed."""

    obs_space, action_space = LotteryCore.space, ACTIONS

    def infer(self, obs: Obs) -> Inference:
        x = obs["features"].astype(np.float32)
        move = np.stack([0.2 * np.cos(x[:, 1]), 0.2 * np.sin(x[:, 0])], 1)
        return Inference([move, -move], x[:, 0])


def results(scores: Sequence[float], first: int = 2_000_000, win: bool = False) -> list[EpisodeResult]:
    """Made-up episodes with these scores."""
    return [
        EpisodeResult(first + i, s, 2 * s, 10 + i, {"points": 2 * s}, float(np.sign(s)) if win else None)
        for i, s in enumerate(scores)
    ]


def normal_results(mean: float, n: int = 40, seed: int = 0) -> list[EpisodeResult]:
    """Made-up episodes with whole scores around a mean."""
    return results(np.round(np.random.default_rng(seed).normal(mean, 6, n)).tolist())


def write_curve(path: Path, columns: dict[str, list[float]], steps: Sequence[int]) -> None:
    """A metrics.csv."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(["env_steps", *columns])]
    lines += [",".join(map(str, [s, *(c[i] for c in columns.values())])) for i, s in enumerate(steps)]
    path.write_text("\n".join(lines) + "\n")
