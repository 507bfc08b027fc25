"""How fast MiniCatch runs on one core: pixels and features, through the whole `step` and in the kernel alone.

Run: python benchmarks/mini_speed.py [--envs 64] [--seconds 1.0] [--repeats 7]
Prints a table for docs/performance.md. Times are CPU seconds of this process, so that other programs disturb little.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gameagent.envs.mini.core import MiniCore
from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.mini.game import load_game
from gameagent.rewards.catch import CatchReward

Advance = Callable[[int], None]


def through_step(envs: int, **fields: object) -> Advance:
    """`CoreVectorEnv.step`: rewards, limits, autoreset, copies and all."""
    env = MiniEnv(reward=CatchReward(), **fields).make(envs, 0)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, env.actions.n, (512, envs))

    def advance(t: int) -> None:
        env.step(actions[t % 512])

    return advance


def kernel_alone(envs: int, part: str) -> Advance:
    """The compiled loops: move all games, draw or compute features; finished games start again."""
    core = MiniCore(load_game("catch"), envs, {}, (part,))
    out, everyone = core.space.empty(envs), np.ones(envs, np.bool_)
    keys = np.arange(envs, dtype=np.uint64)
    core.reset(everyone, keys)
    actions = np.random.default_rng(0).integers(0, core.actions.n, (512, envs))

    def advance(t: int) -> None:
        ended = core.advance(actions[t % 512], everyone)
        if np.count_nonzero(ended):
            core.reset(ended, keys)
        core.observe(out, everyone)

    return advance


def rate(advance: Advance, envs: int, seconds: float, repeats: int) -> tuple[float, float, float]:
    """Median, lowest and highest env steps a CPU second."""
    for t in range(200):
        advance(t)
    rates = []
    for _ in range(repeats):
        start, t = time.process_time(), 0
        while time.process_time() - start < seconds:
            for _ in range(100):
                advance(t)
                t += 1
        rates.append(t * envs / (time.process_time() - start))
    return statistics.median(rates), min(rates), max(rates)


def machine() -> str:
    """Processor, number of CPUs and load, in words."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    name = names[0] if names else platform.processor()
    return f"{name}, {os.cpu_count()} CPUs{load}, Python {platform.python_version()}"


def main() -> None:
    """Measure every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    cases = {
        "pixels 112×112×3, step": through_step(given.envs, obs="pixels"),
        "pixels 112×112×3, kernel": kernel_alone(given.envs, "frame"),
        "pixels to 56×56×3, frame skip 4, step": through_step(given.envs, obs="pixels", frame_skip=4, frame_size=56),
        "features, step": through_step(given.envs, obs="features"),
        "features, kernel": kernel_alone(given.envs, "features"),
    }
    print(f"{machine()}, N={given.envs}, median of {given.repeats}\n")
    print("| MiniCatch | env steps/s on one core | lowest | highest |\n|---|---|---|---|")
    for name, advance in cases.items():
        median, low, high = rate(advance, given.envs, given.seconds, given.repeats)
        print(f"| {name} | {median:,.0f} | {low:,.0f} | {high:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
