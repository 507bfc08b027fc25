"""Filming: episodes are chosen by score and played again exactly, frame by frame."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.fakes import LONG, Lottery, LotteryCore, Tilted, length_of

from gameagent.evaluation.film import HOLD, Pick, ReplayError, Trace, film, pick, trace_episodes
from gameagent.evaluation.overlay import Decision, Panel
from gameagent.evaluation.protocol import EpisodeResult, play
from gameagent.policies.actors import ExpertActor, PolicyActor, RandomActor
from gameagent.policies.samplers import Temperature

LONG_SEED = next(s for s in range(100) if length_of(s) == LONG)


def traced(env: Lottery, seeds: list[int]) -> list[Trace]:
    return trace_episodes(env.make(3), RandomActor(seed=1), seeds)


def test_a_trace_holds_every_decision_of_its_episode_and_the_same_result_as_an_evaluation() -> None:
    seeds = list(range(9))
    traces = traced(Lottery(), seeds)
    assert [t.result for t in traces] == play(Lottery().make(3), RandomActor(seed=1), seeds)
    for t in traces:
        assert t.result is not None
        assert len(t.actions) == len(t.rewards) == t.result.length
        assert sum(t.rewards) == pytest.approx(t.result.episode_return)
        assert not t.probabilities


def test_a_policy_is_asked_for_probabilities_and_values_at_every_decision() -> None:
    policy = Tilted()
    (t,) = trace_episodes(Lottery().make(1), PolicyActor(policy, Temperature(), seed=0), [LONG_SEED], policy)
    assert len(t.probabilities) == len(t.values) == LONG
    assert all(head.sum() == pytest.approx(1) for heads in t.probabilities for head in heads)
    assert t.values == list(range(LONG)), "the made-up policy values an observation by its age: asked before each step"


def test_best_median_and_worst_are_chosen_by_score_and_none_twice() -> None:
    traces = [Trace(s, result=EpisodeResult(s, score, 0, 1)) for s, score in enumerate([5.0, 1.0, 9.0, 3.0, 7.0])]
    chosen = pick(traces, [Pick.best, Pick.median, Pick.worst, Pick.first, Pick.best])
    assert [(t.seed, why) for t, why in chosen] == [(2, "best of 5"), (0, "median of 5"), (1, "worst of 5")]
    assert pick(traces[:1], list(Pick)) == [(traces[0], "")]


@pytest.mark.parametrize("skip", [1, 4])
def test_a_film_shows_every_frame_of_the_raw_game_and_holds_the_last(skip: int) -> None:
    env = Lottery(frame_skip=skip)
    (t,) = traced(env, [LONG_SEED])
    assert len(t.actions) == LONG // skip
    camera = env.raw().make(1, render_mode="rgb_array")
    pictures = list(film(camera, t, repeat=skip, title="x", scale=2, fps=10))
    assert len(pictures) == LONG + round(HOLD * 10)
    assert {p.shape for p in pictures} == {(48, 64 + 24, 3)}
    bars = [int((p[0, :64] == (40, 160, 220)).all(-1).sum()) // 2 for p in pictures]
    assert bars[:LONG] == [1 + i % 32 for i in range(LONG)]
    assert set(bars[LONG:]) == {1 + LONG % 32}, "the last picture is the end of this episode, not the next one's start"


def test_the_last_picture_stands_beside_the_final_score() -> None:
    (t,) = trace_episodes(Lottery().make(1), ExpertActor(), [LONG_SEED])
    *_, last = film(Lottery().make(1), t, repeat=1, title="x", scale=4)
    end = Panel(LotteryCore.actions, 96, "x", f"seed {LONG_SEED}").draw(Decision(3, LONG, LONG - 1, LONG))
    assert (last[:, 128:] == end).all()


def test_an_environment_that_does_not_repeat_itself_is_noticed() -> None:
    (t,) = traced(Lottery(jitter=1.0), [LONG_SEED])
    camera = Lottery(jitter=1.0).make(1, render_mode="rgb_array")
    with pytest.raises(ReplayError, match=f"seed {LONG_SEED} went another way"):
        list(film(camera, t, repeat=1, title="x"))


def test_a_trace_of_another_length_is_noticed() -> None:
    (t,) = traced(Lottery(), [LONG_SEED])
    t.actions.pop()
    with pytest.raises(ReplayError, match="decision 39 of 39"):
        list(film(Lottery().make(1, render_mode="rgb_array"), t, repeat=1, title="x"))


def test_an_environment_without_pictures_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (t,) = trace_episodes(Lottery().make(1), ExpertActor(), [0])
    env = Lottery().make(1)
    monkeypatch.setattr(env, "frames", lambda: None)
    with pytest.raises(ValueError, match="draws no pictures"):
        next(film(env, t, repeat=1, title="x"))


def test_without_a_score_of_its_own_the_panel_counts_the_return(monkeypatch: pytest.MonkeyPatch) -> None:
    (t,) = trace_episodes(Lottery().make(1), ExpertActor(), [0])
    with_score = next(film(Lottery().make(1), t, repeat=1, title="x"))
    env = Lottery().make(1)
    monkeypatch.setattr(env, "score", lambda: None)
    assert (next(film(env, t, repeat=1, title="x")) != with_score).any()
    assert np.uint8 == with_score.dtype
