"""Wall-clock to a fixed MiniCatch score, from scratch on pixels: gameagent beside Stable-Baselines3 with its defaults.

    python benchmarks/catch_to_score.py --score 15 --seeds 0,1,2 --limit 900

Both see the same frames (56×56, frame skip 4) and one thread each. The score is the mean over the last 100 episodes of
training, played as the learner plays: sampled. The clock runs from the first step; set-up is left out.
`sb3` is PPO("CnnPolicy", 8 envs) and nothing else; `sb3 tuned` has gameagent's number of envs, steps, batch, epochs,
discount and learning rate, and its own network.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SUBJECTS = ("gameagent", "sb3", "sb3 tuned")
SIDE, SKIP, WINDOW = 56, 4, 100


class Reached(Exception):  # noqa: N818 - no error: the goal
    """The score is reached, or time is over."""


class Watch:
    """Score of the last episodes against the clock."""

    def __init__(self, score: float, limit: float) -> None:
        self.score, self.limit = score, limit
        self.recent: deque[float] = deque(maxlen=WINDOW)
        self.began = time.perf_counter()
        self.result: dict[str, Any] = {}

    def look(self, steps: int) -> None:
        """Raises Reached when training has done enough."""
        seconds = time.perf_counter() - self.began
        mean = statistics.fmean(self.recent) if len(self.recent) == WINDOW else float("-inf")
        if mean >= self.score or seconds > self.limit:
            self.result = {"seconds": seconds, "steps": steps, "score": mean, "reached": mean >= self.score}
            raise Reached


def gameagent(seed: int, watch: Watch) -> None:
    """`python run.py +experiment=catch_ppo` with all its parts."""
    import lightning.pytorch as pl

    from gameagent.config import build, compose
    from gameagent.learn.ppo import PPOModule

    class Look(pl.Callback):
        counted = 0

        def on_train_start(self, trainer: Any, module: Any) -> None:
            watch.began = time.perf_counter()

        def on_train_batch_end(self, trainer: Any, module: PPOModule, *args: Any) -> None:
            new = module.collector.episodes - self.counted
            self.counted += new
            watch.recent.extend([e["score"] for e in module.collector.recent][-new:] if new else [])
            watch.look(module.env_steps)

    with TemporaryDirectory() as folder:
        given = ["+experiment=catch_ppo", "trainer.threads=1", "trainer.accelerator=cpu", f"seed={seed}"]
        experiment = build(compose([*given, f"out={folder}", f"env.frame_size={SIDE}", f"env.frame_skip={SKIP}"]))
        policy = experiment.policy.build(experiment.env.obs_space, experiment.env.actions)
        module = experiment.learner.module(env=experiment.env, policy=policy, seed=seed)
        trainer = experiment.trainer.build(
            run_dir=Path(folder), max_epochs=module.max_epochs, loggers=[], callbacks=[Look()]
        )
        trainer.fit(module)


def sb3(seed: int, watch: Watch, tuned: bool) -> None:
    """Stable-Baselines3 on the registered single envs, unmodified."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    import gameagent.envs  # noqa: F401 - registers the ids

    torch.set_num_threads(1)

    class Look(BaseCallback):
        def _on_training_start(self) -> None:
            watch.began = time.perf_counter()

        def _on_step(self) -> bool:
            watch.recent.extend(info["episode"]["r"] for info in self.locals["infos"] if "episode" in info)
            return True

        def _on_rollout_end(self) -> None:
            watch.look(self.num_timesteps)

    def make() -> Any:
        return gymnasium.make("gameagent/MiniCatch-v0", frame_size=SIDE, frame_skip=SKIP)

    envs = make_vec_env(make, n_envs=64 if tuned else 8, seed=seed)
    settings: dict[str, Any] = {}
    if tuned:
        settings = {"n_steps": 32, "batch_size": 256, "n_epochs": 3, "gamma": 0.97, "learning_rate": 5e-4}
        settings["ent_coef"] = 0.01
    model = PPO("CnnPolicy", envs, device="cpu", seed=seed, **settings)
    model.learn(10_000_000, callback=Look())


def child(subject: str, seed: int, score: float, limit: float) -> None:
    """Train once and print the result as JSON."""
    watch = Watch(score, limit)
    with suppress(Reached):
        gameagent(seed, watch) if subject == "gameagent" else sb3(seed, watch, tuned="tuned" in subject)
    print(json.dumps(watch.result))


def main() -> None:
    """Train every subject on every seed, in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--score", type=float, default=15.0)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--limit", type=float, default=900, help="seconds after which a run gives up")
    parser.add_argument("--only", default=",".join(SUBJECTS))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, int(given.seeds), given.score, given.limit)
        return
    print("| implementation | seed | score | seconds | env steps |\n|---|---|---|---|---|")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    for seed in given.seeds.split(","):
        for subject in given.only.split(","):
            command = [sys.executable, __file__, "--child", subject, "--seeds", seed]
            command += ["--score", str(given.score), "--limit", str(given.limit)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{subject} failed:\n{done.stderr}")
            r = json.loads(done.stdout.splitlines()[-1])
            told = f"{r['seconds']:,.0f}" if r["reached"] else f"not in {r['seconds']:,.0f}"
            print(f"| {subject} | {seed} | {r['score']:.1f} | {told} | {r['steps']:,} |", flush=True)


if __name__ == "__main__":
    main()
