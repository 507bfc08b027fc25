"""What Lightning's Trainer costs cloning: a bare loop and the Trainer on the same samples, in turns.

    python benchmarks/sft_overhead.py --repeats 5

The bare loop knows nothing of Lightning; network, loss, optimiser and order of samples are the same, and both must end
with the same weights. The Trainer comes bare, and with the loggers and callbacks that runs have by default. CPU time of
this process is compared, which other programs on the machine hardly move.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
from torch import Tensor

from gameagent.contract import ActionSpace, ObsSpace
from gameagent.data.datasets import FrameDataset
from gameagent.data.sampler import BatchSampler
from gameagent.learn.callbacks import Checkpoint, Progress, StopGently
from gameagent.learn.loggers import Csv, TensorBoard
from gameagent.learn.sft import SFT, SFTModule
from gameagent.learn.trainer import Accelerator, Trainer
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.base import Policy

ACTIONS = ActionSpace(move_labels=("left", "stay", "right"), act_labels=("wait", "dash"))
SPACES = {"pixels": ObsSpace(frame=(56, 56, 3)), "features": ObsSpace(features=(20,))}
SAMPLES = {"pixels": 4_000, "features": 20_000}
EPOCHS = 4

Run = Callable[[SFT, FrameDataset, Policy], None]


def samples(kind: str) -> FrameDataset:
    """Random observations and labels of one long episode."""
    rng, count, space = np.random.default_rng(0), SAMPLES[kind], SPACES[kind]
    parts = space.empty(count)
    for part in parts.values():
        part[:] = rng.integers(0, 256, part.shape) if part.dtype == np.uint8 else rng.normal(size=part.shape)
    tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
    labels = torch.from_numpy(rng.integers(0, ACTIONS.n, count))
    return FrameDataset(space, ACTIONS, tensors, labels, np.zeros(count, np.int64))


def bare(learner: SFT, data: FrameDataset, policy: Policy) -> None:
    """Plain torch, and without the check for NVML that Lightning turns on for the whole process when it is imported."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "0"
    prepared = policy.prepare(data.parts)
    optimizer = torch.optim.AdamW(policy.actor_parameters(), learner.lr, weight_decay=0.0, fused=True)
    sampler, total = BatchSampler(len(data), learner.batch_size, 0), torch.zeros(())
    while sampler.epoch < learner.epochs:
        rows = torch.from_numpy(sampler.next())
        optimizer.zero_grad()
        losses = learner.loss(policy.distribution({n: x[rows] for n, x in prepared.items()}), data.labels[rows])
        losses.mean().backward()
        optimizer.step()
        total += losses.detach().sum()


def trainer(learner: SFT, data: FrameDataset, policy: Policy) -> None:
    """The Trainer alone."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    spec = Trainer(accelerator=Accelerator.cpu, threads=1)
    module = SFTModule(learner, data, policy=policy, seed=0)
    with TemporaryDirectory() as folder:
        spec.build(run_dir=Path(folder), max_epochs=module.max_epochs, loggers=[], callbacks=[]).fit(module)


def default_run(learner: SFT, data: FrameDataset, policy: Policy) -> None:
    """The Trainer with a run's default loggers and callbacks, last checkpoint included."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    spec = Trainer(accelerator=Accelerator.cpu, threads=1)
    module = SFTModule(learner, data, policy=policy, seed=0)
    with TemporaryDirectory() as folder:
        run_dir = Path(folder)
        about = {"run_dir": run_dir, "name": "x", "config": {}, "resume_step": None}
        loggers = [Csv().build(**about), TensorBoard().build(**about)]
        callbacks = [c.build(run_dir=run_dir) for c in (Checkpoint(), Progress(), StopGently())]
        made = spec.build(run_dir=run_dir, max_epochs=module.max_epochs, loggers=loggers, callbacks=callbacks)
        made.fit(module)


def measure(run: Run, kind: str, data: FrameDataset) -> tuple[float, Tensor]:
    """CPU seconds and final weights."""
    learner = SFT(epochs=EPOCHS, val_fraction=0)
    torch.manual_seed(0)
    policy = ActorCritic().build(SPACES[kind], ACTIONS)
    began = time.process_time()
    run(learner, data, policy)
    return time.process_time() - began, torch.cat([p.detach().flatten() for p in policy.parameters()])


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kind", default="pixels,features")
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs: tuple[Run, ...] = (bare, trainer, default_run)
    print("| SFT on | bare loop, CPU s | Trainer, ratio | with default loggers and callbacks, ratio | same weights |")
    print("|---|---|---|---|---|")
    for kind in options.kind.split(","):
        data = samples(kind)
        for run in runs:
            measure(run, kind, data)
        rounds = [[measure(run, kind, data) for run in runs] for _ in range(options.repeats)]
        first = statistics.median(r[0][0] for r in rounds)
        # Of neighbours in time: what else the machine does weighs on both.
        others = (statistics.median(r[i][0] / r[0][0] for r in rounds) for i in range(1, len(runs)))
        same = all(torch.equal(r[0][1], other[1]) for r in rounds for other in r[1:])
        ratios = " | ".join(f"{ratio:.3f}" for ratio in others)
        print(f"| {kind} | {first:.2f} | {ratios} | {same} |", flush=True)


if __name__ == "__main__":
    main()
