"""The averaged policy."""

from __future__ import annotations

import torch
from tests.learn.fakes import FakeEnv, small_policy, weights

from gameagent.learn.ema import WeightAverage


def test_average_follows_its_formula_and_shares_nothing() -> None:
    policy = small_policy(FakeEnv())
    average = WeightAverage(policy, decay=0.9)
    start = weights(policy).clone()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1.0)
    assert torch.equal(weights(average.policy), start)
    average.update(policy)
    torch.testing.assert_close(weights(average.policy), start + 0.1)
    average.update(policy)
    torch.testing.assert_close(weights(average.policy), start + 0.19)
    assert not any(p.requires_grad for p in average.policy.parameters())
