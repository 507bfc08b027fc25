"""`CoreVectorEnv`: everything a vector env promises, once, for every native `Core`.

env = CoreVectorEnv(core, reward, frame_skip=4, transforms=[Resize(core.space, 56)])
obs, info = env.reset(seed=0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from gameagent.contract import Array, BoolArray, FloatArray, IntArray, Obs, ObsSpace, RewardContext
from gameagent.envs.base import State, Transform, VectorEnv, episode_key
from gameagent.envs.core import Core
from gameagent.envs.recycling import Recycler
from gameagent.envs.spaces import gym_space
from gameagent.envs.sticky import StickyActions
from gameagent.envs.wrappers import Chain
from gameagent.errors import EnvError
from gameagent.rewards.base import Terms

RewardFunction = Callable[[RewardContext], tuple[FloatArray, Terms]]
"""A `Reward` component or a game's own `reward` hook."""
_NO_LIMIT = np.iinfo(np.int64).max


class CoreVectorEnv(VectorEnv):
    """A batch of one core's games as a `VectorEnv` (its docstring holds the promises).

    A step plays `frame_skip` frames; an env that finishes among them idles for the rest. Rewards are computed every
    frame and summed; the frame that is observed is drawn once.

    Args:
        core: the games.
        reward: called every frame with the signals after and before it.
        seed: what `reset()` without a seed begins with: env i gets seed + i. None draws one from the system.
        frame_skip: frames a step, 1 or more.
        sticky: probability, a frame, that the previous action is repeated instead (Machado et al. 2018), 0 to 1.
        max_episode_steps: steps after which an episode is truncated. None: the core's own limit.
        transforms: observation transforms, in order, made for this batch alone.
        render_mode: "rgb_array" makes `info["final_frame"]` hold the last picture of finished episodes.
        autoreset_mode: SAME_STEP, or DISABLED (finished envs wait for `reset(options={"reset_mask": …})`).
    """

    def __init__(
        self,
        core: Core,
        reward: RewardFunction,
        *,
        seed: int | None = None,
        frame_skip: int = 1,
        sticky: float = 0.0,
        max_episode_steps: int | None = None,
        transforms: Sequence[Transform] = (),
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
    ) -> None:
        if frame_skip < 1:
            raise ValueError(f"frame_skip is the number of frames a step plays, 1 or more; got {frame_skip}")
        if autoreset_mode is AutoresetMode.NEXT_STEP:
            raise ValueError(
                "gameagent's envs reset in the SAME_STEP or not at all (DISABLED); NEXT_STEP is not offered"
            )
        self.core, self.num_envs, self.actions = core, core.num_envs, core.actions
        self.render_mode, self.frames_per_step, self._ids = render_mode, frame_skip, core.actions.n
        self.metadata = {**VectorEnv.metadata, "autoreset_mode": autoreset_mode}
        self._autoreset = autoreset_mode is AutoresetMode.SAME_STEP
        self._reward, self._chain = reward, Chain(core.space, transforms)
        self.obs_space = self._chain.space
        self._set_gym_spaces()
        self._limit = _limit(max_episode_steps, core.max_frames, frame_skip)
        self._sticky = StickyActions(sticky, self.num_envs) if sticky > 0 else None
        self._seed, self._ready = seed, False
        self._all, self._none = np.ones(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        self._empty = {name: _maker(part) for name, part in core.space.empty(self.num_envs).items()}
        self._seeds = [0] * self.num_envs
        self._episodes, self._steps = np.zeros(self.num_envs, np.int64), np.zeros(self.num_envs, np.int64)
        self._returns, self._finished = np.zeros(self.num_envs), self._none.copy()
        self._signals: dict[str, FloatArray] = {}

    def _set_gym_spaces(self) -> None:
        self.single_observation_space = gym_space(self.obs_space)
        self.single_action_space = Discrete(self.actions.n)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes. Without a seed each env goes on to its next episode (the first time: from the own seed).

        Args:
            seed: an int (env i gets seed + i) or one per env (None: go on with that env's own).
            options: `{"reset_mask": (N,) bool}` restarts only these envs; the others and their seeds stay untouched.

        Raises:
            ValueError: a list of another length than N, a negative seed, a mask of another shape or with nothing in it.
        """
        mask, seeds = reset_mask(options, self.num_envs), seed_list(seed, self.num_envs)
        if not self._ready:
            if not mask.all():
                raise ResetNeeded("reset all envs once before resetting some of them with a reset_mask")
            own = int(np.random.SeedSequence().generate_state(1)[0]) if self._seed is None else self._seed
            seeds = [own + i if given is None else given for i, given in enumerate(seeds)]
        rows = np.flatnonzero(mask)
        for i in rows.tolist():
            given = seeds[i]
            self._episodes[i] = self._episodes[i] + 1 if given is None else 0
            self._seeds[i] = self._seeds[i] if given is None else given
        self._begin(mask, rows)
        self._ready = True
        self._chain.restart(self._draw(mask), rows)
        return self.observe(), {}

    def step(self, actions: Any) -> tuple[Any, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Play `frame_skip` frames with flat actions (N,).

        Raises:
            ValueError: actions of another shape, no integers, or out of range.
            ResetNeeded: before the first reset, or an env is finished and autoreset is DISABLED.
        """
        flat = self._checked(actions)
        reward, terms, terminated, cut = self._play(flat)
        self._steps += 1
        if "score" not in self._signals:
            self._returns += reward
        truncated = self._steps >= self._limit
        if cut is not None:
            truncated |= cut
        raw = self._draw(self._all)
        parts = self._chain(raw, self._none)
        info: dict[str, Any] = {"reward_terms": terms}
        done = terminated | truncated
        if np.count_nonzero(done):
            self._finish(done, raw, parts, info)
        return self.obs_space.as_gym(parts), reward, terminated, truncated, info

    def observe(self) -> Any:
        """The current observation again, in new arrays. Raises ResetNeeded before the first reset."""
        self._check_ready()
        return self.obs_space.as_gym(self._chain.peek(self._draw(self._all)))

    def expert(self) -> IntArray | None:
        """Flat actions (N,) of the built-in expert for the current state, or None where the game has none."""
        self._check_ready()
        return self.core.expert()

    def score(self) -> FloatArray | None:
        """The game's own score so far (N,), or None where it keeps none."""
        self._check_ready()
        return self._signals.get("score")

    def frames(self) -> Array | None:
        """The current pictures (N, H, W, 3) uint8 at the game's full size, or None where it has none."""
        self._check_ready()
        return self.core.frames()

    def get_state(self) -> State:
        """Everything needed to go on exactly from here. Raises ResetNeeded before the first reset."""
        self._check_ready()
        return {
            "identity": self._identity(),
            "core": self.core.get_state(),
            "transforms": self._chain.get_state(),
            "sticky": {} if self._sticky is None else self._sticky.get_state(),
            "seeds": np.array(self._seeds, np.int64),
            "episodes": self._episodes.copy(),
            "steps": self._steps.copy(),
            "returns": self._returns.copy(),
            "finished": self._finished.copy(),
        }

    def set_state(self, state: State) -> None:
        """Inverse of `get_state`. Raises EnvError for a state of another game, batch size or observation."""
        found, own = state.get("identity"), self._identity()
        if found != own:
            raise EnvError(f"this state belongs to another env:\n  state {found}\n  env   {own}")
        if bool(state["sticky"]) != (self._sticky is not None):
            raise EnvError("the state was saved with sticky actions on one side only; use the same env.sticky")
        self.core.set_state(state["core"])
        self._chain.set_state(state["transforms"])
        if self._sticky is not None:
            self._sticky.set_state(state["sticky"])
        self._seeds = [int(s) for s in state["seeds"]]
        self._episodes, self._steps = np.array(state["episodes"], np.int64), np.array(state["steps"], np.int64)
        self._returns, self._finished = np.array(state["returns"], np.float64), np.array(state["finished"], np.bool_)
        self._signals, self._ready = self.core.context(), True

    def close_extras(self, **kwargs: Any) -> None:
        """Close the core (Gymnasium calls this once from `close`)."""
        self.core.close()

    def _identity(self) -> str:
        return f"{self.num_envs} × {self.core.name}, {self.obs_space!r}, {self.actions!r}"

    def _check_ready(self) -> None:
        if not self._ready:
            raise ResetNeeded("call reset() before anything else")

    def _checked(self, actions: Any) -> IntArray:
        self._check_ready()
        if not self._autoreset and self._finished.any():
            raise ResetNeeded(f"envs {np.flatnonzero(self._finished)} are finished; reset them before the next step")
        return checked_actions(actions, self.num_envs, self._ids)

    def _play(self, flat: IntArray) -> tuple[FloatArray, Terms, BoolArray, BoolArray | None]:
        """Advance by `frames_per_step` frames: summed reward and terms, which games ended, which were cut short."""
        first, first_terms, ended, cut = self._frame(flat, self._all)
        # Copies: a reward may give whole numbers, one array twice, or its own buffers over and over.
        total = np.array(first, np.float64)
        terms = {name: np.array(term, np.float64) for name, term in first_terms.items()}
        for _ in range(self.frames_per_step - 1):
            active = ~(ended if cut is None else ended | cut)
            if not active.any():
                break
            more, more_terms, now_ended, now_cut = self._frame(flat, active)
            total += np.where(active, more, 0.0)
            for name, term in more_terms.items():
                terms[name] = terms.get(name, 0.0) + np.where(active, np.asarray(term, np.float64), 0.0)
            ended |= now_ended
            if now_cut is not None:
                cut = now_cut if cut is None else cut | now_cut
        return total, terms, ended, cut

    def _frame(self, flat: IntArray, active: BoolArray) -> tuple[FloatArray, Terms, BoolArray, BoolArray | None]:
        actions = flat if self._sticky is None else self._sticky(flat)
        ended = self.core.advance(actions, active)
        signals = self.core.context()
        given = self._reward(RewardContext(signals, self._signals))
        if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[1], Mapping):
            raise EnvError(f"the reward gave a {type(given).__name__}, not (total, terms): {str(given)[:80]}")
        total, terms = given
        self._signals = signals
        if np.shape(total) != (self.num_envs,):
            raise EnvError(
                f"the reward gave a total of shape {np.shape(total)}, not one number per env ({self.num_envs},)"
            )
        return total, terms, ended, self.core.cut

    def _draw(self, mask: BoolArray) -> Obs:
        """The core's observation of the masked envs, in new arrays: what was returned before stays as it is."""
        raw: Obs = {name: empty() for name, empty in self._empty.items()}
        self.core.observe(raw, mask)
        return raw

    def _begin(self, mask: BoolArray, rows: IntArray) -> None:
        """Start the current episode number of the masked envs."""
        keys = np.zeros(self.num_envs, np.uint64)
        for i in rows.tolist():
            keys[i] = episode_key(self._seeds[i], int(self._episodes[i]))
        self.core.reset(mask, keys)
        if self._sticky is not None:
            self._sticky.reset(mask, keys)
        self._steps[rows], self._returns[rows], self._finished[rows] = 0, 0.0, False
        self._signals = self.core.context()

    def _finish(self, done: BoolArray, raw: Obs, parts: Obs, info: dict[str, Any]) -> None:
        """Report the episodes that ended and, if asked to, start the next ones: `parts` then shows their beginning."""
        rows = done.nonzero()[0]
        info["final_info"], info["_final_info"] = self._final_info(done), done
        if self.render_mode == "rgb_array" and (pictures := self.core.frames(done)) is not None:
            info["final_frame"], info["_final_frame"] = pictures, done
        if not self._autoreset:
            self._finished = done
            return
        final = {name: _only(part, rows) for name, part in parts.items()}
        info["final_obs"], info["_final_obs"] = self.obs_space.as_gym(final), done
        self._episodes[rows] += 1
        self._begin(done, rows)
        self.core.observe(raw, done)
        if self._chain.transforms:  # without any, `parts` is what has just been drawn into
            for name, first in self._chain.restart(raw, rows).items():
                parts[name][rows] = first

    def _final_info(self, done: BoolArray) -> dict[str, Any]:
        score = self._signals.get("score", self._returns)
        final = {"score": score.copy(), "_score": done}
        if "win" in self._signals:
            final |= {"win": self._signals["win"].copy(), "_win": done}
        return final


def _limit(steps: int | None, frames: int | None, frame_skip: int) -> int:
    if steps is not None:
        if steps < 1:
            raise ValueError(f"max_episode_steps is 1 or more, or null for the game's own limit; got {steps}")
        return steps
    return _NO_LIMIT if frames is None else -(-frames // frame_skip)


def _maker(part: Array) -> Callable[[], Array]:
    """What makes uninitialised arrays like `part`."""
    return partial(np.empty_like, part) if part.dtype == object else Recycler(part.shape, part.dtype).empty


def _only(part: Array, rows: IntArray) -> Array:
    """A copy of some rows in an array of zeros (texts: empty) of the whole batch's shape."""
    out: Array = np.full(part.shape, "", object) if part.dtype == object else np.zeros(part.shape, part.dtype)
    out[rows] = part[rows]
    return out


def seed_list(seed: Any, num_envs: int) -> list[int | None]:
    """Gymnasium's three ways to give seeds, as one per env. Raises ValueError for a wrong number or a negative one."""
    if seed is None or isinstance(seed, int | np.integer):
        seeds: list[int | None] = [None if seed is None else int(seed) + i for i in range(num_envs)]
    else:
        seeds = [None if s is None else int(s) for s in seed]
    if len(seeds) != num_envs:
        raise ValueError(f"{len(seeds)} seeds for {num_envs} envs; give one int, or a list of one per env")
    if any(s is not None and not 0 <= s < 2**63 for s in seeds):
        raise ValueError(f"seeds go from 0 to 2**63 - 1, got {seeds}")
    return seeds


def reset_mask(options: Mapping[str, Any] | None, num_envs: int) -> BoolArray:
    """The envs that `options["reset_mask"]` names, by default all. Raises ValueError for another shape or no env."""
    given = (options or {}).get("reset_mask")
    if given is None:
        return np.ones(num_envs, np.bool_)
    mask = np.asarray(given)
    if mask.shape != (num_envs,) or mask.dtype != np.bool_ or not mask.any():
        raise ValueError(
            f"reset_mask is a bool array ({num_envs},) with at least one True, got {mask.dtype} {mask.shape}"
        )
    return mask.copy()


def checked_actions(actions: Any, num_envs: int, n: int) -> IntArray:
    """Flat actions as (N,) int64. Raises ValueError for another shape, for no integers, or out of range."""
    flat = np.asarray(actions)
    if flat.dtype != np.int64:
        if flat.dtype.kind not in "iu":
            raise ValueError(f"actions are flat ids, integers from 0 to {n - 1}; got dtype {flat.dtype}")
        flat = flat.astype(np.int64)
    if flat.shape != (num_envs,):
        raise ValueError(f"expected one flat action for each env, shape ({num_envs},); got {flat.shape}")
    if np.count_nonzero(flat.view(np.uint64) >= n):  # as unsigned, negative ones are huge: one pass sees both ends
        raise ValueError(f"flat action ids go from 0 to {n - 1}, got {flat}")
    return flat


__all__ = ["Core", "CoreVectorEnv", "ObsSpace", "RewardFunction", "checked_actions", "reset_mask", "seed_list"]
