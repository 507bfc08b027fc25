"""Sums of episodes against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.envs.toys import Clock

from gameagent.envs.statistics import EpisodeStatistics
from gameagent.envs.vector import CoreVectorEnv


def test_returns_lengths_terms_and_scores() -> None:
    env = CoreVectorEnv(Clock(2, length=3), lambda ctx: (ctx.signals["gain"] / 2, {"half": ctx.signals["gain"] / 2}))
    env.reset(seed=0)
    statistics = EpisodeStatistics(2)
    found = []
    for _ in range(6):
        _, reward, terminated, truncated, info = env.step(np.array([0, 2]))
        found += statistics.update(reward, terminated, truncated, info)
    assert [f.env for f in found] == [0, 1, 0, 1]
    assert [f.episode_return for f in found] == [1.5, 4.5, 1.5, 4.5]
    assert [f.terms for f in found] == [{"half": 1.5}, {"half": 4.5}] * 2
    assert all(f.length == 3 and f.score == 30 and f.terminated and not f.truncated for f in found)


def test_score_is_the_return_where_a_game_gives_none() -> None:
    statistics = EpisodeStatistics(1)
    ended = np.array([True])
    [one] = statistics.update(np.array([2.5]), ~ended, ended, {})
    assert one.score == one.episode_return == 2.5
    assert one.truncated
    assert not one.terminated


def test_state_round_trip_and_forgetting() -> None:
    statistics, no, yes = EpisodeStatistics(2), np.zeros(2, np.bool_), np.ones(2, np.bool_)
    statistics.update(np.array([1.0, 2.0]), no, no, {"reward_terms": {"a": np.array([1.0, 2.0])}})
    other = EpisodeStatistics(2)
    other.set_state(statistics.get_state())
    other.forget(np.array([True, False]))
    one, two = other.update(np.array([1.0, 1.0]), yes, no, {})
    assert (one.episode_return, one.length, one.terms) == (1.0, 1, {"a": 0.0})
    assert (two.episode_return, two.length, two.terms) == (3.0, 2, {"a": 2.0})
    with pytest.raises(ValueError, match="2 envs"):
        EpisodeStatistics(3).set_state(statistics.get_state())
