"""How Lightning drives a learner: the `Trainer` component, and the bases of loggers and callbacks.

trainer = Trainer(threads=1).build(run_dir=Path("outputs/x"), max_epochs=10, loggers=[], callbacks=[])
"""

from __future__ import annotations

import logging
import os
import warnings
from abc import ABC, abstractmethod
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.loggers import Logger
from pydantic import Field

from gameagent.component import component
from gameagent.errors import UserError
from gameagent.learn.memory import keep_memory


class LoggerSpec(ABC):
    """Base of every logger component (`conf/logger/*.yaml`)."""

    @abstractmethod
    def build(self, *, run_dir: Path, name: str, config: dict[str, Any], resume_step: int | None) -> Logger:
        """The sink.

        `resume_step`: env steps of the checkpoint that a resumed run goes on from (rows beyond it are dropped, so that
        none appears twice); None for a new run.
        """


class CallbackSpec(ABC):
    """Base of every callback component (`conf/callbacks/*.yaml`)."""

    @abstractmethod
    def build(self, *, run_dir: Path) -> pl.Callback:
        """The Lightning callback."""


class TrainerSpec(ABC):
    """Base of every trainer component (`conf/trainer/*.yaml`)."""

    @abstractmethod
    def build(
        self, *, run_dir: Path, max_epochs: int, loggers: list[Logger], callbacks: list[pl.Callback]
    ) -> pl.Trainer:
        """The Lightning trainer."""


class Accelerator(StrEnum):
    """What to compute on."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"
    mps = "mps"


class Precision(StrEnum):
    """Number format of forward and backward; weights are float32 in both."""

    fp32 = "32-true"
    bf16 = "bf16-mixed"


@component
class Trainer(TrainerSpec):
    """One process on one device."""

    accelerator: Accelerator = Accelerator.auto
    """auto takes a GPU where there is one; cpu, gpu (CUDA or ROCm), mps (Apple)."""
    precision: Precision = Precision.fp32
    """32-true, or bf16-mixed: faster where the hardware has bfloat16, with small differences in the results."""
    threads: Annotated[int, Field(gt=0)] | None = None
    """CPU threads of torch; null: as many as it likes. 1 makes runs repeat bit for bit and leaves cores to others."""
    deterministic: bool = False
    """Only algorithms that repeat exactly: slower on a GPU, and an error where there is none."""

    def build(
        self, *, run_dir: Path, max_epochs: int, loggers: list[Logger], callbacks: list[pl.Callback]
    ) -> pl.Trainer:
        """The Lightning trainer. Checkpoints, bars and metrics are the callbacks' and loggers' part, not its own."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        # Importing Lightning makes torch ask NVML whether there is a GPU, and torch asks at every optimiser step:
        # without one that looks for a library each time, 0.25 ms on the machine of benchmarks/sft_overhead.py.
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "0"
        keep_memory()
        _hush()
        try:
            return self._trainer(run_dir, max_epochs, loggers, callbacks)
        except MisconfigurationException as e:
            raise UserError(
                f"trainer.accelerator={self.accelerator}: {str(e).rstrip('.')}; type trainer.accelerator=auto"
            ) from e

    def _trainer(
        self, run_dir: Path, max_epochs: int, loggers: list[Logger], callbacks: list[pl.Callback]
    ) -> pl.Trainer:
        return pl.Trainer(
            accelerator=self.accelerator.value,
            devices=1,
            precision=self.precision.value,
            deterministic=self.deterministic,
            max_epochs=max_epochs,
            logger=loggers,
            callbacks=callbacks,
            default_root_dir=run_dir,
            log_every_n_steps=1,
            num_sanity_val_steps=0,
            enable_checkpointing=any(isinstance(c, pl.callbacks.Checkpoint) for c in callbacks),
            enable_progress_bar=False,
            enable_model_summary=False,
        )


def _hush() -> None:
    """Keep what Lightning says about devices, workers and its own tips from burying a run's few lines."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module=r"lightning\..*", category=FutureWarning)
    warnings.filterwarnings(
        "ignore", module=r"lightning\..*", message=".*(many workers|GPU available|exists and is not|`srun` command).*"
    )
