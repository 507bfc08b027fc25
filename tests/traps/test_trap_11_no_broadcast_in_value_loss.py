"""Trap 11: (B, 1) against (B,) broadcasts to (B, B), and a perfect critic then seems wrong."""

from __future__ import annotations

import pytest
import torch
from tests.learn.fakes import FakeEnv, small_policy

from gameagent.learn.guard import FiniteGuard
from gameagent.learn.losses import value_loss
from gameagent.learn.rollout import Collector


def test_perfect_critic_has_no_loss() -> None:
    returns = torch.tensor([1.0, 2.0, 3.0])
    assert float(value_loss(returns, returns).sum()) == 0


def test_a_column_is_refused() -> None:
    returns = torch.tensor([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"expected shape \(3, 1\)"):
        value_loss(returns.unsqueeze(-1), returns)


def test_a_policy_whose_value_is_a_column_is_refused() -> None:
    env = FakeEnv()
    policy = small_policy(env)
    value = policy.value
    policy.value = lambda prepared: value(prepared).unsqueeze(-1)  # type: ignore[method-assign]
    guard = FiniteGuard(strict=True)
    rollout = Collector(env.make(), steps=3, device=torch.device("cpu"), seed=0, guard=guard).collect(policy)
    with pytest.raises(ValueError, match=r"shape \(B,\)"):
        rollout.evaluate(policy, 64)
