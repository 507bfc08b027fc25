"""Supervised fine-tuning (behaviour cloning): the policy learns to answer what it sees as the demonstrator did.

    python run.py learner=sft learner.data=outputs/collect learner.epochs=25

One Lightning epoch is a chunk of optimiser steps, so that a run can be stopped, saved and taken up inside a long pass
over the data, and Lightning's own work is shared by many steps. `learner.epochs` counts passes over the data. The x
axis (`env_steps`) is the number of samples seen. Only the actor learns: demonstrations say nothing about returns, and
PPO warms its critic up itself. A loss of your own: subclass `SFT` and override `loss`.
"""

from __future__ import annotations

import copy
import math
import time
from enum import StrEnum
from typing import Annotated, Any

import torch
from lightning.pytorch.core.optimizer import LightningOptimizer
from pydantic import Field
from torch import Tensor

from gameagent.component import component
from gameagent.contract import check_spaces
from gameagent.data.datasets import FrameDataset, Split, majority_accuracy
from gameagent.data.episodes import EpisodeStore
from gameagent.data.sampler import BatchSampler
from gameagent.envs.base import Env
from gameagent.errors import UserError
from gameagent.learn.base import Learner, LearnerModule
from gameagent.learn.guard import NonFiniteError
from gameagent.nets.base import Tensors
from gameagent.nets.distributions import FactoredCategorical
from gameagent.policies.base import Policy

Count = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]

VAL_BATCH = 256
"""Held-out samples looked at together."""


class Keep(StrEnum):
    """Which epoch's weights are the result."""

    accuracy = "accuracy"
    """Highest held-out accuracy; of equal ones that with the lower loss."""
    loss = "loss"
    """Lowest held-out loss."""
    last = "last"
    """The last one."""


@component
class SFT(Learner):
    """Supervised fine-tuning on recorded episodes (behaviour cloning)."""

    data: str | None = None
    """Episodes to learn from: an episodes.zarr, or the run folder of a job=collect."""
    epochs: Count = 25
    """Passes over the training samples."""
    batch_size: Count = 64
    """Samples behind one optimiser step."""
    lr: Annotated[float, Field(gt=0)] = 1e-3
    """Learning rate (AdamW)."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Decoupled weight decay."""
    label_smoothing: Share = 0.0
    """Share of the target spread evenly over each head's labels, 0 up to 1."""
    val_fraction: Share = 0.1
    """Share held out for validation; 0: none, and the last epoch is kept."""
    split: Split = Split.auto
    """What is held out: whole episodes, the tail of each, or auto (tail if there is only one). Never random frames."""
    keep: Keep = Keep.accuracy
    """Whose weights are the result: the epoch of the best held-out accuracy or loss, or the last. Accuracy on
    recordings is not skill: choose between runs by job=evaluate."""
    chunk: Count = 64
    """Optimiser steps between two moments at which a run can be saved or stopped."""
    init_from: str | None = None
    """Policy whose weights to start from: a .safetensors or .ckpt file or a run folder; null: fresh ones."""

    def module(self, *, env: Env, policy: Policy, seed: int) -> SFTModule:
        """The loop over the samples of `data`.

        Raises:
            UserError: no data was given, or it can't be used.
            ContractError: it was recorded from a game with other spaces.
        """
        if self.data is None:
            raise UserError(
                "learner=sft needs episodes to learn from: learner.data=PATH (collect some with job=collect)"
            )
        data = FrameDataset.load(EpisodeStore.open(self.data), env)
        expected = (policy.obs_space, policy.action_space)
        check_spaces(f"learner.data={self.data}", expected, (data.obs_space, data.action_space))
        return SFTModule(self, data, policy=policy, seed=seed)

    def loss(self, distribution: FactoredCategorical, labels: Tensor) -> Tensor:
        """Cross-entropy of each sample (B,) in nats, summed over heads."""
        exact = -distribution.log_prob(labels)
        if self.label_smoothing == 0:
            return exact
        spread = torch.stack([-head.mean(-1) for head in distribution.heads()]).sum(0)
        return (1 - self.label_smoothing) * exact + self.label_smoothing * spread


class SFTModule(LearnerModule):
    """`SFT` under Lightning. Manual optimisation: one `training_step` is a chunk of optimiser steps.

    Args:
        spec: the settings.
        data: all samples; held in memory, on the training device.
        policy: what to train.
        seed: of the order of samples.
    """

    def __init__(self, spec: SFT, data: FrameDataset, *, policy: Policy, seed: int) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.spec, self.policy = spec, policy
        train, val = data.split(spec.val_fraction, spec.split)
        self.majority = majority_accuracy(data.labels, train, val)
        self._train, self._val = torch.from_numpy(train), torch.from_numpy(val)
        self._prepared, self._labels = policy.prepare(data.parts), data.labels
        self.sampler = BatchSampler(len(train), spec.batch_size, seed)
        self.chunks = 0
        self.max_epochs = spec.epochs * math.ceil(len(self.sampler) / spec.chunk)
        self.best: dict[str, Any] = {}
        """Score, epoch and weights of the best epoch so far; empty before the first one."""
        self._loss_sum = torch.zeros(())
        self._started = 0.0

    def setup(self, stage: str) -> None:
        """Move the samples to where the training is."""
        device = self.trainer.strategy.root_device
        self._prepared = {name: part.to(device) for name, part in self._prepared.items()}
        self._labels, self._loss_sum = self._labels.to(device), self._loss_sum.to(device)
        self._train, self._val = self._train.to(device), self._val.to(device)

    def train_dataloader(self) -> range:
        """One item: Lightning's epoch is our chunk."""
        return range(1)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW over the actor."""
        spec = self.spec
        return torch.optim.AdamW(self.policy.actor_parameters(), spec.lr, weight_decay=spec.weight_decay, fused=True)

    def on_train_start(self) -> None:
        """A resumed optimiser brings its old settings along; the present ones hold."""
        for group in self._adam().param_groups:
            group["lr"], group["weight_decay"] = self.spec.lr, self.spec.weight_decay
        self._started = time.perf_counter()

    def training_step(self, batch: int, batch_idx: int) -> None:
        """One chunk; it ends early where the pass over the data ends."""
        optimizer = self._adam()
        torch.clear_autocast_cache()
        for _ in range(self.spec.chunk):
            rows = self._train[torch.from_numpy(self.sampler.next()).to(self._train.device)]
            optimizer.zero_grad()
            losses = self.spec.loss(self.policy.distribution(self._samples(rows)), self._labels[rows])
            # Not `manual_backward`: in one process without loss scaling it adds nothing but hooks that nobody uses, at
            # several times the cost of the rest of Lightning (benchmarks/sft_overhead.py).
            torch.autograd.backward(losses.mean())
            torch.clear_autocast_cache()  # Lightning's autocast spans the whole chunk: casts of old weights would stay
            optimizer.step()
            self._loss_sum += losses.detach().sum()
            self.env_steps += len(rows)
            if self.sampler.position == 0:
                break
        self.chunks += 1
        if not bool(self._loss_sum.isfinite()):
            raise NonFiniteError(
                f"the loss is no number after {self.env_steps} samples; lower learner.lr={self.spec.lr}"
            )
        if self.sampler.position == 0:
            self._finish_epoch()

    def _samples(self, rows: Tensor) -> Tensors:
        return {name: part[rows] for name, part in self._prepared.items()}

    def _adam(self) -> LightningOptimizer:
        optimizer = self.optimizers()
        assert isinstance(optimizer, LightningOptimizer)
        return optimizer

    def _finish_epoch(self) -> None:
        """Validate, remember the weights if they are the best, log."""
        metrics = {"sft/loss": float(self._loss_sum) / len(self._train)}
        self._loss_sum.zero_()
        if len(self._val):
            metrics |= self.validate() | {"sft/majority_accuracy": self.majority}
            self._keep_best(metrics)
        now = time.perf_counter()
        self.write_metrics(metrics | {"time/steps_per_second": len(self._train) / (now - self._started)})
        self._started = now

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Loss and accuracy on the held-out samples, all heads together and each by itself."""
        heads = self.policy.action_space.heads
        loss = torch.zeros((), device=self._val.device)
        right = torch.zeros(1 + len(heads), device=self._val.device)
        self.policy.eval()
        for rows in torch.split(self._val, VAL_BATCH):
            distribution, labels = self.policy.distribution(self._samples(rows)), self._labels[rows]
            pairs = zip(distribution.unflatten(distribution.mode()), distribution.unflatten(labels), strict=True)
            hits = torch.stack([answer == label for answer, label in pairs])
            loss += self.spec.loss(distribution, labels).sum()
            right += torch.cat([hits.all(0, keepdim=True), hits]).sum(1)
        self.policy.train()
        overall, *by_head = (right / len(self._val)).tolist()
        metrics = {"sft/val_loss": float(loss) / len(self._val), "sft/val_accuracy": overall}
        return metrics | {f"sft/val_accuracy/{head}": share for head, share in zip(heads, by_head, strict=True)}

    def _keep_best(self, metrics: dict[str, float]) -> None:
        accuracy, loss = metrics["sft/val_accuracy"], metrics["sft/val_loss"]
        score = [accuracy, -loss] if self.spec.keep is Keep.accuracy else [-loss]
        if self.spec.keep is not Keep.last and (not self.best or score > self.best["score"]):
            weights = {name: x.detach().clone() for name, x in self.policy.state_dict().items()}
            self.best = {"score": score, "epoch": self.sampler.epoch, "weights": weights}

    def final_policy(self) -> Policy:
        """The best epoch's policy (see `keep`), a copy; before the first epoch ends, the present one."""
        if not self.best:
            return self.policy
        policy = copy.deepcopy(self.policy)
        policy.load_state_dict(self.best["weights"])
        return policy

    def progress(self) -> tuple[int, int, str]:
        """Samples."""
        return self.env_steps, self.spec.epochs * len(self._train), "samples"

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Everything beside weights and optimiser that going on exactly needs."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["sft"] = {
            "sampler": self.sampler.get_state(),
            "chunks": self.chunks,
            "loss_sum": self._loss_sum.cpu(),
            "best": {name: x for name, x in self.best.items() if name != "weights"},  # those are "policy_state"
            "keep": self.spec.keep.value,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Inverse of `on_save_checkpoint`; other settings are allowed, other samples are not."""
        super().on_load_checkpoint(checkpoint)
        state = checkpoint["sft"]
        self.sampler.set_state(state["sampler"])
        self.chunks = state["chunks"]
        self._loss_sum = state["loss_sum"].to(self._loss_sum.device)
        # Scores of another rule can't be compared: its best epoch is forgotten.
        comparable = state["best"] and state["keep"] == self.spec.keep.value
        self.best = {**state["best"], "weights": checkpoint["policy_state"]} if comparable else {}
        batches = math.ceil((self.sampler.size - self.sampler.position) / self.spec.batch_size)
        left = math.ceil(batches / self.spec.chunk)
        left += (self.spec.epochs - self.sampler.epoch - 1) * math.ceil(len(self.sampler) / self.spec.chunk)
        self.max_epochs = self.chunks + max(0, left)
        self.trainer.fit_loop.max_epochs = self.max_epochs
