"""CartPole-v1 by PPO: mean return of the final policy (argmax, 100 held-out episodes) for some seeds. The bar is 475.

python benchmarks/cartpole.py --seeds 0,1,2; python benchmarks/cartpole.py learner.lr=3e-4
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np

from gameagent.config import build, compose
from gameagent.evaluation.protocol import play
from gameagent.policies.actors import PolicyActor
from gameagent.policies.bundle import load_policy
from gameagent.policies.samplers import Argmax

BAR = 475
EPISODES = 100
HELD_OUT = 2_000_000
"""Seed of the first evaluation episode, as `job=evaluate` has it."""


def run(seed: int, overrides: list[str]) -> tuple[float, float, float, float]:
    """Train and evaluate one seed: mean and lowest return, environment steps, training seconds."""
    with TemporaryDirectory() as folder:
        given = [
            "+experiment=cartpole_ppo",
            "trainer.threads=1",
            "trainer.accelerator=cpu",
            f"seed={seed}",
            f"out={folder}",
        ]
        experiment = build(compose([*given, *overrides]))
        began = time.perf_counter()
        result = experiment.run()
        seconds = time.perf_counter() - began
        actor = PolicyActor(load_policy(Path(folder)), Argmax())
        env = experiment.env.make(num_envs=20, seed=HELD_OUT)
        returns = [e.episode_return for e in play(env, actor, range(HELD_OUT, HELD_OUT + EPISODES))]
        env.close()
    return float(np.mean(returns)), float(np.min(returns)), result["env_steps"], seconds


def main() -> None:
    """Train, evaluate and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("overrides", nargs="*", help="more key=value")
    options = parser.parse_args()
    print(f"| seed | mean return | lowest | ≥ {BAR} | steps | seconds |\n|---|---|---|---|---|---|")
    for seed in map(int, options.seeds.split(",")):
        mean, lowest, steps, seconds = run(seed, options.overrides)
        told = "yes" if mean >= BAR else "no"
        print(f"| {seed} | {mean:.1f} | {lowest:.0f} | {told} | {steps:,.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
