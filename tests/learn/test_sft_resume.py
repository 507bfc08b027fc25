"""A cloning run that is killed at any moment and taken up ends with the same weights, bit for bit.

Killed for real: the training runs in a process of its own, which sends itself SIGKILL before some optimiser step.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lightning.pytorch as pl
import pytest
from safetensors.torch import load_file

from gameagent.component import component
from gameagent.envs.mini.env import MiniEnv, Observe
from gameagent.experiment import Experiment
from gameagent.jobs.collect import Collect
from gameagent.jobs.train import Train
from gameagent.learn.callbacks import Checkpoint
from gameagent.learn.loggers import Csv
from gameagent.learn.sft import SFT
from gameagent.learn.trainer import CallbackSpec, Trainer
from gameagent.nets.encoders import Mlp
from gameagent.policies.actor_critic import ActorCritic


@component
class Kill(CallbackSpec):
    """SIGKILL to oneself before an optimiser step."""

    step: int = 0
    """Counted from 0."""

    def build(self, *, run_dir: Path) -> pl.Callback:
        return KillCallback(self.step)


class KillCallback(pl.Callback):
    def __init__(self, step: int) -> None:
        self.left = step

    def on_before_optimizer_step(self, trainer: pl.Trainer, *rest: object) -> None:
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def experiment(out: str, data: str, resume: str | None = None, kill: int | None = None) -> Experiment:
    """A training of four passes over 8 batches, saved every five steps and after each pass."""
    killer = {} if kill is None else {"kill": Kill(step=kill)}
    return Experiment(
        out=out,
        env=MiniEnv(game="catch", obs=Observe.features),
        policy=ActorCritic(encoder=Mlp(hidden=(16,))),
        learner=SFT(data=data, epochs=4, batch_size=128, chunk=5, val_fraction=0.5, lr=0.01),
        job=Train(resume=resume),
        trainer=Trainer(threads=1),
        logger={"csv": Csv()},
        callbacks={"checkpoint": Checkpoint(every_seconds=0)} | killer,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two episodes of the built-in expert, 1,000 frames each; one is held out."""
    folder = tmp_path_factory.mktemp("demos")
    env = MiniEnv(game="catch", obs=Observe.features)
    policy = ActorCritic(encoder=Mlp(hidden=(16,)))
    Experiment(out=str(folder), env=env, policy=policy, job=Collect(episodes=2), trainer=Trainer(threads=1)).run()
    return str(folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, data: str) -> Path:
    """Run folder of a training that nobody killed."""
    folder = tmp_path_factory.mktemp("whole")
    experiment(str(folder), data).run()
    return folder


def killed(out: Path, data: str, step: int, resume: str | None = None) -> None:
    """Train in another process until it dies before optimiser step `step` of that process."""
    code = "import sys; from tests.learn.test_sft_resume import experiment; experiment(*eval(sys.argv[1])).run()"
    arguments = repr((str(out), data, resume, step))
    repository = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(repository / "src"), str(repository)])}
    done = subprocess.run([sys.executable, "-c", code, arguments], env=environment, capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def rows(folder: Path) -> list[dict[str, str]]:
    """metrics.csv without the times."""
    head, *lines = (folder / "metrics.csv").read_text().splitlines()
    made = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
    return [{k: v for k, v in row.items() if not k.startswith("time/")} for row in made]


# The first comes before any checkpoint, the third kills the resumed run as well.
@pytest.mark.parametrize("steps", [(3,), (17,), (20, 9)], ids=str)
def test_killed_and_taken_up_ends_with_the_same_weights(
    tmp_path: Path, data: str, undisturbed: Path, steps: tuple[int, ...]
) -> None:
    out = tmp_path / "run"
    for again, step in enumerate(steps):
        killed(out, data, step, str(out) if again else None)
    assert not (out / "policy.safetensors").exists()
    experiment(str(out), data, resume=str(out)).run()
    ours, theirs = (load_file(folder / "policy.safetensors") for folder in (out, undisturbed))
    assert ours.keys() == theirs.keys()
    assert all((ours[name] == theirs[name]).all() for name in ours)
    assert rows(out) == rows(undisturbed)
