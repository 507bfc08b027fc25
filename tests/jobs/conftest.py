"""Experiments that the jobs' tests run: a game whose every number is known, and a small policy saved for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.evaluation.fakes import Lottery, LotteryCore

from gameagent.experiment import Experiment, Job
from gameagent.learn.trainer import Trainer
from gameagent.nets.encoders import Mlp
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.bundle import save_policy

RunJob = Callable[..., Experiment]


@pytest.fixture
def experiment(tmp_path: Path) -> RunJob:
    """`experiment(job, name="x", env=…)` gives an experiment with a run folder of its own."""

    def make(job: Job, name: str = "run", **fields: object) -> Experiment:
        given = {"env": Lottery(), "policy": ActorCritic(encoder=Mlp()), "trainer": Trainer(), **fields}
        return Experiment(name=name, job=job, out=str(tmp_path / name), **given)

    return make


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    """A policy for `Lottery`, untrained, saved as runs save theirs."""
    torch.manual_seed(0)
    policy = ActorCritic(encoder=Mlp()).build(LotteryCore.space, LotteryCore.actions)
    return save_policy(tmp_path / "02_sft" / "policy.safetensors", policy, provenance={"experiment": "test", "seed": 0})
