"""What happens beside training: `Checkpoint` keeps a run resumable, `Progress` shows it, `StopGently` ends it in order.

python run.py callbacks.checkpoint.every_seconds=60
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import lightning.pytorch as pl
from pydantic import Field
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from gameagent.component import component
from gameagent.errors import UserError
from gameagent.learn.base import LearnerModule
from gameagent.learn.trainer import CallbackSpec

FOLDER = "checkpoints"
"""Of a run folder."""


def find_checkpoint(run_dir: Path) -> Path | None:
    """The checkpoint that a run goes on from, or None where it has none yet.

    The last one; or the one before it, should the process have died in the instant between two renames.
    """
    paths = (run_dir / FOLDER / name for name in ("last.ckpt", "previous.ckpt"))
    return next((path for path in paths if path.is_file()), None)


@component
class Checkpoint(CallbackSpec):
    """Writes checkpoints/last.ckpt at the end of an epoch (PPO: an iteration), and keeps the one before it."""

    every_epochs: Annotated[int, Field(gt=0)] = 1
    """Epochs from one checkpoint to the next."""
    every_seconds: Annotated[float, Field(ge=0)] = 30.0
    """Seconds that must have passed since the last one: how much work a crash may cost. 0: no such limit."""

    def build(self, *, run_dir: Path) -> pl.Callback:
        """The callback."""
        return CheckpointCallback(run_dir / FOLDER, self.every_epochs, self.every_seconds)


class CheckpointCallback(pl.callbacks.Checkpoint):
    """See `Checkpoint`. Lightning calls callbacks of this base last, so that all others' state is final."""

    def __init__(self, folder: Path, every_epochs: int, every_seconds: float) -> None:
        self.folder, self.every_epochs, self.every_seconds = folder, every_epochs, every_seconds
        self._written_at = time.monotonic()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Find out now, not after the first iteration, whether the folder can be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise UserError(
                f"cannot make the folder {self.folder} ({e.strerror}); type out=PATH to write elsewhere"
            ) from e

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Save where it is time to, and always at the end."""
        done = trainer.current_epoch + 1
        last = trainer.should_stop or done == trainer.max_epochs
        due = done % self.every_epochs == 0 and time.monotonic() - self._written_at >= self.every_seconds
        if last or due:
            self.save(trainer)

    def save(self, trainer: pl.Trainer) -> None:
        """Write last.ckpt whole or not at all: first under another name, then renamed, the former one kept beside it.

        Raises:
            UserError: the disk is full or the folder read-only; what was there is untouched.
        """
        last, fresh = self.folder / "last.ckpt", self.folder / "writing.ckpt"
        try:
            trainer.save_checkpoint(fresh)
            _sync(fresh)
            if last.exists():
                last.replace(self.folder / "previous.ckpt")
            fresh.replace(last)
            _sync(self.folder)
        except OSError as e:
            fresh.unlink(missing_ok=True)
            kept = find_checkpoint(self.folder.parent)
            where = f"the last good one is {kept}" if kept else "there is none yet"
            raise UserError(f"cannot write a checkpoint in {self.folder} ({e.strerror or e}); {where}") from e
        self._written_at = time.monotonic()


def _sync(path: Path) -> None:
    """Have the system put a file or a folder's entries on the disk before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@component
class Progress(CallbackSpec):
    """Shows steps done, steps/s, time left and results: a live bar in a terminal, now and then a line elsewhere."""

    every_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Seconds between two lines where the output is no terminal."""

    def build(self, *, run_dir: Path) -> pl.Callback:
        """The callback."""
        return ProgressCallback(self.every_seconds, Console(stderr=True))


SHOWN = {"train/return": "return", "train/score": "score", "sft/val_accuracy": "accuracy", "sft/val_loss": "loss"}
"""Metrics that progress shows, and what it calls them."""


class ProgressCallback(pl.Callback):
    """See `Progress`."""

    def __init__(self, every_seconds: float, console: Console) -> None:
        self.every_seconds, self.console = every_seconds, console
        self._bar: Bar | None = None
        self._task = TaskID(0)
        self._began = self._shown_at = 0.0
        self._began_at = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock, and in a terminal the bar."""
        assert isinstance(pl_module, LearnerModule)
        done, total, unit = pl_module.progress()
        self._began = self._shown_at = time.monotonic()
        self._began_at = done
        if self.console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TextColumn("{task.fields[rate]}"))
            self._bar = Bar(*columns, TimeRemainingColumn(), TextColumn("{task.fields[results]}"), console=self.console)
            self._task = self._bar.add_task("", total=total, completed=done, rate="", results="")
            self._bar.start()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Show where things stand."""
        assert isinstance(pl_module, LearnerModule)
        now = time.monotonic()
        if self._bar is None and now - self._shown_at < self.every_seconds:
            return
        done, total, unit = pl_module.progress()
        speed = (done - self._began_at) / max(now - self._began, 1e-9)
        results = "  ".join(f"{SHOWN[n]} {x:.4g}" for n, x in pl_module.last_metrics.items() if n in SHOWN)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, rate=f"{speed:,.0f} {unit}/s", results=results)
            return
        self._shown_at = now
        left = (total - done) / speed if speed > 0 else 0
        print(f"{done:,}/{total:,} {unit}  {speed:,.0f}/s  {left:,.0f} s left  {results}", file=sys.stderr, flush=True)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """The same where training failed: Lightning tears nothing down then."""
        self.teardown(trainer, pl_module, "fit")


@component
class StopGently(CallbackSpec):
    """On the first Ctrl-C or SIGTERM finishes the iteration and writes a checkpoint; on the second leaves at once."""

    def build(self, *, run_dir: Path) -> pl.Callback:
        """The callback."""
        return StopCallback()


class StopCallback(pl.Callback):
    """See `StopGently`."""

    signum: int | None = None
    """The signal that asked to stop, once one did."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Take the signals over from Lightning, whose handler for SIGTERM ends the process as if all were well.

        Only the main thread may; a run in another one is stopped by whoever owns the process.
        """
        if threading.current_thread() is threading.main_thread():
            self._before = {n: signal.signal(n, self._handle) for n in (signal.SIGINT, signal.SIGTERM)}

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Between two epochs is where a learner can stop."""
        if self.signum is not None:
            trainer.should_stop = True

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """The same where training failed: Lightning tears nothing down then."""
        self.teardown(trainer, pl_module, "fit")

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signum is not None:
            os._exit(128 + number)
        self.signum = number
        print("stopping after this iteration; press Ctrl-C again to leave at once", file=sys.stderr, flush=True)
