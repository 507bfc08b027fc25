"""From episode results to eval.json and back: every number with its interval, every episode as a row.

summary = summarise(results, player="PPO", mode="argmax"); print(headline(summary))
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gameagent.evaluation.protocol import EpisodeResult
from gameagent.evaluation.stats import (
    LEVEL,
    Estimate,
    Paired,
    bootstrap,
    interquartile_mean,
    mean_interval,
    paired,
    wilson,
)
from gameagent.files import replacing

VERSION = 1
"""Of the eval.json and compare.json formats."""

Summary = dict[str, Any]
"""The content of an eval.json; plain JSON types only."""


def summarise(
    results: Sequence[EpisodeResult], *, player: str, mode: str, level: float = LEVEL, **details: Any
) -> Summary:
    """What eval.json holds.

    Args:
        results: one or more episodes.
        player: who played, for people.
        mode: how actions were chosen from the policy's distribution: a part of the result, not a footnote.
        level: coverage of the intervals.
        details: further plain values to keep, such as the env's configuration.

    Raises:
        ValueError: no results.
    """
    scores = [r.score for r in results]
    wins = [r.win for r in results]
    return {
        "version": VERSION,
        "player": player,
        "mode": mode,
        **details,
        "episodes": len(results),
        "seeds": [r.seed for r in results],
        "score": {
            **mean_interval(scores, level=level).to_dict(),
            "interquartile_mean": bootstrap(scores, interquartile_mean, level=level).to_dict(),
            "std": float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
            "min": float(min(scores)),
            "median": float(np.median(scores)),
            "max": float(max(scores)),
        },
        "win_rate": None if None in wins else wilson(sum(w == 1 for w in wins), len(wins), level).to_dict(),
        "return": mean_interval([r.episode_return for r in results], level=level).to_dict(),
        "length": mean_interval([r.length for r in results], level=level).to_dict(),
        "terminated": wilson(sum(r.terminated for r in results), len(results), level).to_dict(),
        "terms": {
            name: mean_interval([r.terms.get(name, 0.0) for r in results], level=level).to_dict()
            for name in sorted({name for r in results for name in r.terms})
        },
        "rows": [asdict(r) for r in results],
    }


def results_of(summary: Summary) -> list[EpisodeResult]:
    """The episodes behind a summary."""
    return [EpisodeResult(**row) for row in summary["rows"]]


def estimate(plain: Mapping[str, Any]) -> Estimate:
    """Inverse of `Estimate.to_dict`; further keys are ignored."""
    value, low, high = (float("nan") if plain[k] is None else float(plain[k]) for k in ("value", "low", "high"))
    return Estimate(value, low, high, int(plain["n"]), float(plain["level"]))


def headline(summary: Summary) -> str:
    """One line: the score, the win rate where there is one, over how many episodes and in which mode."""
    text = f"score {estimate(summary['score'])}"
    if summary["win_rate"] is not None:
        rate = estimate(summary["win_rate"])
        text += f", wins {100 * rate.value:.0f} % [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"
    return f"{text}, {summary['episodes']} episodes, {summary['mode']}"


def compare(a: Summary, b: Summary, *, level: float = LEVEL) -> dict[str, Any]:
    """What compare.json holds: b against a, seed by seed.

    Raises:
        ValueError: they were not played on the same seeds.
    """
    if a["seeds"] != b["seeds"]:
        raise ValueError(
            f"a paired comparison needs the same seeds: {a['player']} played {_span(a)}, {b['player']} {_span(b)}; "
            "evaluate both with the same job.seed and job.episodes"
        )
    scores = [[row["score"] for row in s["rows"]] for s in (a, b)]
    p = paired(scores[0], scores[1], level=level)
    return {
        "version": VERSION,
        "a": _side(a),
        "b": _side(b),
        "episodes": a["episodes"],
        "seeds": a["seeds"],
        **_plain(p),
        "env_differences": _differences(a.get("env"), b.get("env")),
        "intervals_overlap": estimate(a["score"]).overlaps(estimate(b["score"])),
        "rows": [{"seed": s, "a": x, "b": y} for s, x, y in zip(a["seeds"], *scores, strict=True)],
    }


def verdict(comparison: Mapping[str, Any]) -> str:
    """One sentence for people on what a comparison shows."""
    d, a, b = estimate(comparison["difference"]), comparison["a"]["player"], comparison["b"]["player"]
    counts = f"{comparison['wins']} seeds won, {comparison['ties']} tied, {comparison['losses']} lost"
    p = comparison["p_value"]
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if d.low > 0 or d.high < 0:
        word = "more" if d.value > 0 else "less"
        size = sorted(abs(v) for v in (d.low, d.high))
        return f"{b} scores {abs(d.value):.2f} {word} than {a} [{size[0]:.2f}, {size[1]:.2f}] ({counts}, {chance})"
    return f"no difference between {b} and {a} is shown: {d} ({counts}, {chance})"


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file whole or not at all."""
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: str | Path, what: str) -> dict[str, Any]:
    """Read back what `write_json` wrote.

    Raises:
        ValueError: it is no such file, or of another version; `what` says which kind was expected.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as e:
        raise ValueError(f"{path} is no {what}: {e}") from None
    found = content.get("version") if isinstance(content, dict) else None
    if found != VERSION:
        raise ValueError(f"{path} is no {what} of version {VERSION} (found version {found})")
    return dict(content)


def _side(summary: Summary) -> dict[str, Any]:
    return {name: summary.get(name) for name in ("player", "path", "mode", "score", "win_rate", "length")}


def _plain(p: Paired) -> dict[str, Any]:
    return {
        "difference": p.difference.to_dict(),
        "p_value": p.p_value,
        "sign_p_value": p.sign_p_value,
        "wins": p.wins,
        "ties": p.ties,
        "losses": p.losses,
        "probability_of_improvement": p.probability_of_improvement,
    }


def _span(summary: Summary) -> str:
    seeds = summary["seeds"]
    return f"{len(seeds)} seeds from {seeds[0]} to {seeds[-1]}"


def _differences(a: Any, b: Any, path: str = "env") -> list[str]:
    """Where two environments' configurations differ, one line each.

    For people to judge: another picture size is fair, another difficulty is not. How many envs play beside each other
    changes no result and is left out.
    """
    if path == "env" and None in (a, b):
        return []
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = [k for k in {**a, **b} if (path, k) != ("env", "num_envs")]
        return [line for k in keys for line in _differences(a.get(k), b.get(k), f"{path}.{k}")]
    return [] if a == b else [f"{path}: {a!r} and {b!r}"]
