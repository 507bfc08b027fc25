"""Trap 17: parallel evaluation that takes the first episodes to finish favours short ones."""

from __future__ import annotations

import numpy as np
from tests.evaluation.fakes import LONG, SHORT, Lottery, length_of

from gameagent.evaluation.protocol import play
from gameagent.policies.actors import ExpertActor


def test_a_mixture_of_long_and_short_episodes_has_an_unbiased_mean() -> None:
    seeds = range(200)
    got = play(Lottery().make(8), ExpertActor(), seeds)
    truth = np.mean([length_of(s) for s in seeds])
    assert np.mean([r.score for r in got]) == truth
    assert abs(truth - (SHORT + LONG) / 2) < 4, "the mixture is about even, so favouring short ones would show"


def test_every_env_plays_its_quota_however_slow_it_is() -> None:
    seeds = range(31)
    by_env: dict[int, list[int]] = {i: [] for i in range(4)}

    def note(step: object) -> None:
        for row, episode in enumerate(step.episode.tolist()):  # type: ignore[attr-defined]
            if episode >= 0 and episode not in by_env[row]:
                by_env[row].append(episode)

    play(Lottery().make(4), ExpertActor(), seeds, note)
    assert by_env == {i: list(range(i, 31, 4)) for i in range(4)}
