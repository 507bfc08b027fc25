"""Trap 23: speed with and without frame skip are two numbers with two names."""

from __future__ import annotations

import pytest
from tests.learn.fakes import FakeEnv, Rows, train

from gameagent.learn.metrics import METRICS
from gameagent.learn.ppo import PPO


def test_steps_and_frames_are_logged_apart_and_only_steps_are_the_x_axis() -> None:
    rows = Rows()
    train(PPO(total_steps=64, rollout_steps=8, minibatch_size=32), FakeEnv(frame_skip=4), logger=rows)
    step, last = rows.rows[-1]
    assert (step, last["env_frames"]) == (64, 256)
    assert last["time/frames_per_second"] == pytest.approx(4 * last["time/steps_per_second"])


def test_every_logged_metric_is_explained() -> None:
    rows = Rows()
    spec = PPO(total_steps=64, rollout_steps=8, minibatch_size=32, ema_decay=0.9, critic_warmup=1)
    train(spec, FakeEnv(), logger=rows)
    named = {n if not n.startswith("train/reward/") else "train/reward/<term>" for _, row in rows.rows for n in row}
    assert named <= set(METRICS)
