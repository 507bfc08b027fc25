"""What a learner is: `Learner`, the component that is configured, and `LearnerModule`, what Lightning's Trainer drives.

module = PPO(total_steps=200_000).module(env=env, policy=policy, seed=0)
trainer.fit(module)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch

from gameagent.envs.base import Env
from gameagent.errors import UserError
from gameagent.policies.base import Policy
from gameagent.policies.card import describe

Checkpoint = dict[str, Any]
"""What Lightning writes: plain dicts, lists, numbers, strings and tensors."""


class LearnerModule(pl.LightningModule):
    """A learning loop over one policy. One Lightning epoch is one unit of progress (PPO: an iteration).

    All state that an exact resume needs beyond the optimiser goes through `on_save_checkpoint`/`on_load_checkpoint` as
    plain dicts of tensors, arrays as tensors, and numbers.
    """

    policy: Policy
    """What is trained."""
    env_steps: int = 0
    """Environment steps learned from so far: the x axis of every log."""
    max_epochs: int = 0
    """How many Lightning epochs the learner wants."""

    def __init__(self) -> None:
        super().__init__()
        self.last_metrics: dict[str, float] = {}
        """Every metric's latest value."""
        self.run_config: dict[str, Any] = {}
        """The experiment's plain configuration, kept in checkpoints: what a resumed run is compared with."""

    def final_policy(self) -> Policy:
        """The policy to save and evaluate: the averaged or best weights where the learner keeps some, else the last."""
        return self.policy

    def progress(self) -> tuple[int, int, str]:
        """Done, total and their unit, for progress bars."""
        return self.current_epoch, self.max_epochs, "epochs"

    def write_metrics(self, metrics: dict[str, float]) -> None:
        """Give metrics to every logger at x = `env_steps`. `self.log` would store the step as float32.

        Raises:
            UserError: a logger can't write, the disk being full, for instance.
        """
        self.last_metrics = {**self.last_metrics, **metrics}
        if self.trainer.is_global_zero:
            for logger in self.loggers:
                try:
                    logger.log_metrics(metrics, step=self.env_steps)
                except OSError as e:
                    raise cannot_write(str(logger.name), self.trainer.default_root_dir, e) from e

    def on_save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """The final policy, readable by itself, the counters and torch's own random state."""
        policy = self.final_policy()
        checkpoint["policy"] = describe(policy)
        checkpoint["policy_state"] = policy.state_dict()
        checkpoint["config"] = self.run_config
        checkpoint["env_steps"] = self.env_steps
        checkpoint["last_metrics"] = dict(self.last_metrics)
        checkpoint["torch_rng"] = torch.get_rng_state()
        if self.device.type == "cuda":
            checkpoint["cuda_rng"] = torch.cuda.get_rng_state(self.device)

    def on_load_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Counters and random state; weights and optimiser are Lightning's part."""
        self.env_steps = checkpoint["env_steps"]
        self.last_metrics = dict(checkpoint["last_metrics"])
        torch.set_rng_state(checkpoint["torch_rng"].cpu())
        if "cuda_rng" in checkpoint and torch.cuda.is_available():
            torch.cuda.set_rng_state(checkpoint["cuda_rng"].cpu())


def cannot_write(logger: str, run_dir: str | Path, error: OSError) -> UserError:
    """A logger's failure in words."""
    return UserError(
        f"the {logger} logger cannot write in {run_dir} ({error.strerror or error}); free some space, then go on from "
        f"the last checkpoint: job.resume={run_dir}"
    )


class Learner(ABC):
    """Base of every learner component (`conf/learner/*.yaml`)."""

    init_from: str | None
    """Policy whose weights to start from, or None."""

    @abstractmethod
    def module(self, *, env: Env, policy: Policy, seed: int) -> LearnerModule:
        """The loop, ready to be driven. `env` is the component: a learner that plays makes its own batch from it."""
