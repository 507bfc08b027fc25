"""Advantages and returns against numbers worked out by hand (and rsl_rl's own check values)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gameagent.learn.returns import explained_variance, gae, next_values, normalise


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32).unsqueeze(1)


def flags(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.bool).unsqueeze(1)


def test_matches_the_values_of_rsl_rl() -> None:
    values, none = column(0.5, 1.0, 1.5), flags(0, 0, 0)
    following = next_values(values, torch.tensor([2.0]), none, torch.empty(0))
    advantages = gae(column(1, 2, 3), values, following, none, none, gamma=0.99, gae_lambda=0.95)
    torch.testing.assert_close(advantages, column(6.90534257, 5.75794, 3.48))
    torch.testing.assert_close(advantages + values, column(7.40534257, 6.75794, 4.98))


def test_termination_cuts_the_bootstrap() -> None:
    values, ended = column(0.5, 1.0), flags(1, 0)
    following = next_values(values, torch.tensor([3.0]), flags(0, 0), torch.empty(0))
    advantages = gae(column(1, 2), values, following, ended, flags(0, 0), gamma=0.99, gae_lambda=0.95)
    torch.testing.assert_close(advantages + values, column(1.0, 4.97))


def test_truncation_bootstraps_from_the_final_observation_and_lets_no_later_reward_in() -> None:
    # δ_0 = 1 + 0.5·8 − 2 = 3, cut there; δ_1 = 100 + 0.5·4 − 1 = 101
    values, cut = column(2.0, 1.0), flags(1, 0)
    following = next_values(values, torch.tensor([4.0]), cut, torch.tensor([8.0]))
    advantages = gae(column(1, 100), values, following, flags(0, 0), cut, gamma=0.5, gae_lambda=1.0)
    torch.testing.assert_close(advantages, column(3.0, 101.0))


def test_an_end_that_is_both_is_a_termination() -> None:
    both = flags(1)
    advantages = gae(column(1), column(0), column(50), both, both, gamma=0.9, gae_lambda=0.9)
    torch.testing.assert_close(advantages, column(1.0))


def test_final_values_are_put_in_row_major_order() -> None:
    truncated = torch.tensor([[False, True], [True, True]])
    found = next_values(torch.zeros(2, 2), torch.tensor([7.0, 7.0]), truncated, torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(found, torch.tensor([[0.0, 1.0], [2.0, 3.0]]))


@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 2**31), st.floats(0, 1), st.floats(0, 1))
def test_lambda_recursion_equals_the_sum_that_defines_it(T: int, N: int, seed: int, gamma: float, lam: float) -> None:
    g = torch.Generator().manual_seed(seed)
    rewards, values, following = (torch.randn(T, N, generator=g) for _ in range(3))
    terminated, truncated = (torch.rand(T, N, generator=g) < 0.2 for _ in range(2))
    found = gae(rewards, values, following, terminated, truncated, gamma=gamma, gae_lambda=lam)
    for n in range(N):
        for t in range(T):
            total, weight = 0.0, 1.0
            for k in range(t, T):
                future = 0.0 if terminated[k, n] else gamma * float(following[k, n])
                total += weight * (float(rewards[k, n]) + future - float(values[k, n]))
                weight *= gamma * lam
                if terminated[k, n] or truncated[k, n]:
                    break
            assert float(found[t, n]) == pytest.approx(total, abs=1e-4)


def test_other_shapes_are_refused() -> None:
    good, none = torch.zeros(3, 2), torch.zeros(3, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"values.*\(3, 2, 1\)"):
        gae(good, good.unsqueeze(-1), good, none, none, gamma=0.9, gae_lambda=0.9)
    with pytest.raises(ValueError, match="final value"):
        next_values(good, torch.zeros(2), none, torch.zeros(1))


def test_normalised_advantages_have_mean_0_and_deviation_1() -> None:
    found = normalise(torch.tensor([1.0, 2.0, 6.0]))
    torch.testing.assert_close(found.mean(), torch.tensor(0.0))
    torch.testing.assert_close(found.std(), torch.tensor(1.0))


def test_explained_variance_knows_perfect_useless_and_undefined() -> None:
    returns = torch.tensor([1.0, 2.0, 3.0])
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(torch.full((3,), 2.0), returns) == pytest.approx(0.0)
    assert explained_variance(returns, torch.ones(3)) is None
