"""One process at a time in a run folder; a dead one's lock holds nobody up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gameagent.evaluation.run_lock import LOCK, SILENCE, Lock, Owner, TakenError, alive


def left_by(folder: Path, owner: Owner, seconds_ago: float = 0.0) -> Path:
    """A lock file as another process would leave it."""
    file = folder / LOCK
    file.write_text(json.dumps(owner.to_dict()))
    touched = file.stat().st_mtime - seconds_ago
    os.utime(file, (touched, touched))
    return file


def test_a_second_one_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    with Lock(tmp_path):
        assert alive(tmp_path)
        with pytest.raises(TakenError, match=f"in use by process {os.getpid()}"), Lock(tmp_path):
            pass
    assert not alive(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    script = (
        "import os; from pathlib import Path; from gameagent.evaluation.run_lock import Lock\n"
        f"Lock(Path({str(tmp_path)!r})).__enter__(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert (tmp_path / LOCK).exists()
    assert not alive(tmp_path)
    with Lock(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_a_number_that_another_process_has_now_does_not_count(tmp_path: Path) -> None:
    left_by(tmp_path, replace(Owner.here(), started="1"))
    assert not alive(tmp_path)


def test_on_another_machine_the_age_tells(tmp_path: Path) -> None:
    elsewhere = Owner("elsewhere", 1, "1")
    left_by(tmp_path, elsewhere, SILENCE - 30)
    with pytest.raises(TakenError, match="process 1 on elsewhere"), Lock(tmp_path):
        pass
    left_by(tmp_path, elsewhere, SILENCE + 30)
    with Lock(tmp_path):
        pass


def test_a_requeued_job_of_the_cluster_is_the_same_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    left_by(tmp_path, Owner("elsewhere", 1, "1", "7"))
    with Lock(tmp_path):
        pass
