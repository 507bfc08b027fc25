"""`GymVectorEnv`: Gymnasium's SyncVectorEnv in SAME_STEP mode, with gameagent's promises on top.

Made by `GymEnv.make`; behaves as `gameagent.envs.base.VectorEnv` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space

from gameagent.contract import Array, BoolArray, FloatArray
from gameagent.envs.base import State, Transform, VectorEnv
from gameagent.envs.gym_episodes import Episodes
from gameagent.envs.gym_spaces import Actions, Observations
from gameagent.envs.spaces import gym_space
from gameagent.envs.vector import checked_actions, reset_mask, seed_list
from gameagent.envs.wrappers import Chain
from gameagent.errors import EnvError


class GymVectorEnv(VectorEnv):
    """N single envs stepped one after the other. The reward is the env's own, and so is the score: its plain sum.

    Args:
        makers: one function per env that makes it.
        name: Gymnasium id, for messages.
        observations: how observations become parts.
        actions: how flat ids become actions.
        transforms: observation transforms, made for this batch alone.
        seed: what the first `reset()` without a seed uses; None draws one.
        frames_per_step: frame skip of the single envs.
    """

    def __init__(
        self,
        makers: Sequence[Callable[[], Episodes]],
        name: str,
        observations: Observations,
        actions: Actions,
        transforms: Sequence[Transform],
        seed: int | None,
        frames_per_step: int,
    ) -> None:
        self.sync = SyncVectorEnv(makers, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
        self.num_envs, self.render_mode, self.frames_per_step = len(makers), self.sync.render_mode, frames_per_step
        self.metadata = {**self.sync.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self._name, self._observations, self._native = name, observations, actions
        self._chain = Chain(observations.space, transforms)
        self.obs_space, self.actions = self._chain.space, actions.space
        self.single_observation_space = gym_space(self.obs_space)
        self.single_action_space = Discrete(self.actions.n)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._seed, self._ready = seed, False
        self._none = np.zeros(self.num_envs, np.bool_)
        self._returns = np.zeros(self.num_envs)

    @property
    def _envs(self) -> list[Episodes]:
        return self.sync.envs  # type: ignore[return-value]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes, as `VectorEnv` says. Raises ValueError for wrong seeds or a wrong mask."""
        mask = reset_mask(options, self.num_envs)
        if not self._ready:
            if not mask.all():
                raise ResetNeeded("reset all envs once before resetting some of them with a reset_mask")
            if seed is None:
                seed = int(np.random.SeedSequence().generate_state(1)[0]) if self._seed is None else self._seed
        # SyncVectorEnv takes the mask out of the options, so these are a copy.
        obs, _ = self.sync.reset(seed=seed_list(seed, self.num_envs), options={**(options or {}), "reset_mask": mask})
        self._ready = True
        self._returns[mask] = 0.0
        rows = np.flatnonzero(mask)
        self._chain.restart(self._observations.parts(obs), rows)
        return self.observe(), {}

    def step(self, actions: Any) -> tuple[Any, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """One step of all envs. Raises ValueError for wrong actions, ResetNeeded before the first reset."""
        self._check_ready()
        flat = checked_actions(actions, self.num_envs, self.actions.n)
        obs, reward, terminated, truncated, found = self.sync.step(self._native.native(flat))
        self._returns += reward
        begun = self._observations.parts(obs)
        info: dict[str, Any] = {"reward_terms": {"reward": reward.copy()}}
        done = terminated | truncated
        if not done.any():
            return self.obs_space.as_gym(self._chain(begun, self._none)), reward, terminated, truncated, info
        rows = np.flatnonzero(done)
        # What was seen last goes through the transforms first: their memory still belongs to the old episode.
        last = {name: part.copy() for name, part in begun.items()}
        for i in rows:
            for name, part in self._observations.one(found["final_obs"][i]).items():
                last[name][i] = part[0]
        parts = self._chain(last, self._none)
        final = {name: np.zeros_like(part) for name, part in parts.items()}
        for name, part in parts.items():
            final[name][rows] = part[rows]
        for name, first in self._chain.restart(begun, rows).items():
            parts[name][rows] = first
        info |= self._final_info(done, found) | {"final_obs": self.obs_space.as_gym(final), "_final_obs": done}
        self._returns[done] = 0.0
        return self.obs_space.as_gym(parts), reward, terminated, truncated, info

    def observe(self) -> Any:
        """The current observation again, in new arrays."""
        self._check_ready()
        singles = [self._observations.one(env.obs) for env in self._envs]
        parts = {name: np.concatenate([single[name] for single in singles]) for name in self._observations.space}
        return self.obs_space.as_gym(self._chain.peek(parts))

    def frames(self) -> Array | None:
        """The current pictures (N, H, W, 3), or None where `render_mode` is not rgb_array."""
        self._check_ready()
        return np.stack(self.sync.render()).astype(np.uint8) if self.render_mode == "rgb_array" else None

    def get_state(self) -> State:
        """Every env's episode as its actions so far; long episodes make a long state."""
        self._check_ready()
        return {
            "identity": self._identity(),
            "envs": [env.get_state() for env in self._envs],
            "transforms": self._chain.get_state(),
            "returns": self._returns.copy(),
        }

    def set_state(self, state: State) -> None:
        """Play every env's episode again. Raises EnvError for another env's state, or where a replay differs."""
        found, own = state.get("identity"), self._identity()
        if found != own:
            raise EnvError(f"this state belongs to another env:\n  state {found}\n  env   {own}")
        for env, saved in zip(self._envs, state["envs"], strict=True):
            env.set_state(saved)
        # A masked reset batches the others' observations, which a fresh SyncVectorEnv doesn't have.
        self.sync._env_obs = [env.obs for env in self._envs]
        self._chain.set_state(state["transforms"])
        self._returns, self._ready = np.array(state["returns"], np.float64), True

    def close_extras(self, **kwargs: Any) -> None:
        """Close the single envs (Gymnasium calls this once from `close`)."""
        self.sync.close()

    def _final_info(self, done: BoolArray, found: Mapping[str, Any]) -> dict[str, Any]:
        info = {"final_info": {"score": self._returns.copy(), "_score": done}, "_final_info": done}
        pictures = found["final_info"].get("final_frame")
        return info if pictures is None else info | {"final_frame": pictures, "_final_frame": done}

    def _identity(self) -> str:
        return f"{self.num_envs} × {self._name}, {self.obs_space!r}, {self.actions!r}"

    def _check_ready(self) -> None:
        if not self._ready:
            raise ResetNeeded("call reset() before anything else")
