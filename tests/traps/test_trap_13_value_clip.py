"""Trap 13: value clipping takes the larger of both errors, is off unless asked for, and depends on the scale."""

from __future__ import annotations

import torch

from gameagent.learn.losses import value_loss
from gameagent.learn.ppo import PPO

VALUE, OLD, RETURN = torch.tensor([2.0, 1.1, 0.0]), torch.tensor([1.0, 1.0, 1.0]), torch.tensor([1.5, 1.5, 1.0])


def test_clipped_takes_the_larger_error() -> None:
    # the clipped values are 1.2, 1.1 and 0.8
    torch.testing.assert_close(value_loss(VALUE, RETURN, OLD, 0.2), torch.tensor([0.25, 0.16, 1.0]))


def test_gradient_stops_where_the_clipped_error_is_the_larger_one() -> None:
    value = torch.tensor([1.4]).requires_grad_()
    value_loss(value, torch.tensor([1.5]), torch.tensor([1.0]), 0.2).sum().backward()
    assert value.grad is not None
    assert value.grad.tolist() == [0.0]


def test_it_is_off_by_default() -> None:
    assert PPO().value_clip is None


def test_the_same_clip_bites_differently_at_another_scale() -> None:
    def ratio(scale: float) -> float:
        value, old, returns = (scale * torch.tensor([x]) for x in (1.4, 1.0, 1.5))
        return float(value_loss(value, returns, old, 0.2) / value_loss(value, returns))

    assert ratio(1.0) > 1.5
    assert ratio(0.1) == 1.0
