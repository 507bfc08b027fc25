"""kill -9 at a random moment of PPO and of SFT on MiniCatch's frames, then `run.py job.resume=RUN`: the same bits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

SMALL = ["env.num_envs=8", "trainer.threads=1", "trainer.accelerator=cpu", "callbacks.checkpoint.every_seconds=0"]
PPO = ["+experiment=catch_ppo", *SMALL, "learner.rollout_steps=16", "learner.total_steps=3000"]
SFT = ["+experiment=catch_demo", "job=train", "learner=sft", *SMALL, "learner.epochs=6", "learner.keep=last"]


def start(repository: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(repository / "run.py"), *words]
    return subprocess.Popen(command, env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    return out + err


def killed_in(process: subprocess.Popen[str], checkpoint: Path, seconds: float) -> None:
    """Kill -9 that many seconds after a checkpoint newer than any there is now."""
    before = checkpoint.stat().st_ino if checkpoint.exists() else None
    while not checkpoint.exists() or checkpoint.stat().st_ino == before:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    time.sleep(seconds)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was over before it was killed"


@pytest.fixture(scope="module")
def demonstrations(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collected")
    finish(start(repository, "+experiment=catch_demo", "job=collect", "job.episodes=2", f"out={folder}"))
    return folder


@pytest.mark.timeout(600)
@pytest.mark.parametrize("learner", ["ppo", "sft"])
def test_killed_and_resumed_from_the_command_line_ends_with_the_same_weights(
    learner: str, repository: Path, demonstrations: Path, tmp_path: Path
) -> None:
    words = PPO if learner == "ppo" else [*SFT, f"learner.data={demonstrations}"]
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    finish(start(repository, *words, f"out={alone}"))
    moment = random.Random(f"{learner} at a random moment").uniform(0.0, 0.7)
    killed_in(start(repository, *words, f"out={killed}"), killed / "checkpoints" / "last.ckpt", moment)
    assert not (killed / "policy.safetensors").exists()
    told = finish(start(repository, f"job.resume={killed}"))
    assert "resuming from" in told
    expected, found = (load_file(run / "policy.safetensors") for run in (alone, killed))
    assert expected.keys() == found.keys()
    assert all(bool((expected[name] == found[name]).all()) for name in expected)
