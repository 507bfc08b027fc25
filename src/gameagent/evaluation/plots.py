"""Pictures (PNG) of evaluations, comparisons and training curves, drawn with matplotlib.

`score_picture(path, [summary, …])`, `paired_picture(path, comparison)`, `curves_picture(path, metrics)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from gameagent.contract import FloatArray
from gameagent.evaluation.curves import Curves
from gameagent.evaluation.summary import estimate, verdict
from gameagent.files import replacing

COLOURS = ("#2f6fde", "#e2703a", "#2a9d74", "#8e5bd0", "#c94f7c", "#7a8599")
"""Of the players, in order; told apart by people with red-green blindness too."""
INK, FAINT, LOSS = "#1c2330", "#8a94a6", "#c9ced8"
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LOSS,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#eceff4",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


def score_picture(path: str | Path, summaries: Sequence[Mapping[str, Any]]) -> None:
    """One row a player: every episode's score as a dot, the mean and its interval on top."""
    with rc_context(_STYLE):
        figure = _figure(8, 1.3 + 1.05 * len(summaries))
        axes = figure.subplots()
        for row, summary in enumerate(summaries):
            _score_row(axes, row, summary, COLOURS[row % len(COLOURS)])
        axes.set_yticks(range(len(summaries)), [f"{s['player']}\n{s['mode']}" for s in summaries])
        axes.set_ylim(len(summaries) - 0.4, -0.7)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"score of each episode, mean with {100 * summaries[0]['score']['level']:g} % interval")
        _save(figure, path)


def _score_row(axes: Axes, row: int, summary: Mapping[str, Any], colour: str) -> None:
    scores = np.array([r["score"] for r in summary["rows"]])
    jitter = 0.5 * (np.arange(len(scores)) * 0.618034 % 1 - 0.5)  # golden ratio: evenly spread, and the same each time
    axes.scatter(scores, row + jitter, 16, color=colour, alpha=0.28, linewidths=0)
    mean = estimate(summary["score"])
    axes.plot([mean.low, mean.high], [row, row], color=colour, linewidth=5, solid_capstyle="round", zorder=3)
    axes.plot(mean.value, row, "o", markersize=9, color="white", markeredgecolor=colour, markeredgewidth=2.5, zorder=4)
    axes.annotate(
        str(mean), (mean.value, row - 0.36), ha="center", va="bottom", color=colour, fontweight="bold", fontsize=10
    )


def paired_picture(path: str | Path, comparison: Mapping[str, Any]) -> None:
    """Left: each seed's scores of both players. Right: their differences in order, with the mean and its interval."""
    a, b = (np.array([row[side] for row in comparison["rows"]]) for side in ("a", "b"))
    with rc_context(_STYLE):
        figure = _figure(9, 4.4)
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
        _scatter(left, a, b, comparison)
        _differences(right, np.sort(b - a), comparison)
        figure.suptitle(verdict(comparison), x=0.012, ha="left", fontsize=11, fontweight="bold")
        _save(figure, path)


def _scatter(axes: Axes, a: FloatArray, b: FloatArray, comparison: Mapping[str, Any]) -> None:
    low, high = float(min(a.min(), b.min())), float(max(a.max(), b.max()))
    room = 0.05 * (high - low or 1)
    ends = [low - room, high + room]
    axes.plot(ends, ends, color=LOSS, linewidth=1.2, zorder=1)
    colours = np.where(b > a, COLOURS[1], np.where(b < a, COLOURS[0], FAINT))
    axes.scatter(a, b, 26, color=list(colours), alpha=0.7, linewidths=0, zorder=2)
    axes.set(xlim=ends, ylim=ends, aspect="equal")
    axes.set_xlabel(f"score of {comparison['a']['player']}")
    axes.set_ylabel(f"score of {comparison['b']['player']}")


def _differences(axes: Axes, d: FloatArray, comparison: Mapping[str, Any]) -> None:
    colours = np.where(d > 0, COLOURS[1], COLOURS[0])
    axes.bar(np.arange(len(d)), d, width=1.0, color=list(colours), alpha=0.75, linewidth=0)
    mean = estimate(comparison["difference"])
    axes.axhspan(mean.low, mean.high, color=INK, alpha=0.12, linewidth=0)
    axes.axhline(mean.value, color=INK, linewidth=1.4)
    axes.axhline(0, color=FAINT, linewidth=0.8)
    axes.annotate(f"mean {mean}", (0, mean.high), xytext=(2, 4), textcoords="offset points", fontweight="bold")
    axes.set_xlabel("seeds, in order of the difference")
    axes.set_ylabel(f"{comparison['b']['player']} minus {comparison['a']['player']}")
    axes.grid(False, axis="x")
    axes.set_xticks([])


def curves_picture(path: str | Path, curves: Curves, names: Iterable[str] | None = None) -> None:
    """Small panels, one a metric, over env steps: raw values faint, their running mean on top.

    Args:
        path: of the PNG.
        curves: name -> (env steps, values).
        names: which, in order; all by default.

    Raises:
        ValueError: none of them was logged.
    """
    chosen = [n for n in (curves if names is None else names) if n in curves]
    if not chosen:
        raise ValueError(f"no such metrics; logged are {sorted(curves)}")
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    with rc_context(_STYLE):
        figure = _figure(3.4 * columns, 2.3 * rows)
        panels = np.ravel(figure.subplots(rows, columns, squeeze=False))
        for axes, name in zip(panels, chosen, strict=False):
            steps, values = curves[name]
            axes.plot(steps, values, color=COLOURS[0], alpha=0.25, linewidth=1)
            axes.plot(steps, running_mean(values), color=COLOURS[0], linewidth=1.8)
            axes.set_title(name, loc="left", fontsize=10, fontweight="bold")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        for axes in panels[len(chosen) :]:
            axes.set_visible(False)
        _save(figure, path)


def running_mean(values: FloatArray, share: float = 0.05) -> FloatArray:
    """Centred running mean (n,) over about `share` of the curve; windows are cut at the ends, never padded."""
    half = max(1, round(share * len(values) / 2))
    total = np.concatenate([[0.0], np.cumsum(values)])
    i = np.arange(len(values))
    low, high = np.maximum(i - half, 0), np.minimum(i + half + 1, len(values))
    smooth: FloatArray = (total[high] - total[low]) / (high - low)
    return smooth


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: str | Path) -> None:
    with replacing(path) as part:
        figure.savefig(part, format="png")
