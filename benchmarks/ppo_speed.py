"""Steps per second of PPO on pixels, end to end: gameagent beside Stable-Baselines3, same network, envs, batch, epochs.

    python benchmarks/ppo_speed.py --repeats 5; python benchmarks/ppo_speed.py --threads 1 --only gameagent,sb3

Every figure is the median over processes of their own, run in turns, so that a busy moment of the machine meets all
alike. `malloc` runs keep large blocks in the process instead of giving them back to the kernel after every minibatch:
most of the time of Stable-Baselines3 on a CPU goes into having them paged in again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ENVS, STEPS, MINIBATCH, EPOCHS, SIDE, WIDTH, ACTIONS = 16, 128, 512, 4, 112, 256, 6
MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_TOP_PAD_": "268435456"}
CPU_CLOCK = "PPO_SPEED_CPU_CLOCK"
SUBJECTS = ("gameagent", "gameagent bf16", "gameagent malloc", "sb3", "sb3 malloc")
PEER = "sample-factory"


def noise(channels_first: bool = False) -> Any:
    """An env that costs nothing: 16 noise frames in turn, episodes of 200 steps."""
    import gymnasium
    import numpy as np

    shape = (3, SIDE, SIDE) if channels_first else (SIDE, SIDE, 3)

    class Noise(gymnasium.Env):  # type: ignore[misc, type-arg]
        """See `noise`."""

        observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        action_space = gymnasium.spaces.Discrete(ACTIONS)
        render_mode = None

        def __init__(self) -> None:
            self.frames = np.random.default_rng(0).integers(0, 256, (16, *shape), np.uint8)
            self.count = 0

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            """Start an episode."""
            self.count = 0
            return self.frames[0], {}

        def step(self, action: int) -> Any:
            """Next frame, reward 1."""
            self.count += 1
            return self.frames[self.count % 16], 1.0, self.count >= 200, False, {}

    return Noise()


def register() -> str:
    """Register `noise` with Gymnasium. Gives its id."""
    import gymnasium

    gymnasium.register("Noise-v0", entry_point=lambda render_mode=None: noise())
    return "Noise-v0"


def convolutions() -> Any:
    """The encoder that everybody trains, in plain torch: (B, 3, 112, 112) -> (B, WIDTH)."""
    from torch import nn

    stack = [nn.Conv2d(3, 32, 8, 8), nn.Conv2d(32, 64, 3, 2, padding=1), nn.Conv2d(64, 64, 3, 2, padding=1)]
    layers = [layer for conv in stack for layer in (conv, nn.ReLU())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4 * 4, WIDTH), nn.ReLU())


class Clock:
    """Times of the iterations' ends, the first of which only warms up."""

    def __init__(self, iterations: int) -> None:
        self.now = time.process_time if os.environ.get(CPU_CLOCK) else time.perf_counter
        self.iterations, self.ends = iterations, [self.now()]

    def tick(self) -> None:
        """An iteration is over."""
        self.ends.append(self.now())

    def steps_per_second(self) -> float:
        """Over all but the first iteration."""
        return ENVS * STEPS * self.iterations / (self.ends[self.iterations + 1] - self.ends[1])


def gameagent(iterations: int, threads: int, bf16: bool, micro: int | None) -> float:
    """This project, as `job=train` runs it."""
    import tempfile

    import lightning.pytorch as pl
    import torch

    from gameagent.envs.gym import GymEnv
    from gameagent.learn.loggers import Csv
    from gameagent.learn.ppo import PPO
    from gameagent.learn.trainer import Accelerator, Precision, Trainer
    from gameagent.nets.encoders import Tiny
    from gameagent.policies.actor_critic import ActorCritic

    clock = Clock(iterations)

    class Ticks(pl.Callback):
        def on_train_batch_end(self, *args: Any) -> None:
            clock.tick()

    torch.manual_seed(0)
    env = GymEnv(id=register(), num_envs=ENVS)
    learner = PPO(
        total_steps=ENVS * STEPS * (iterations + 1),
        rollout_steps=STEPS,
        minibatch_size=MINIBATCH,
        epochs=EPOCHS,
        advantage_norm="minibatch",  # type: ignore[arg-type]
        micro_batch_size=micro,
    )
    policy = ActorCritic(encoder=Tiny(width=WIDTH)).build(env.obs_space, env.actions)
    module = learner.module(env=env, policy=policy, seed=0)
    precision = Precision.bf16 if bf16 else Precision.fp32
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder)
        logger = Csv().build(run_dir=run_dir, name="speed", config={}, resume_step=None)
        spec = Trainer(accelerator=Accelerator.cpu, precision=precision, threads=threads)
        spec.build(run_dir=run_dir, max_epochs=module.max_epochs, loggers=[logger], callbacks=[Ticks()]).fit(module)
    return clock.steps_per_second()


def sb3(iterations: int, threads: int) -> float:
    """Stable-Baselines3 with its defaults otherwise."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Encoder(BaseFeaturesExtractor):
        def __init__(self, space: Any) -> None:
            super().__init__(space, WIDTH)
            self.layers = convolutions()

        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            return self.layers(frames)  # type: ignore[no-any-return]

    clock = Clock(iterations)

    class Ticks(BaseCallback):
        started = False

        def _on_rollout_start(self) -> None:
            if self.started:
                clock.tick()
            self.started = True

        def _on_training_end(self) -> None:
            clock.tick()

        def _on_step(self) -> bool:
            return True

    name = register()
    envs = DummyVecEnv([lambda: gymnasium.make(name)] * ENVS)
    policy = {"features_extractor_class": Encoder, "share_features_extractor": False, "net_arch": []}
    torch.set_num_threads(threads)
    model = PPO(
        "CnnPolicy", envs, n_steps=STEPS, batch_size=MINIBATCH, n_epochs=EPOCHS, device="cpu", policy_kwargs=policy
    )
    clock.ends = [clock.now()]
    model.learn(ENVS * STEPS * (iterations + 1), callback=Ticks())
    return clock.steps_per_second()


def measure(subject: str, threads: int, options: argparse.Namespace) -> float:
    """Steps per second in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    environment |= MALLOC if "malloc" in subject else {}
    environment |= {CPU_CLOCK: "1"} if options.cpu else {}
    sizes = ["--threads", str(threads), "--iterations", str(options.iterations)]
    if subject == PEER:
        command = [options.sample_factory, str(Path(__file__).parent / "peers" / "sf_serial.py"), *sizes]
    else:
        command = [sys.executable, __file__, "--child", subject, *sizes]
        command += ["--micro", str(options.micro)] if options.micro else []
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{subject} failed:\n{done.stderr}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=2, help="measured iterations a process")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", default=",".join(SUBJECTS))
    parser.add_argument("--micro", type=int, default=None, help="micro_batch_size; default: gameagent's own choice")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds instead of wall-clock: for a busy machine")
    parser.add_argument("--sample-factory", metavar="PYTHON", help="interpreter that has sample-factory: one more row")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        iterations, threads = options.iterations, int(options.threads)
        name = options.child
        speed = (
            sb3(iterations, threads)
            if name.startswith("sb3")
            else gameagent(iterations, threads, "bf16" in name, options.micro)
        )
        print(json.dumps(speed))
        return
    subjects = options.only.split(",") + ([PEER] if options.sample_factory else [])
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, {ENVS} envs × {STEPS} steps\n")
    print("| implementation | threads | steps/s (median) | lowest | highest | × SB3 |\n|---|---|---|---|---|---|")
    for threads in map(int, options.threads.split(",")):
        found: dict[str, list[float]] = {name: [] for name in subjects}
        for _ in range(options.repeats):
            for name in subjects:
                found[name].append(measure(name, threads, options))
        base = statistics.median(found["sb3"]) if "sb3" in found else float("nan")
        for name, speeds in found.items():
            middle = statistics.median(speeds)
            row = (
                name,
                threads,
                f"{middle:,.0f}",
                f"{min(speeds):,.0f}",
                f"{max(speeds):,.0f}",
                f"{middle / base:.2f}",
            )
            print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
