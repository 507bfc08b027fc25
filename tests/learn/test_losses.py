"""Loss terms against numbers worked out by hand (and rsl_rl's own check values)."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gameagent.learn.losses import categorical_kl, clipped, policy_loss, value_loss
from gameagent.nets.distributions import FactoredCategorical


def vector(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def test_surrogate_is_clipped_where_the_policy_has_moved_towards_the_advantage() -> None:
    # ratio e^0.5 = 1.65: A=+1 is worth at most 1.2; A=−1 costs the full 1.65
    found = policy_loss(vector(0.5, 0.5), vector(0, 0), vector(1, -1), clip=0.2)
    torch.testing.assert_close(found, vector(-1.2, math.exp(0.5)))


def test_surrogate_keeps_its_gradient_where_a_step_back_would_help() -> None:
    # ratio e^−0.5 = 0.61: A=+1 still pulls (−0.61); A=−1 has gained enough (0.8)
    log_prob = vector(-0.5, -0.5).requires_grad_()
    found = policy_loss(log_prob, vector(0, 0), vector(1, -1), clip=0.2)
    torch.testing.assert_close(found, vector(-math.exp(-0.5), 0.8))
    found.sum().backward()
    assert log_prob.grad is not None
    torch.testing.assert_close(log_prob.grad, vector(-math.exp(-0.5), 0.0))


def test_clipped_value_loss_matches_rsl_rl() -> None:
    found = value_loss(vector(2.0, 1.1), vector(1.5, 1.5), vector(1, 1), clip=0.2)
    torch.testing.assert_close(found, vector(0.25, 0.16))
    assert float(found.mean()) == pytest.approx(0.205)


def test_unclipped_value_loss_is_the_squared_error() -> None:
    torch.testing.assert_close(value_loss(vector(2.0, 1.1), vector(1.5, 1.5)), vector(0.25, 0.16))


def test_exact_kl_adds_up_over_heads() -> None:
    def nats(p: list[float], q: list[float]) -> float:
        return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))

    old = FactoredCategorical(vector(0.5, 0.5, 0.2, 0.3, 0.5).log().unsqueeze(0), (2, 3))
    new = FactoredCategorical(vector(0.9, 0.1, 0.4, 0.3, 0.3).log().unsqueeze(0), (2, 3))
    expected = nats([0.5, 0.5], [0.9, 0.1]) + nats([0.2, 0.3, 0.5], [0.4, 0.3, 0.3])
    assert float(categorical_kl(old.log_probs, new.log_probs)) == pytest.approx(expected, rel=1e-5)


@given(st.integers(0, 2**31))
def test_kl_is_never_negative_and_0_only_for_the_same_policy(seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    old, new = (FactoredCategorical(3 * torch.randn(8, 5, generator=g), (2, 3)) for _ in range(2))
    assert (categorical_kl(old.log_probs, new.log_probs) > 0).all()
    assert float(categorical_kl(old.log_probs, old.log_probs).abs().max()) == 0


def test_clipped_counts_ratios_outside_the_range() -> None:
    logs = vector(1.0, 1.19, 1.21, 0.81, 0.79).log()
    torch.testing.assert_close(clipped(logs, torch.zeros(5), 0.2), vector(0, 0, 1, 0, 1))


@pytest.mark.parametrize("function", [value_loss, categorical_kl])
def test_other_shapes_are_refused(function: object) -> None:
    with pytest.raises(ValueError, match=r"expected shape"):
        function(torch.zeros(4, 1), torch.zeros(4))  # type: ignore[operator]


def test_clipping_values_needs_the_old_ones() -> None:
    with pytest.raises(ValueError, match="old_value"):
        value_loss(torch.zeros(2), torch.zeros(2), clip=0.2)
