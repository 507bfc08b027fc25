"""Inline SVG for reports: drawn with CSS variables, so that one file looks right on light and dark screens.

`intervals_chart([Row(...), …])` and `curve_chart("train/score", steps, values)` give `<svg>` text without any script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from gameagent.contract import FloatArray
from gameagent.evaluation.plots import running_mean
from gameagent.evaluation.stats import Estimate

_WIDTH = 980.0
_MAX_POINTS = 400
"""Points drawn of a curve: more cannot be told apart at this width."""


@dataclass(frozen=True)
class Row:
    """One player in an `intervals_chart`."""

    label: str
    estimate: Estimate
    scores: tuple[float, ...] = field(default=())
    """Each episode's, drawn as faint dots."""
    note: str = ""
    """Small print under the label."""


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers within [low, high]: steps of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A number in few characters: 12000 -> 12k, 0.0125 -> 0.0125."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.4g}"


def intervals_chart(rows: Sequence[Row]) -> str:
    """One line a player: dots for episodes, a bar for the mean's interval, the mean in the middle, numbers above."""
    left, right, line = 150.0, _WIDTH - 16, 76.0
    values = [v for r in rows for v in (*r.scores, r.estimate.value, r.estimate.low, r.estimate.high)]
    low, high = _padded(float(np.nanmin(values)), float(np.nanmax(values)))
    height = line * len(rows) + 34

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    parts = [_open(height, "Score of each player with its interval")]
    for tick in ticks(low, high, 7):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="4" y2="{height - 26:.0f}"/>')
        parts.append(_tick(x(tick), height - 8, tick))
    for i, row in enumerate(rows):
        parts.append(_interval_row(row, line * i + 46, f"s{i % 6}", x))
    return "".join(parts) + "</svg>"


def _interval_row(row: Row, y: float, colour: str, x: Callable[[float], float]) -> str:
    e = row.estimate
    parts = [f'<text class="name" x="0" y="{y - 2:.1f}">{escape(row.label)}</text>']
    parts.append(f'<text class="tick" x="0" y="{y + 14:.1f}">{escape(row.note)}</text>')
    for k, score in enumerate(row.scores):
        dy = 34 * ((k * 0.618034) % 1 - 0.5)
        parts.append(f'<circle class="dot {colour}" cx="{x(score):.1f}" cy="{y + dy:.1f}" r="3"/>')
    title = f"<title>{escape(row.label)}: {e}, {e.n} episodes</title>"
    if math.isfinite(e.low):
        ends = f'x1="{x(e.low):.1f}" x2="{x(e.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        parts.append(f'<line class="bar {colour}" {ends}>{title}</line>')
    parts.append(f'<circle class="mean {colour}" cx="{x(e.value):.1f}" cy="{y:.1f}" r="6">{title}</circle>')
    centre = min(max(x(e.value), 150 + 70), _WIDTH - 16 - 70)  # the label must not leave the picture
    parts.append(f'<text class="value {colour}" x="{centre:.1f}" y="{y - 24:.1f}" text-anchor="middle">{e}</text>')
    return "".join(parts)


def curve_chart(name: str, steps: FloatArray, values: FloatArray, *, colour: int = 0, wide: bool = False) -> str:
    """A metric over env steps: raw values faint, their running mean on top.

    Args:
        name: shown above the curve.
        steps: (n,) x values, n >= 1.
        values: (n,) y values.
        colour: which of the palette's six.
        wide: the whole width of the page instead of a third.
    """
    width, height = (_WIDTH, 280.0) if wide else (320.0, 190.0)
    left, right, top, bottom = 46.0, width - 12, 28.0, height - 24
    low, high = _padded(float(values.min()), float(values.max()))
    first, last = float(steps.min()), float(steps.max())
    span = last - first or 1.0

    def points(ys: FloatArray) -> str:
        picked = np.unique(np.linspace(0, len(ys) - 1, min(len(ys), _MAX_POINTS)).round().astype(int))
        px = left + (steps[picked] - first) / span * (right - left)
        py = bottom - (ys[picked] - low) / (high - low) * (bottom - top)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True))

    parts = [_open(height, f"{name} over environment steps", width)]
    parts.append(f'<text class="name" x="2" y="14">{escape(name)}</text>')
    for tick in ticks(low, high, 4):
        y = bottom - (tick - low) / (high - low) * (bottom - top)
        parts.append(f'<line class="grid" x1="{left:.0f}" x2="{right:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_tick(left - 6, y + 4, tick, "end"))
    for tick in ticks(first, last, 6 if wide else 3):
        x = left + (tick - first) / span * (right - left)
        parts.append(_tick(x, height - 6, tick))
    parts.append(f'<polyline class="raw s{colour % 6}" points="{points(values)}"/>')
    smooth = running_mean(values)
    parts.append(f'<polyline class="smooth s{colour % 6}" points="{points(smooth)}"/>')
    ends = f"{short(float(smooth[0]))} at the start, {short(float(smooth[-1]))} at the end"
    parts.append(f"<title>{escape(name)}: {ends}</title>")
    return "".join(parts) + "</svg>"


def differences_chart(differences: FloatArray, mean: Estimate) -> str:
    """One column a seed, in order of size; the mean difference as a line in the band of its interval.

    Args:
        differences: (n,) of b - a.
        mean: their mean with its interval.
    """
    height, left, right, top, bottom = 220.0, 46.0, _WIDTH - 12, 10.0, 210.0
    d = np.sort(differences)
    low, high = _padded(min(float(d[0]), 0.0), max(float(d[-1]), 0.0))
    width = (right - left) / len(d)

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    parts = [_open(height, "Difference on each seed")]
    for tick in ticks(low, high, 5):
        parts.append(f'<line class="grid" x1="{left:.0f}" x2="{right:.0f}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(_tick(left - 6, y(tick) + 4, tick, "end"))
    for i, value in enumerate(d):
        box = f'x="{left + i * width:.2f}" width="{max(width - 0.6, 0.6):.2f}" y="{min(y(value), y(0)):.1f}"'
        colour = "s1" if value > 0 else "s0"
        parts.append(f'<rect class="column {colour}" {box} height="{abs(y(value) - y(0)):.1f}"/>')
    if math.isfinite(mean.low):
        band = f'y="{y(mean.high):.1f}" height="{y(mean.low) - y(mean.high):.1f}"'
        parts.append(f'<rect class="band" x="{left:.0f}" width="{right - left:.0f}" {band}/>')
    parts.append(f'<line class="zero" x1="{left:.0f}" x2="{right:.0f}" y1="{y(0):.1f}" y2="{y(0):.1f}"/>')
    line = f'x1="{left:.0f}" x2="{right:.0f}" y1="{y(mean.value):.1f}" y2="{y(mean.value):.1f}"'
    parts.append(f'<line class="zero" stroke-dasharray="6 4" {line}/>')
    parts.append(f'<text class="name" x="{left + 6:.0f}" y="{y(mean.high) - 6:.1f}">mean {mean}</text>')
    return "".join(parts) + "</svg>"


def _tick(x: float, y: float, value: float, anchor: str = "middle") -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{short(value)}</text>'


def _padded(low: float, high: float) -> tuple[float, float]:
    room = 0.05 * (high - low) or max(abs(high) * 0.05, 0.5)
    return low - room, high + room


def _open(height: float, label: str, width: float = _WIDTH) -> str:
    return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label, quote=True)}">'
