"""`EpisodeStatistics`: what each finished episode came to, counted from the steps of a vector env.

statistics = EpisodeStatistics(env.num_envs); finished = statistics.update(reward, terminated, truncated, info)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gameagent.contract import BoolArray, FloatArray
from gameagent.envs.base import State
from gameagent.errors import EnvError


@dataclass(frozen=True)
class FinishedEpisode:
    """One episode, from its reset to its end."""

    env: int
    """Index of the env that played it."""
    episode_return: float
    """Sum of the rewards, shaping included."""
    length: int
    """Steps."""
    score: float
    """The game's own score; the return where a game gives none."""
    terms: dict[str, float]
    """Sum of each term of the reward."""
    terminated: bool
    """The game ended."""
    truncated: bool
    """A limit cut the episode short (both where they coincide)."""


class EpisodeStatistics:
    """Sums per env; an episode that ends in a step counts that step and gives its sums away.

    Args:
        num_envs: N.
    """

    def __init__(self, num_envs: int) -> None:
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, np.int64)
        self._terms: dict[str, FloatArray] = {}

    def update(
        self, reward: FloatArray, terminated: BoolArray, truncated: BoolArray, info: Mapping[str, Any]
    ) -> list[FinishedEpisode]:
        """Count one step, given as `env.step` gave it. Finished episodes come in the order of their envs."""
        self._returns += reward
        self._lengths += 1
        for name, term in info.get("reward_terms", {}).items():
            if name not in self._terms:
                self._terms[name] = np.zeros_like(self._returns)
            self._terms[name] += term
        done = terminated | truncated
        if not done.any():
            return []
        scores = info.get("final_info", {}).get("score", self._returns)
        finished = [
            FinishedEpisode(
                env=i,
                episode_return=float(self._returns[i]),
                length=int(self._lengths[i]),
                score=float(scores[i]),
                terms={name: float(term[i]) for name, term in self._terms.items()},
                terminated=bool(terminated[i]),
                truncated=bool(truncated[i]),
            )
            for i in np.flatnonzero(done).tolist()
        ]
        self.forget(done)
        return finished

    def forget(self, mask: BoolArray) -> None:
        """Begin anew where `mask` (N,): after a reset that no episode's end caused."""
        self._returns[mask], self._lengths[mask] = 0.0, 0
        for term in self._terms.values():
            term[mask] = 0.0

    def get_state(self) -> State:
        """The sums of the episodes under way."""
        terms = {name: term.copy() for name, term in self._terms.items()}
        return {"returns": self._returns.copy(), "lengths": self._lengths.copy(), "terms": terms}

    def set_state(self, state: State) -> None:
        """Inverse of `get_state`. Raises EnvError for another number of envs."""
        if len(state["returns"]) != len(self._returns):
            raise EnvError(f"statistics of {len(state['returns'])} envs, but there are {len(self._returns)}")
        self._returns = np.array(state["returns"], np.float64)
        self._lengths = np.array(state["lengths"], np.int64)
        self._terms = {name: np.array(term, np.float64) for name, term in state["terms"].items()}
