"""`FactoredCategorical`: probabilities against hand-computed numbers, ids against the contract's own."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from gameagent.contract import ActionSpace
from gameagent.nets.distributions import FactoredCategorical

MOVE, ACT = (0.5, 0.25, 0.25), (0.9, 0.1)


def two_heads(move: tuple[float, ...] = MOVE, act: tuple[float, ...] = ACT) -> FactoredCategorical:
    """Batch of one with these probabilities; the shifts show that logits need no normalisation."""
    logits = torch.cat([torch.tensor(move).log() + 3, torch.tensor(act).log() - 5])[None]
    return FactoredCategorical(logits, (3, 2))


def test_log_prob_is_the_sum_over_heads() -> None:
    found = torch.stack([two_heads().log_prob(torch.tensor([a])) for a in range(6)]).squeeze(-1)
    expected = torch.tensor([m * a for m in MOVE for a in ACT]).log()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.exp().sum(), torch.tensor(1.0))


def test_entropy_against_hand_computed() -> None:
    # move: ½ln2 + ¼ln4 + ¼ln4 = 1.5 ln 2; act: −0.9 ln 0.9 − 0.1 ln 0.1
    expected = 1.5 * math.log(2) - 0.9 * math.log(0.9) - 0.1 * math.log(0.1)
    assert two_heads().entropy().item() == pytest.approx(expected, abs=1e-6)


def test_kl_against_hand_computed() -> None:
    old, new = two_heads(), two_heads((0.25, 0.5, 0.25), (0.5, 0.5))
    # move: ½ ln 2 + ¼ ln ½ = ¼ ln 2; act: 0.9 ln 1.8 + 0.1 ln 0.2
    assert old.kl(new).item() == pytest.approx(0.25 * math.log(2) + 0.9 * math.log(1.8) + 0.1 * math.log(0.2), abs=1e-6)
    assert old.kl(old).item() == 0


def test_sample_frequencies_follow_the_probabilities() -> None:
    d = two_heads()
    many = FactoredCategorical(d.log_probs.expand(40_000, -1), (3, 2))
    counts = torch.bincount(many.sample(torch.Generator().manual_seed(0)), minlength=6) / 40_000
    expected = torch.tensor([m * a for m in MOVE for a in ACT])
    # five standard deviations of a frequency
    assert ((counts - expected).abs() < 5 * (expected * (1 - expected) / 40_000).sqrt()).all()


def test_sampling_is_repeated_by_the_generator() -> None:
    many = FactoredCategorical(torch.randn(64, 5), (3, 2))
    first, second = (many.sample(torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first, second)


def test_mode_is_the_most_likely_flat_action() -> None:
    d = FactoredCategorical(torch.randn(50, 9, generator=torch.Generator().manual_seed(0)), (4, 3, 2))
    table = torch.stack([d.log_prob(torch.full((50,), a)) for a in range(24)])
    assert torch.equal(d.mode(), table.argmax(0))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_ids_agree_with_the_contract(sizes: list[int]) -> None:
    space = ActionSpace({f"h{i}": tuple(f"{j}" for j in range(n)) for i, n in enumerate(sizes)})
    d = FactoredCategorical(torch.zeros(space.n, sum(sizes)), sizes)
    flat = torch.arange(space.n)
    parts = d.unflatten(flat)
    np.testing.assert_array_equal(torch.stack(parts, -1).numpy(), space.unflatten(flat.numpy()))
    assert torch.equal(d.flatten(parts), flat)


def test_bfloat16_logits_give_float32_probabilities() -> None:
    d = FactoredCategorical(torch.randn(4, 5).bfloat16(), (3, 2))
    assert d.log_probs.dtype == torch.float32
    for head in d.heads():
        torch.testing.assert_close(head.exp().sum(-1), torch.ones(4))


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"width 4 for heads of \(3, 2\)"):
        FactoredCategorical(torch.zeros(1, 4), (3, 2))
    with pytest.raises(ValueError, match=r"actions of shape \(1, 1\) for a batch of \(1,\)"):
        two_heads().log_prob(torch.zeros(1, 1, dtype=torch.int64))
