"""`Experiment`, the root component that holds all others, and `Job`, the base of every verb.

from gameagent.experiment import Experiment; Experiment(env=…, policy=…, job=…).run()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from gameagent.component import component
from gameagent.envs.base import Env
from gameagent.learn.base import Learner
from gameagent.learn.trainer import CallbackSpec, LoggerSpec, TrainerSpec
from gameagent.policies.base import Architecture


class Job(ABC):
    """Base of every verb (`conf/job/*.yaml`): train, evaluate, collect and more."""

    @abstractmethod
    def run(self, experiment: Experiment) -> Any:
        """Do it. Gives what a sweep optimises (a number) or a dict of results. Raises; never exits the process."""


@component
class Experiment:
    """Everything one run needs. `conf/config.yaml` composes it; every field is a config group."""

    name: str = "default"
    """Names the folder under outputs/ and the run in loggers."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Everything random starts here, 0 or more."""
    out: str | None = None
    """Run folder; null: outputs/<name>/<time>, filled in by run.py."""
    env: Env
    """Environment."""
    policy: Architecture
    """Policy network."""
    learner: Learner | None = None
    """Learning loop; null for jobs that don't learn."""
    job: Job
    """What to do."""
    trainer: TrainerSpec
    """How Lightning drives the learner."""
    logger: dict[str, LoggerSpec] = field(default_factory=dict)
    """Metric sinks by name."""
    callbacks: dict[str, CallbackSpec] = field(default_factory=dict)
    """Trainer callbacks by name."""

    @property
    def run_dir(self) -> Path:
        """The run folder. Raises ValueError where none was given."""
        if self.out is None:
            raise ValueError("this experiment has no run folder; give out=PATH")
        return Path(self.out)

    def run(self) -> Any:
        """Run its job."""
        return self.job.run(self)
