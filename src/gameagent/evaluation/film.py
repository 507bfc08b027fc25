"""Films episodes: plays many quickly without pictures, picks some, and plays those again frame by frame for the camera.

traces = trace_episodes(env, actor, seeds, policy)
for trace, why in pick(traces, [Pick.best]): frames = film(raw_env, trace, repeat=4, title="PPO")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from gameagent.contract import Array, BoolArray, FloatArray, IntArray, Obs
from gameagent.envs.base import VectorEnv
from gameagent.evaluation.overlay import Decision, Panel
from gameagent.evaluation.protocol import EpisodeResult, OnStep, Step, play
from gameagent.evaluation.video import factor_for, upscale
from gameagent.policies.actors import Actor
from gameagent.policies.base import Infers

HOLD = 0.8
"""Seconds that an episode's last picture stays."""


class Pick(StrEnum):
    """Which episode to show."""

    best = "best"
    median = "median"
    worst = "worst"
    first = "first"


@dataclass
class Trace:
    """One episode as it was decided: enough to play it again."""

    seed: int
    actions: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    probabilities: list[tuple[FloatArray, ...]] = field(default_factory=list)
    """Of each head's labels at each decision; empty where the player has none."""
    values: list[float] = field(default_factory=list)
    """The policy's estimate of the return to come, before each decision."""
    result: EpisodeResult | None = None


class ReplayError(RuntimeError):
    """The same seed and actions led to another episode: the environment is not repeatable."""


class _Watched(Actor):
    """An actor whose policy is asked, beside acting, how likely each action was and what it expects."""

    def __init__(self, actor: Actor, policy: Infers | None) -> None:
        super().__init__()
        self.actor, self.policy = actor, policy
        self.probabilities: list[FloatArray] = []
        self.values: FloatArray = np.empty(0)

    def begin(self, rows: BoolArray, seeds: Sequence[int]) -> None:
        self.actor.begin(rows, seeds)

    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        actions = self.actor.act(obs, env)
        if self.policy is not None:
            logits, value = self.policy.infer(obs)
            self.probabilities = [_softmax(np.asarray(head, np.float64)) for head in logits]
            self.values = np.asarray(value, np.float64)
        return actions


def trace_episodes(
    env: VectorEnv, actor: Actor, seeds: Sequence[int], policy: Infers | None = None, on_step: OnStep | None = None
) -> list[Trace]:
    """Play one episode from every seed, noting every decision.

    Args:
        env: a batch.
        actor: who plays.
        seeds: one each episode.
        policy: asked for probabilities and values; None where the player has none.
        on_step: as in `play`.
    """
    watched = _Watched(actor, policy)
    traces = [Trace(seed) for seed in seeds]

    def note(step: Step) -> None:
        for row, episode in enumerate(step.episode.tolist()):
            if episode < 0:
                continue
            trace = traces[episode]
            trace.actions.append(int(step.actions[row]))
            trace.rewards.append(float(step.reward[row]))
            if policy is not None:
                trace.probabilities.append(tuple(head[row] for head in watched.probabilities))
                trace.values.append(float(watched.values[row]))
        if on_step is not None:
            on_step(step)

    for trace, result in zip(traces, play(env, watched, seeds, note), strict=True):
        trace.result = result
    return traces


def pick(traces: Sequence[Trace], which: Sequence[Pick]) -> list[tuple[Trace, str]]:
    """The wanted episodes with a few words on why, by score; one that is wanted twice comes once."""
    order = sorted(traces, key=_score)
    places = {Pick.worst: 0, Pick.median: len(order) // 2, Pick.best: len(order) - 1}
    chosen: dict[int, tuple[Trace, str]] = {}
    for kind in which:
        trace = traces[0] if kind is Pick.first else order[places[kind]]
        chosen.setdefault(id(trace), (trace, f"{kind.value} of {len(traces)}" if len(traces) > 1 else ""))
    return list(chosen.values())


def film(
    env: VectorEnv, trace: Trace, *, repeat: int, title: str, why: str = "", scale: int | None = None, fps: float = 30.0
) -> Iterator[Array]:
    """Play a traced episode again and give its pictures, enlarged and with a panel beside them.

    Args:
        env: one env that draws (render_mode="rgb_array"); the raw game shows every frame of it.
        trace: what was decided.
        repeat: steps of `env` for one decision: the frame skip that `env` lacks.
        title: who plays.
        why: why this episode is shown.
        scale: enlargement of the picture; None for about 448 rows.
        fps: of the video: how long the last picture stays depends on it.

    Yields:
        (H, W, 3) uint8.

    Raises:
        ReplayError: the episode went another way than before.
        ValueError: the env draws no pictures.
    """
    seeds: Any = [trace.seed]  # Gymnasium's annotation knows single ints only
    env.reset(seed=seeds)
    picture = _picture(env, {}, ended=False)
    factor = factor_for(picture.shape[0]) if scale is None else scale
    subtitle = " · ".join(filter(None, (f"seed {trace.seed}", why)))
    counts = "return" if env.score() is None else "score"
    panel = Panel(env.actions, picture.shape[0] * factor, title, subtitle, counts)
    total = 0.0
    for index, action in enumerate(trace.actions):
        own = env.score()
        side = panel.draw(_decision(trace, index, total if own is None else float(own[0])))
        after, info = _step(env, action, repeat)
        for shown in [picture, *after[:-1]]:
            yield np.hstack([upscale(shown, factor), side])
        picture, total = after[-1], total + trace.rewards[index]
        last = index == len(trace.actions) - 1
        if ("_final_info" in info) != last or (last and not _same(trace, info)):
            raise ReplayError(
                f"seed {trace.seed} went another way when played again (decision {index + 1} of {len(trace.actions)})"
            )
    score = _score(trace) if counts == "score" else total
    side = panel.draw(_decision(trace, len(trace.actions) - 1, score))
    for _ in range(round(HOLD * fps)):
        yield np.hstack([upscale(picture, factor), side])


def _step(env: VectorEnv, action: int, repeat: int) -> tuple[list[Array], dict[str, Any]]:
    """Play an action for `repeat` steps or until the episode ends: the picture after each step, and the last info."""
    pictures: list[Array] = []
    info: dict[str, Any] = {}
    for _ in range(repeat):
        *_, terminated, truncated, info = env.step(np.array([action]))
        ended = bool(terminated[0] or truncated[0])
        pictures.append(_picture(env, info, ended=ended))
        if ended:
            break
    return pictures, info


def _decision(trace: Trace, index: int, score: float) -> Decision:
    return Decision(
        action=trace.actions[index],
        score=score,
        step=index,
        steps=len(trace.actions),
        probabilities=trace.probabilities[index] if trace.probabilities else None,
        value=trace.values[index] if trace.values else None,
    )


def _same(trace: Trace, info: dict[str, Any]) -> bool:
    score = info.get("final_info", {}).get("score")
    return trace.result is None or score is None or bool(np.isclose(score[0], trace.result.score))


def _picture(env: VectorEnv, info: dict[str, Any], *, ended: bool) -> Array:
    """What a person sees now; after an autoreset, the last picture of the episode that ended."""
    frames = info["final_frame"] if ended and "final_frame" in info else env.frames()
    if frames is None:
        raise ValueError("this environment draws no pictures, so it can't be filmed")
    frame: Array = frames[0].copy()
    return frame


def _score(trace: Trace) -> float:
    return trace.result.score if trace.result is not None else sum(trace.rewards)


def _softmax(logits: FloatArray) -> FloatArray:
    e = np.exp(logits - logits.max(-1, keepdims=True))
    p: FloatArray = e / e.sum(-1, keepdims=True)
    return p
