"""A game whose picture shows the action before it: any slip between frames and actions is plain to see.

The frame is filled with `10 * steps + last action + 1` (0 at first). The expert wants `(seed + steps) % 4`. An
episode lasts `4 + seed % 5` frames, truncated where the seed is odd, and scores its length. Every frame drawn is the
same buffer, as emulators do it.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from gameagent.component import component
from gameagent.contract import ActionSpace, IntArray, ObsSpace
from gameagent.envs.base import Env, State, Transform, VectorEnv
from gameagent.envs.wrappers import Chain, frame_transforms

ACTIONS = ActionSpace({"move": ("left", "right"), "act": ("wait", "dash")})
RAW = ObsSpace(frame=(8, 8, 3))


class EchoVectorEnv(VectorEnv):
    """See above."""

    def __init__(self, spec: EchoEnv, num_envs: int) -> None:
        self.spec, self.num_envs, self.actions = spec, num_envs, ACTIONS
        self.frames_per_step = spec.frame_skip
        self.chain = Chain(RAW, spec.transforms(RAW))
        self.obs_space = self.chain.space
        self.single_observation_space = gym.spaces.Box(0, 255, self.obs_space["frame"].shape, np.uint8)
        self.single_action_space = gym.spaces.Discrete(ACTIONS.n)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, num_envs)
        self.seeds = np.zeros(num_envs, np.int64)
        self.steps = np.zeros(num_envs, np.int64)
        self.shown = np.zeros(num_envs, np.int64)
        self.buffer = np.zeros((num_envs, 8, 8, 3), np.uint8)
        self.fresh = np.ones(num_envs, bool)
        self.seen: Any = None

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        mask = np.ones(self.num_envs, bool) if options is None else options["reset_mask"]
        for i in np.flatnonzero(mask):
            self.seeds[i], self.steps[i], self.shown[i] = seed[i], 0, 0
        rows = np.flatnonzero(mask)
        self._look(rows, np.ones(len(rows), bool))
        return self.seen, {}

    def step(self, actions: IntArray) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        ended = np.zeros(self.num_envs, bool)
        for _ in range(self.spec.frame_skip):
            self.steps += ~ended
            self.shown = np.where(ended, self.shown, 10 * self.steps + actions + 1)
            ended |= self.steps >= 4 + self.seeds % 5
        truncated = ended & (self.seeds % 2 == 1)
        reward = actions.astype(np.float64)
        info: dict[str, Any] = {"reward_terms": {"action": reward.copy(), "one": np.ones(self.num_envs)}}
        everyone = np.arange(self.num_envs)
        self._look(everyone, np.zeros(self.num_envs, bool))
        if ended.any():
            info |= {"final_obs": self.seen.copy(), "_final_obs": ended.copy()}
            info |= {"final_info": {"score": self.steps.astype(float)}, "_final_info": ended.copy()}
            self.steps[ended], self.shown[ended] = 0, 0
            self._look(np.flatnonzero(ended), np.ones(int(ended.sum()), bool))
        return self.seen, reward, ended & ~truncated, truncated, info

    def _look(self, rows: IntArray, fresh: Any) -> None:
        self.buffer[:] = self.shown[:, None, None, None]
        everyone = len(rows) == self.num_envs
        parts = self.chain({"frame": self.buffer[rows]}, fresh, None if everyone else rows)["frame"]
        if not self.chain.transforms:
            self.seen = self.buffer
        elif everyone:
            self.seen = parts
        else:
            self.seen[rows] = parts

    def observe(self) -> Any:
        return self.seen

    def expert(self) -> IntArray | None:
        return (self.seeds + self.steps) % ACTIONS.n if self.spec.has_expert else None

    def get_state(self) -> State:
        raise NotImplementedError

    def set_state(self, state: State) -> None:
        raise NotImplementedError


@component
class EchoEnv(Env):
    """Makes `EchoVectorEnv`s."""

    num_envs: int = 4
    frame_skip: int = 1
    frame_size: int | None = None
    frame_stack: int = 1
    has_expert: bool = True

    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> EchoVectorEnv:
        return EchoVectorEnv(self, num_envs or self.num_envs)

    def raw(self) -> EchoEnv:
        return EchoEnv(num_envs=self.num_envs, has_expert=self.has_expert)

    def transforms(self, raw: ObsSpace) -> list[Transform]:
        return frame_transforms(raw, size=self.frame_size, grey=False, stack=self.frame_stack)
