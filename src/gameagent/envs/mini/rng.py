"""Random numbers for mini-games: one counter-based stream per env, the same compiled and uncompiled.

from gameagent.envs.mini.rng import uniform, randint; x = 8.0 + 96.0 * uniform(rng)
"""

from __future__ import annotations

from typing import Any

import numpy as np

RECORD = np.dtype([("key", "u8"), ("counter", "u8")])
"""State of one stream: where it comes from (the episode key) and how many numbers were drawn."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_ONE, _11, _27, _30, _31 = np.uint64(1), np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


def uniform(rng: Any) -> float:
    """The next number, in [0, 1), 53 random bits: splitmix64 (Steele, Lea, Flood 2014) of key and counter."""
    rng.counter += _ONE
    z = rng.key + rng.counter * _GOLDEN
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    z = z ^ (z >> _31)
    return float(z >> _11) * 1.1102230246251565e-16


def randint(rng: Any, low: int, high: int) -> int:
    """A whole number from `low` up to but without `high`, as numpy counts."""
    return low + int(uniform(rng) * (high - low))
