"""Reads a run's metrics.csv: one row a log call, one column a metric, empty where a call did not log it.

curves = read_metrics("outputs/x/metrics.csv"); steps, returns = curves["train/return"]
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from gameagent.contract import FloatArray

Curves = dict[str, tuple[FloatArray, FloatArray]]
"""Metric name -> (env steps, values), both (n,), finite values only."""

_STEP_COLUMNS = ("env_steps", "step")
"""Names under which the x axis may stand."""


def read_metrics(path: str | Path) -> Curves:
    """All curves of a metrics.csv, each without its gaps.

    Raises:
        ValueError: no column of steps.
    """
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = list(rows[0]) if rows else []
    step = next((c for c in _STEP_COLUMNS if c in columns), None)
    if rows and step is None:
        raise ValueError(f"{path} has no column named {' or '.join(_STEP_COLUMNS)}; it has {columns}")
    found: dict[str, list[tuple[float, float]]] = {c: [] for c in columns if c not in (*_STEP_COLUMNS, "epoch")}
    for row in rows:
        for name, points in found.items():
            value = _number(row[name])
            if math.isfinite(value):
                points.append((_number(row[step or ""]), value))
    return {name: (np.array(points)[:, 0], np.array(points)[:, 1]) for name, points in found.items() if points}


def _number(text: str | None) -> float:
    """NaN for an empty or torn field: a run that was killed may leave half a line."""
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
