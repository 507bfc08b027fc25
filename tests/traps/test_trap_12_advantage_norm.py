"""Trap 12: normalising per rollout and per minibatch differ and have names; a minibatch of one sample gives no NaN."""

from __future__ import annotations

import pytest
import torch
from tests.learn.fakes import FakeEnv, train, weights

from gameagent.learn.ppo import PPO, AdvantageNorm
from gameagent.learn.returns import normalise


def test_a_single_advantage_stays_as_it_is() -> None:
    assert normalise(torch.tensor([3.0])).tolist() == [3.0]


@pytest.mark.parametrize("norm", list(AdvantageNorm))
def test_a_leftover_minibatch_of_one_trains(norm: AdvantageNorm) -> None:
    spec = PPO(total_steps=34, rollout_steps=17, minibatch_size=33, epochs=2, advantage_norm=norm)
    module = train(spec, FakeEnv(num_envs=2, bonus=1.0))
    assert module.last_metrics["ppo/updates"] == 4
    assert module.last_metrics["ppo/skipped_updates"] == 0
    assert torch.isfinite(weights(module.policy)).all()


def test_the_three_ways_differ() -> None:
    spec = {"total_steps": 64, "rollout_steps": 16, "minibatch_size": 16}
    ends = [weights(train(PPO(**spec, advantage_norm=n), FakeEnv(bonus=1.0)).policy) for n in AdvantageNorm]
    assert not torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[1], ends[2])
