"""A run that is killed at any moment and resumed ends as one that was left alone, bit for bit."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

TOTAL = 3200
"""A hundred iterations."""


def child(repository: Path, run: Path, *args: object) -> subprocess.Popen[str]:
    script = repository / "tests" / "learn" / "train_child.py"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(repository), str(repository / "src"), *sys.path])}
    return subprocess.Popen(
        [sys.executable, str(script), str(run), *map(str, args)],
        cwd=run.parent,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    return out + err


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


def written(path: Path) -> tuple[int, int] | None:
    """Tells one version of a file from the next; None where there is none (yet, or between two renames)."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def metrics(run: Path) -> list[dict[str, str]]:
    """Rows without the clock's columns."""
    with (run / "metrics.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if not k.startswith("time/")} for row in csv.DictReader(file)]


@pytest.mark.timeout(600)
def test_killed_run_ends_like_one_left_alone(repository: Path, tmp_path: Path) -> None:
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    finish(child(repository, alone, TOTAL))
    last = killed / "checkpoints" / "last.ckpt"
    for attempt in range(2):
        before = written(last)
        process = child(repository, killed, TOTAL, 0.05)  # a hundred iterations take 5 s at least
        while written(last) in (None, before):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        time.sleep(random.Random(attempt).uniform(0.0, 0.5))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it was over before it was killed"
        assert not (killed / "policy.safetensors").exists()
    finish(child(repository, killed, TOTAL))
    expected, found = (load_file(run / "policy.safetensors") for run in (alone, killed))
    assert all(bool((expected[name] == found[name]).all()) for name in expected)
    assert metrics(alone) == metrics(killed)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_finishes_the_iteration_and_saves_it(repository: Path, tmp_path: Path, signum: int) -> None:
    run = tmp_path / "run"
    process = child(repository, run, 10**9, 0.05)
    wait_for(run / "checkpoints" / "last.ckpt", process)
    process.send_signal(signum)
    told = finish(process, 128 + signum)
    steps = int(metrics(run)[-1]["env_steps"])
    assert f"stopped at {steps:,} steps" in told
    assert f"job.resume={run}" in told
    from gameagent.jobs.train import read_checkpoint

    assert read_checkpoint(run / "checkpoints" / "last.ckpt")["env_steps"] == steps
    assert not (run / "policy.safetensors").exists()


def test_second_signal_leaves_at_once(repository: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = child(repository, run, 10**9, 5.0)
    wait_for(run / "checkpoints" / "last.ckpt", process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    finish(process, 130)
    assert time.monotonic() - began < 4.5
    assert (run / "checkpoints" / "last.ckpt").exists()
