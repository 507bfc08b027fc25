"""The checker finds each broken promise, and nothing in an env that keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from tests.envs.toys import Clock

from gameagent.contract import BoolArray, IntArray, Obs, RewardContext
from gameagent.envs.base import State, Transform
from gameagent.envs.check import EnvCheckError, check_vector_env
from gameagent.envs.vector import CoreVectorEnv
from gameagent.envs.wrappers import Stack


def gain(ctx: RewardContext) -> Any:
    return ctx.signals["gain"].copy(), {"gain": ctx.signals["gain"].copy()}


class Broken(CoreVectorEnv):
    """A good env, for a test to spoil."""

    def __init__(self, n: int, seed: int, core: Clock | None = None, reward: Any = gain, **options: Any) -> None:
        super().__init__(core or Clock(n), reward, seed=seed, **options)


class SharedBuffer(Broken):
    def step(self, actions: Any) -> Any:
        obs, *rest = super().step(actions)
        self.buffer = getattr(self, "buffer", obs)
        for name, part in obs.items():
            self.buffer[name][...] = part
        return self.buffer, *rest


class AliasedFinalObs(Broken):
    def step(self, actions: Any) -> Any:
        obs, *rest, info = super().step(actions)
        if "final_obs" in info:
            info["final_obs"] = obs
        return obs, *rest, info


class NextStep(Broken):
    def __init__(self, n: int, seed: int) -> None:
        super().__init__(n, seed)
        self.metadata = {**self.metadata, "autoreset_mode": "NextStep"}


class OneSeedForAll(Broken):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return super().reset(seed=[seed] * self.num_envs if isinstance(seed, int) else seed, options=options)


class FloatFrames(Broken):
    def step(self, actions: Any) -> Any:
        obs, *rest = super().step(actions)
        return {**obs, "frame": obs["frame"] / np.float32(255)}, *rest


class ForgetsItsScore(Broken):
    def step(self, actions: Any) -> Any:
        *rest, info = super().step(actions)
        info.pop("final_info", None)
        return *rest, info


class ForgetsItsSteps(Broken):
    def __init__(self, n: int, seed: int) -> None:
        super().__init__(n, seed, core=Clock(n, length=5000), max_episode_steps=20)

    def get_state(self) -> State:
        return {**super().get_state(), "steps": np.zeros(self.num_envs, np.int64)}


class StateOfObjects(Broken):
    def get_state(self) -> State:
        return {**super().get_state(), "rng": np.random.default_rng(0)}


class IgnoresTheMask(Broken):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return super().reset(seed=seed)


class LeakyStack(Transform):
    """A frame stack that does not look at `fresh`."""

    def __init__(self) -> None:
        self.inner = Stack(Clock.space, 2)
        self.space = self.inner.space

    def __call__(self, parts: Obs, fresh: BoolArray, rows: IntArray | None = None) -> Obs:
        first = not self.inner._memory
        return self.inner(parts, np.full(len(fresh), first), rows)

    def peek(self, parts: Obs) -> Obs:
        return self.inner.peek(parts)


class NeighbourClock(Clock):
    """Episodes end earlier in bigger batches."""

    def lengths(self) -> IntArray:
        return super().lengths() + (self.num_envs == 1)


class RestlessClock(Clock):
    """Randomness from nowhere."""

    def reset(self, mask: BoolArray, keys: NDArray[np.uint64]) -> None:
        super().reset(mask, np.random.default_rng().integers(0, 2**60, self.num_envs).astype(np.uint64))


class DeafClock(Clock):
    """The same game for every seed."""

    def reset(self, mask: BoolArray, keys: NDArray[np.uint64]) -> None:
        super().reset(mask, np.full_like(keys, 7))


def infinite(ctx: RewardContext) -> Any:
    total = np.full(ctx.num_envs, np.inf)
    return total, {"gain": total.copy()}


def untold(ctx: RewardContext) -> Any:
    return ctx.signals["gain"].copy(), {"half": ctx.signals["gain"] / 2}


@pytest.mark.parametrize(
    "make",
    [
        Broken,
        lambda n, seed: Broken(n, seed, frame_skip=2, sticky=0.3, transforms=[Stack(Clock.space, 3)]),
        lambda n, seed: Broken(n, seed, core=Clock(n, length=5000), max_episode_steps=20),
    ],
)
def test_good_envs_have_no_problems(make: Callable[[int, int], CoreVectorEnv]) -> None:
    assert check_vector_env(make, steps=60) == []


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (NextStep, "metadata['autoreset_mode'] is 'NextStep'; it must be AutoresetMode.SAME_STEP"),
        (lambda n, seed: Broken(n, seed, autoreset_mode=AutoresetMode.DISABLED), "it must be AutoresetMode.SAME_STEP"),
        (SharedBuffer, "step()'s observation changed after it was returned; return a copy"),
        (AliasedFinalObs, "final_obs always equals the new episode's first observation"),
        (OneSeedForAll, "two envs with different seeds played exactly alike"),
        (FloatFrames, "step() gave frame as float32"),
        (ForgetsItsScore, "info['final_info']['score'] must be one finite number per env"),
        (ForgetsItsSteps, "the same actions led elsewhere"),
        (StateOfObjects, "get_state()['rng'] is a Generator; states are plain"),
        (IgnoresTheMask, "reset_mask"),
        (lambda n, seed: Broken(n, seed, transforms=[LeakyStack()]), "leaks into it (frame stack"),
        (lambda n, seed: Broken(n, seed, core=NeighbourClock(n)), "played differently from a batch of 1"),
        (lambda n, seed: Broken(n, seed, core=RestlessClock(n)), "the same seed and actions gave different episodes"),
        (lambda n, seed: Broken(n, seed, core=DeafClock(n)), "two envs with different seeds played exactly alike"),
        (lambda n, seed: Broken(n, seed, reward=infinite), "a reward is not finite"),
        (lambda n, seed: Broken(n, seed, reward=untold), "don't add up"),
        (lambda n, seed: Broken(n, seed, core=Clock(n, length=5000)), "no episode ended in 60 steps"),
        (lambda n, seed: Broken(n, seed, core=Clock(n, length=7)), "terminated after exactly 7 steps"),
    ],
)  # fmt: skip
def test_each_broken_promise_is_told_in_a_sentence(make: Callable[[int, int], CoreVectorEnv], sentence: str) -> None:
    problems = check_vector_env(make, steps=60)
    assert any(sentence in problem for problem in problems), problems


def test_strict_raises_with_the_list() -> None:
    with pytest.raises(EnvCheckError, match="- .*SAME_STEP"):
        check_vector_env(NextStep, steps=20, strict=True)


def test_an_env_that_raises_is_a_problem_and_not_a_traceback() -> None:
    def make(n: int, seed: int) -> CoreVectorEnv:
        raise RuntimeError("no such rom")

    problems = check_vector_env(make)
    assert all("RuntimeError: no such rom" in problem for problem in problems)
