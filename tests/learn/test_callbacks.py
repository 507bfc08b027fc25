"""Checkpoints are whole or absent, the one before is kept, and progress says what it must."""

from __future__ import annotations

import errno
import io
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from rich.console import Console
from tests.learn.fakes import FakeEnv, train

from gameagent.errors import UserError
from gameagent.learn.callbacks import Checkpoint, CheckpointCallback, ProgressCallback, find_checkpoint
from gameagent.learn.ppo import PPO

SPEC = PPO(total_steps=160, rollout_steps=8, minibatch_size=32, epochs=1)


def saved_steps(path: Path) -> int:
    return int(torch.load(path, weights_only=True)["env_steps"])


def run(tmp_path: Path, **fields: Any) -> None:
    callback = Checkpoint(**fields).build(run_dir=tmp_path)
    train(SPEC, FakeEnv(), callbacks=[callback], enable_checkpointing=True)


def test_last_and_previous_are_kept_and_no_temporary_file(tmp_path: Path) -> None:
    run(tmp_path, every_epochs=2, every_seconds=0)
    assert saved_steps(tmp_path / "checkpoints" / "last.ckpt") == 160
    assert saved_steps(tmp_path / "checkpoints" / "previous.ckpt") == 128
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_the_end_is_saved_though_it_is_not_time_yet(tmp_path: Path) -> None:
    run(tmp_path, every_seconds=1e6)
    assert saved_steps(tmp_path / "checkpoints" / "last.ckpt") == 160
    assert not (tmp_path / "checkpoints" / "previous.ckpt").exists()


def test_death_between_two_renames_leaves_the_one_before(tmp_path: Path) -> None:
    assert find_checkpoint(tmp_path) is None
    run(tmp_path, every_seconds=0)
    (tmp_path / "checkpoints" / "last.ckpt").unlink()
    assert find_checkpoint(tmp_path) == tmp_path / "checkpoints" / "previous.ckpt"


def test_full_disk_says_so_and_leaves_the_last_good_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, every_seconds=0)

    def full(self: pl.Trainer, path: Path, **kwargs: Any) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.Trainer, "save_checkpoint", full)
    with pytest.raises(UserError, match=r"No space left on device.*last good one is .*last\.ckpt"):
        run(tmp_path, every_seconds=0)
    assert saved_steps(tmp_path / "checkpoints" / "last.ckpt") == 160
    assert not (tmp_path / "checkpoints" / "writing.ckpt").exists()


def test_a_folder_that_cannot_be_made_is_noticed_before_training(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(UserError, match=r"cannot make the folder.*out=PATH"):
        run(tmp_path)


def test_checkpoint_holds_the_policy_in_the_form_that_loading_reads(tmp_path: Path) -> None:
    from gameagent.policies.bundle import load_policy

    run(tmp_path, every_seconds=0)
    policy = load_policy(tmp_path)
    assert policy.action_space.sizes == (2, 2)


def progress(tmp_path: Path, terminal: bool, capsys: pytest.CaptureFixture[str], every: float = 1e-6) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=150)
    callback = ProgressCallback(every, console)
    train(SPEC, FakeEnv(), callbacks=[callback])
    return out.getvalue() if terminal else capsys.readouterr().err


def test_progress_in_a_terminal_is_a_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = progress(tmp_path, True, capsys)
    assert "160/160" in shown
    assert "steps/s" in shown
    assert "return 5" in shown


def test_progress_elsewhere_is_a_line_now_and_then(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in progress(tmp_path, False, capsys).splitlines() if "steps" in line]
    assert len(lines) == 5
    assert lines[-1].startswith("160/160 steps")
    assert "return 5  score 50" in lines[-1]
    assert not [line for line in progress(tmp_path, False, capsys, every=100).splitlines() if "steps  " in line]


def test_checkpoint_callback_runs_after_all_others() -> None:
    trainer = pl.Trainer(callbacks=[CheckpointCallback(Path("x"), 1, 0), ProgressCallback(1, Console())], logger=False)
    assert isinstance(trainer.callbacks[-1], CheckpointCallback)  # type: ignore[attr-defined]
