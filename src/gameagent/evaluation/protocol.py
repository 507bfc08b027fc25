"""How a policy is scored: every seed is one episode, played to its end, whoever else plays beside it.

    results = play(env, actor, seeds=range(2_000_000, 2_000_100))

Episode j starts from `seeds[j]` and is played by env j % N, each env its own quota in order: long episodes weigh as
much as short ones (the first n to finish would be the short ones), and no start depends on when others finish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gameagent.contract import BoolArray, FloatArray, IntArray
from gameagent.envs.base import VectorEnv
from gameagent.envs.statistics import EpisodeStatistics, FinishedEpisode
from gameagent.errors import EnvError
from gameagent.policies.actors import Actor
from gameagent.rewards.base import Terms


@dataclass(frozen=True)
class EpisodeResult:
    """What one episode came to."""

    seed: int
    score: float
    """The game's own score."""
    episode_return: float
    """Sum of the shaped reward."""
    length: int
    """Env steps (after frame skip)."""
    terms: dict[str, float] = field(default_factory=dict)
    """Sum of each reward term."""
    win: float | None = None
    """1 won, -1 lost, 0 undecided; None where the game has no such signal."""
    terminated: bool = True
    """False where a time limit cut it."""


@dataclass(frozen=True)
class Step:
    """One step of the batch, as `on_step` sees it."""

    episode: IntArray
    """(N,) which episode (index into the seeds) each env plays in this step, -1 where its quota is done."""
    actions: IntArray
    """(N,) flat ids."""
    reward: FloatArray
    """(N,)"""
    finished: dict[int, EpisodeResult]
    """Results of the episodes that this step ended, by index."""
    terms: Terms = field(default_factory=dict)
    """The reward's parts by name, (N,) each."""


OnStep = Callable[[Step], None]


def play(env: VectorEnv, actor: Actor, seeds: Sequence[int], on_step: OnStep | None = None) -> list[EpisodeResult]:
    """Play one episode from every seed and give their results in the order of `seeds`.

    Args:
        env: a batch of any size; its size changes the speed, not the results.
        actor: chooses the actions.
        seeds: one each episode, 0 or more.
        on_step: called after every step (progress, traces).

    Raises:
        ValueError: no seeds, or a negative one.
        EnvError: a score or a summed reward is NaN or infinite.
    """
    if not len(seeds) or min(seeds) < 0:
        raise ValueError(f"an evaluation needs at least one seed, 0 or more each, got {list(seeds)[:5]}")
    quotas = _Quotas(env.num_envs, seeds)
    statistics = EpisodeStatistics(env.num_envs)
    results: dict[int, EpisodeResult] = {}
    actor.begin(np.ones(env.num_envs, bool), quotas.seeds())
    starts: Any = quotas.seeds()  # Gymnasium's annotation knows single ints only
    obs, _ = env.reset(seed=starts)
    while len(results) < len(seeds):
        actions = actor.act(env.obs_space.as_parts(obs), env)
        obs, reward, terminated, truncated, info = env.step(actions)
        ended = statistics.update(reward, terminated, truncated, info)
        finished = {i: _result(e, seeds[i], info) for e in ended if (i := int(quotas.episode[e.env])) >= 0}
        results |= finished
        if on_step is not None:
            on_step(Step(quotas.episode.copy(), actions, reward, finished, info.get("reward_terms", {})))
        restart = quotas.advance([e.env for e in ended])
        if restart.any():
            # The autoreset began an episode of the env's own choice; the protocol's seed takes its place.
            starts = quotas.seeds()
            actor.begin(restart, starts)
            obs, _ = env.reset(seed=starts, options={"reset_mask": restart})
    return [results[i] for i in range(len(seeds))]


class _Quotas:
    """Which episode each env plays: env i plays i, i + N, i + 2N, … and then nothing that counts."""

    def __init__(self, num_envs: int, seeds: Sequence[int]) -> None:
        self._all = [int(s) for s in seeds]
        self.episode: IntArray = np.arange(num_envs)
        self.episode[self.episode >= len(seeds)] = -1

    def seeds(self) -> list[int]:
        """The seed of each env's episode. An env that is done plays on from some seed: nobody looks."""
        return [self._all[i] for i in self.episode]

    def advance(self, envs: list[int]) -> BoolArray:
        """Give the envs that finished their next episode. Returns which of them have one and so must restart."""
        restart = np.zeros(len(self.episode), bool)
        for i in envs:
            if self.episode[i] >= 0:
                following = self.episode[i] + len(self.episode)
                restart[i] = following < len(self._all)
                self.episode[i] = following if restart[i] else -1
        return restart


def _result(ended: FinishedEpisode, seed: int, info: dict[str, Any]) -> EpisodeResult:
    win = info.get("final_info", {}).get("win")
    for what, number in (("score", ended.score), ("summed reward", ended.episode_return)):
        if not np.isfinite(number):
            raise EnvError(
                f"the {what} of the episode from seed {seed} is {number}: mend the game or its reward; "
                "job=doctor checks them"
            )
    return EpisodeResult(
        seed=int(seed),
        score=float(ended.score),
        episode_return=float(ended.episode_return),
        length=int(ended.length),
        terms={name: float(total) for name, total in ended.terms.items()},
        win=None if win is None else float(win[ended.env]),
        terminated=bool(ended.terminated),
    )
