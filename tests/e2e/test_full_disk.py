"""Training whose files can't grow any more: one line that says so, whichever logger it is, and no traceback."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 6 * 1024
"""Bytes that a file may have: more than config.yaml has, less than the logs of 300 iterations."""


def limit_files() -> None:
    """In the child: the kernel refuses writes beyond the limit, as a full disk does."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


@pytest.mark.parametrize("logger", ["csv", "tensorboard"])
def test_a_logger_that_cannot_write_ends_the_run_with_one_line(repository: Path, tmp_path: Path, logger: str) -> None:
    run = tmp_path / "run"
    words = ["+experiment=cartpole_ppo", "env.num_envs=2", "learner.rollout_steps=4", "learner.total_steps=2400"]
    words += [f"logger={logger}", "callbacks=[stop]", "trainer.threads=1", "trainer.accelerator=cpu", f"out={run}"]
    done = subprocess.run(
        [sys.executable, str(repository / "run.py"), *words],
        capture_output=True,
        text=True,
        preexec_fn=limit_files,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stderr.strip().splitlines()
    assert f"the {logger} logger cannot write in {run}" in lines[-1]
    assert "File too large" in lines[-1]
    assert f"job.resume={run}" in lines[-1]
    assert "Traceback" not in done.stderr
