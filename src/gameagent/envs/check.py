"""Does an env keep the promises of `VectorEnv`? Each problem is a sentence that says what to change.

problems = check_vector_env(MiniEnv(game="./my_game.py").make)   # also: python run.py job=doctor env=mini env.game=…
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from gameagent.contract import Array, BoolArray, IntArray, Obs, ObsSpace, Part
from gameagent.envs.base import VectorEnv
from gameagent.errors import UserError

Make = Callable[[int, int], VectorEnv]
"""`make(num_envs, seed)`: the batch, as `Env.make` gives it."""
Check = Callable[[Make, int], Iterator[str]]


class EnvCheckError(ValueError):
    """An env breaks the contract; the message lists how."""


def check_vector_env(make: Make, *, steps: int = 300, strict: bool = False) -> list[str]:
    """Play a few hundred random steps in several batches and compare.

    Args:
        make: makes a new batch, e.g. `MiniEnv().make`.
        steps: how long to play; an episode should end within them, or what happens at its end is not seen.
        strict: raise instead of returning the problems.

    Returns:
        The problems; empty if all is well.

    Raises:
        EnvCheckError: where `strict` and there are problems.
    """
    problems: list[str] = []
    for check in _CHECKS:
        try:
            problems += check(make, steps)
        except UserError as e:  # says all by itself, and would say it again
            problems.append(str(e))
            break
        except Exception as e:
            problems.append(f"{_title(check)} stopped with {type(e).__name__}: {e}")
    if strict and problems:
        raise EnvCheckError("\n".join(f"- {problem}" for problem in problems))
    return problems


def _title(check: Check) -> str:
    return f"the check of {check.__name__.strip('_').replace('_', ' ')}"


def _declaration(make: Make, steps: int) -> Iterator[str]:
    env = make(2, 0)
    mode = env.metadata.get("autoreset_mode")
    if mode is not AutoresetMode.SAME_STEP:
        yield (
            f"metadata['autoreset_mode'] is {mode!r}; it must be AutoresetMode.SAME_STEP, the member itself: reset a "
            "finished env in the step that finished it and return the first observation of the next episode"
        )
    if env.num_envs != 2:
        yield f"make(2, seed) gave num_envs={env.num_envs}; the first argument is the number of envs"
    if getattr(env.single_action_space, "n", None) != env.actions.n:
        yield f"single_action_space is {env.single_action_space}; it must be Discrete({env.actions.n}), the flat ids"
    env.close()


def _spaces(make: Make, steps: int) -> Iterator[str]:
    env = make(3, 0)
    obs, info = env.reset(seed=0)
    yield from _fits(env, obs, "reset()")
    if not isinstance(info, dict):
        yield f"reset() gave an info of type {type(info).__name__}; it must be a dict"
    for actions in _random_actions(env, min(steps, 20)):
        obs, reward, terminated, truncated, info = env.step(actions)
        yield from _fits(env, obs, "step()")
        returned = (("reward", reward, float), ("terminated", terminated, bool), ("truncated", truncated, bool))
        for name, array, dtype in returned:
            if np.shape(array) != (3,) or np.asarray(array).dtype != np.dtype(dtype):
                yield f"{name} is {np.asarray(array).dtype}{np.shape(array)}; it must be {np.dtype(dtype)}(num_envs,)"
        if not np.isfinite(reward).all():
            yield f"a reward is not finite: {reward}; look at divisions and missing signals in the reward function"
        terms = info.get("reward_terms")
        if not isinstance(terms, dict):
            yield "info has no 'reward_terms'; it must be a dict of arrays (num_envs,), empty if there are none"
        elif terms and not np.allclose(sum(terms.values()), reward):
            yield f"the reward's terms {sorted(terms)} don't add up to it; return every part of the total as a term"
        if not env.observation_space.contains(obs) and env.obs_space.keys() != {"text"}:
            yield f"an observation of step() is not in observation_space {env.observation_space}"
    env.close()


def _fits(env: VectorEnv, obs: Any, where: str) -> Iterator[str]:
    for name, part in env.obs_space.as_parts(obs).items():
        declared = env.obs_space[name]
        wanted = np.dtype(object) if declared.kind is Part.text else np.dtype(declared.dtype)
        if part.shape != (env.num_envs, *declared.shape) or part.dtype != wanted:
            yield (
                f"{where} gave {name} as {part.dtype}{part.shape}; obs_space promises {wanted}"
                f"{(env.num_envs, *declared.shape)}: convert it in the env, or declare what it gives"
            )
        elif declared.kind is Part.features and not np.isfinite(part).all():
            yield f"{where} gave features that are not finite; clip or encode them"


def _seeds(make: Make, steps: int) -> Iterator[str]:
    first, again = make(4, 0), make(4, 0)
    one, other = _played(first, 11, steps), _played(again, 11, steps)
    if one != other:
        yield "the same seed and actions gave different episodes; draw all randomness from the episode's key"
    rows = list(zip(*_played_rows(first, 11, steps), strict=True))
    if any(a == b for i, a in enumerate(rows) for b in rows[:i]):
        yield (
            "two envs with different seeds played exactly alike; give env i the seed s+i and use it in reset (a game "
            "without any randomness may stay like that)"
        )
    if _played(first, 11, steps) != one:
        yield "reset(seed=s) after some episodes leads elsewhere than before; start the count of episodes anew"
    first.close()
    again.close()


def _independence(make: Make, steps: int) -> Iterator[str]:
    together = _rows(make, [21, 22, 23], steps)
    for i, seed in enumerate((21, 22, 23)):
        if _rows(make, [seed], steps, actions_of=i)[0] != together[i]:
            yield (
                f"env {i} of a batch of 3 played differently from a batch of 1 with the same seed and actions; an env "
                "may depend on its own seed, episode number and actions only, never on its neighbours"
            )
            return


def _copies(make: Make, steps: int) -> Iterator[str]:
    env = make(2, 0)
    kept: list[tuple[str, Array, Array]] = []
    _keep(kept, "reset()'s observation", env.obs_space, env.reset(seed=5)[0])
    for actions in _random_actions(env, steps):
        obs, reward, _, _, info = env.step(actions)
        _keep(kept, "step()'s observation", env.obs_space, obs)
        kept.append(("step()'s reward", reward, reward.copy()))
        if "final_obs" in info:
            _keep(kept, "info['final_obs']", env.obs_space, info["final_obs"])
        kept = kept[-12:]
        for what, given, copy in kept:
            if not _same(given, copy):
                yield f"{what} changed after it was returned; return a copy, not the env's own buffer"
                return
    env.close()


def _keep(kept: list[tuple[str, Array, Array]], what: str, space: ObsSpace, obs: Any) -> None:
    kept += [(what, part, part.copy()) for part in space.as_parts(obs).values()]


def _episode_ends(make: Make, steps: int) -> Iterator[str]:
    env = make(4, 0)
    env.reset(seed=7)
    ended = 0
    differs = False
    for actions in _random_actions(env, steps):
        obs, _, terminated, truncated, info = env.step(actions)
        done = terminated | truncated
        if done.any() != ("final_obs" in info):
            yield "info['final_obs'] must be there exactly in steps in which an env finished"
            return
        if not done.any():
            continue
        ended += int(done.sum())
        yield from _end(env, obs, done, info)
        now, last = _parts(env, obs), _parts(env, info["final_obs"])
        differs = differs or not all(_same(last[name][done], now[name][done]) for name in now)
    if ended and not differs:
        yield "final_obs always equals the new episode's first observation; copy the last one before resetting"
    if not ended:
        yield f"no episode ended in {steps} steps of 4 envs, so no end was checked; give the env a limit, or more steps"
    env.close()


def _end(env: VectorEnv, obs: Any, done: BoolArray, info: dict[str, Any]) -> Iterator[str]:
    for key in ("_final_obs", "_final_info"):
        if key not in info or not np.array_equal(info[key], done):
            yield f"info['{key}'] must be the mask of the envs that finished; it is {info.get(key)}"
    score = info.get("final_info", {}).get("score")
    if np.shape(score) != (env.num_envs,) or not np.isfinite(score).all():
        yield f"info['final_info']['score'] must be one finite number per env; it is {score}"
    final = env.obs_space.as_parts(info["final_obs"])
    now = env.obs_space.as_parts(obs)
    for name, part in final.items():
        if part.shape != now[name].shape:
            yield f"final_obs {name} has shape {part.shape}; it must be shaped like the observation, {now[name].shape}"


def _state_round_trip(make: Make, steps: int) -> Iterator[str]:
    env, other = make(2, 0), make(2, 99)
    env.reset(seed=31)
    plan = list(_random_actions(env, min(steps, 120)))
    for actions in plan[: len(plan) // 2]:
        env.step(actions)
    state, seen = env.get_state(), _parts(env, env.observe())
    rest = [_outcome(env, a) for a in plan[len(plan) // 2 :]]
    yield from _plain(state, "get_state()")
    for where, target in (("the same env", env), ("a new one", other)):
        target.set_state(state)
        if not all(_same(part, seen[name]) for name, part in _parts(target, target.observe()).items()):
            yield f"observe() after set_state in {where} is not what it was; put all that is drawn into the state"
        if [_outcome(target, a) for a in plan[len(plan) // 2 :]] != rest:
            yield f"after set_state in {where} the same actions led elsewhere; RNGs, counters and stacks are state too"
    env.close()
    other.close()


def _plain(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _plain(item, f"{where}[{key!r}]")
    elif isinstance(value, list):
        for item in value[:3]:
            yield from _plain(item, f"{where}[…]")
    elif isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufSU":
            yield f"{where} is an array of {value.dtype}; use arrays of numbers (records: their bytes)"
    elif value is not None and not isinstance(value, bool | int | float | str | bytes | np.generic):
        yield f"{where} is a {type(value).__name__}; states are plain: dicts, lists, arrays, numbers, strings, bytes"


def _masked_reset(make: Make, steps: int) -> Iterator[str]:
    env, untouched = make(3, 0), make(3, 0)
    for e in (env, untouched):
        e.reset(seed=41)
    plan = list(_random_actions(env, 10))
    for actions in plan[:5]:
        env.step(actions)
        untouched.step(actions)
    mask = np.array([False, True, False])
    obs, _ = env.reset(seed=[0, 77, 0], options={"reset_mask": mask})
    fresh = make(1, 0)
    begun = _parts(fresh, fresh.reset(seed=[77])[0])
    if not all(_same(part[1:2], begun[name]) for name, part in _parts(env, obs).items()):
        yield "reset(seed=[…], options={'reset_mask': mask}) must start the masked env's first episode of its new seed"
    for actions in plan[5:]:
        one, other = _outcome(env, actions), _outcome(untouched, actions)
        if (one[0], one[2]) != (other[0], other[2]):
            yield "a reset with a reset_mask changed envs outside the mask; leave them and their seeds alone"
            return


def _fresh_episodes(make: Make, steps: int) -> Iterator[str]:
    env = make(4, 0)
    env.reset(seed=51)
    for actions in _random_actions(env, steps):
        obs, _, terminated, truncated, _ = env.step(actions)
        done = terminated | truncated
        if done.any():
            i = int(done.argmax())
            fresh = make(1, 0)
            fresh.reset(seed=[51 + i])
            begun = _parts(fresh, fresh.reset()[0])  # without a seed: the next episode, which this is as well
            if not all(_same(part[i : i + 1], begun[name]) for name, part in _parts(env, obs).items()):
                yield (
                    "the first observation after an autoreset differs from that of the same episode after reset(); "
                    "either something of the old episode leaks into it (frame stack, frame skip) or episode k of a "
                    "seed depends on what was played before"
                )
            return


def _time_limits(make: Make, steps: int) -> Iterator[str]:
    env = make(4, 0)
    env.reset(seed=61)
    begun, lengths, cut = np.zeros(4, np.int64), [], False
    for t, actions in enumerate(_random_actions(env, steps), 1):
        _, _, terminated, truncated, _ = env.step(actions)
        cut = cut or bool(truncated.any())
        lengths += (t - begun)[terminated].tolist()
        begun[terminated | truncated] = t
    if len(lengths) > 2 and len(set(lengths)) == 1 and lengths[0] > 1 and not cut:
        yield (
            f"every episode terminated after exactly {lengths[0]} steps, whatever was played; if that is a time limit, "
            "report it as truncated: a learner counts on nothing following a termination"
        )


_CHECKS: tuple[Check, ...] = (
    _declaration,
    _spaces,
    _seeds,
    _independence,
    _copies,
    _episode_ends,
    _state_round_trip,
    _masked_reset,
    _fresh_episodes,
    _time_limits,
)


def _random_actions(env: VectorEnv, steps: int) -> Iterator[IntArray]:
    """The same actions for the same number of envs, whatever the env does with its seeds."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        yield rng.integers(0, env.actions.n, env.num_envs)


def _parts(env: VectorEnv, obs: Any) -> Obs:
    return env.obs_space.as_parts(obs)


def _same(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b)


def _outcome(env: VectorEnv, actions: IntArray) -> list[tuple[Any, ...]]:
    """What each env made of its action, comparable."""
    obs, reward, terminated, truncated, _ = env.step(actions)
    parts = list(_parts(env, obs).values())
    return [
        (tuple(_bytes(p[i]) for p in parts), float(reward[i]), bool(terminated[i]), bool(truncated[i]))
        for i in range(env.num_envs)
    ]


def _bytes(row: Any) -> bytes:
    return row.encode() if isinstance(row, str) else np.ascontiguousarray(row).tobytes()


def _played(env: VectorEnv, seed: int, steps: int) -> list[list[int]]:
    """Hashes of what each env went through, step by step, with random actions."""
    env.reset(seed=seed)
    return [list(map(hash, _outcome(env, actions))) for actions in _random_actions(env, steps)]


def _played_rows(env: VectorEnv, seed: int, steps: int) -> list[list[int]]:
    """The same where all envs take the same action."""
    env.reset(seed=seed)
    return [list(map(hash, _outcome(env, np.full_like(a, a[0])))) for a in _random_actions(env, steps)]


def _rows(make: Make, seeds: list[int], steps: int, actions_of: int = 0) -> list[int]:
    """A hash of what each env of a batch went through; env i acts as env `actions_of` + i always does."""
    env = make(len(seeds), 0)
    env.reset(seed=seeds)
    rngs = [np.random.default_rng(actions_of + i) for i in range(len(seeds))]
    seen: list[list[Any]] = [[] for _ in seeds]
    for _ in range(steps):
        outcome = _outcome(env, np.array([rng.integers(env.actions.n) for rng in rngs]))
        for row, one in zip(seen, outcome, strict=True):
            row.append(one)
    env.close()
    return [hash(tuple(row)) for row in seen]
