"""What Lightning's Trainer costs PPO: the same module driven by a bare loop and by the Trainer, in turns.

    python benchmarks/lightning_overhead.py --repeats 5; python benchmarks/lightning_overhead.py --kind features

CPU time of this process is compared, which other programs on the machine hardly move. Both must end with the same
weights.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from ppo_speed import register
from torch import Tensor

from gameagent.envs.gym import GymEnv
from gameagent.learn.ppo import PPO, PPOModule
from gameagent.learn.trainer import Accelerator, Trainer
from gameagent.policies.actor_critic import ActorCritic

NOISE = register()


class BareModule(PPOModule):
    """`PPOModule` without a Trainer: its own optimiser, its own backward, no hooks."""

    def drive(self, iterations: int) -> None:
        """The bare loop."""
        self._trainer = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device("cpu")))  # type: ignore[assignment]
        self.setup("fit")
        self.plain = self.configure_optimizers()
        for _ in range(iterations):
            self.training_step(0, 0)
        self.teardown("fit")

    @property
    def trainer(self) -> Any:
        """Stands for the Trainer."""
        return self._trainer

    def manual_backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Without Lightning's precision plug-in."""
        loss.backward()

    def write_metrics(self, metrics: dict[str, float]) -> None:
        """Nowhere."""

    def _adam(self) -> Any:
        return self.plain


def make(kind: str) -> tuple[GymEnv, PPO]:
    """Environment and learner of a kind of work."""
    if kind == "features":
        env = GymEnv(id="CartPole-v1", num_envs=16)
        return env, PPO(total_steps=16 * 128 * 20, rollout_steps=128, minibatch_size=256, epochs=4)
    env = GymEnv(id=NOISE, num_envs=16)
    return env, PPO(total_steps=16 * 128 * 2, rollout_steps=128, minibatch_size=512, epochs=4)


def run(kind: str, bare: bool) -> tuple[float, Tensor]:
    """CPU seconds and final weights."""
    env, learner = make(kind)
    torch.manual_seed(0)
    policy = ActorCritic().build(env.obs_space, env.actions)
    began = time.process_time()
    if bare:
        module: PPOModule = BareModule(learner, env=env, policy=policy, seed=0)
        module.drive(module.max_epochs)  # type: ignore[attr-defined]
    else:
        module = learner.module(env=env, policy=policy, seed=0)
        with TemporaryDirectory() as folder:
            spec = Trainer(accelerator=Accelerator.cpu, threads=1)
            trainer = spec.build(run_dir=Path(folder), max_epochs=module.max_epochs, loggers=[], callbacks=[])
            trainer.fit(module)
    seconds = time.process_time() - began
    return seconds, torch.cat([p.detach().flatten() for p in policy.parameters()])


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kind", default="pixels,features")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| PPO on | bare loop, CPU s | Trainer, CPU s | ratio | same weights |\n|---|---|---|---|---|")
    for kind in options.kind.split(","):
        run(kind, True), run(kind, False)
        pairs = [(run(kind, True), run(kind, False)) for _ in range(options.repeats)]
        bare, lightning = (statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
        same = all(torch.equal(a[1], b[1]) for a, b in pairs)
        print(f"| {kind} | {bare:.2f} | {lightning:.2f} | {lightning / bare:.3f} | {same} |", flush=True)


if __name__ == "__main__":
    main()
