"""The sampler: every sample once an epoch, and the same order again from any point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gameagent.data.sampler import BatchSampler
from gameagent.errors import UserError


@given(size=st.integers(1, 200), batch_size=st.integers(1, 64), seed=st.integers(0, 9))
def test_every_epoch_holds_every_sample_once(size: int, batch_size: int, seed: int) -> None:
    sampler = BatchSampler(size, batch_size, seed)
    for epoch in range(2):
        batches = [sampler.next() for _ in range(len(sampler))]
        assert sorted(np.concatenate(batches)) == list(range(size))
        assert all(len(b) == batch_size for b in batches[:-1])
        assert (sampler.epoch, sampler.position) == (epoch + 1, 0)


@given(size=st.integers(1, 100), done=st.integers(0, 50), before=st.integers(1, 16), after=st.integers(1, 16))
def test_it_goes_on_in_the_same_order_even_with_another_batch_size(
    size: int, done: int, before: int, after: int
) -> None:
    one = BatchSampler(size, before, seed=3)
    for _ in range(done):
        one.next()
    other = BatchSampler(size, after, seed=3)
    other.set_state(one.get_state())
    rest = [[], []]
    for sampler, order in zip((one, other), rest, strict=True):
        epoch = sampler.epoch
        while sampler.epoch == epoch:
            order.extend(sampler.next().tolist())
    assert rest[0] == rest[1]
    assert one.next()[0] == other.next()[0]


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    def order(seed: int) -> list[list[int]]:
        sampler = BatchSampler(50, 50, seed)
        return [sampler.next().tolist() for _ in range(2)]

    orders = [*order(0), *order(1)]
    assert len({tuple(o) for o in orders}) == 4
    assert order(0) == order(0)


@pytest.mark.parametrize(("change", "message"), [({"size": 9}, "size was 9"), ({"seed": 9}, "seed was 9")])
def test_other_data_or_another_seed_are_refused_by_name(change: dict[str, int], message: str) -> None:
    sampler = BatchSampler(10, 4, 0)
    with pytest.raises(UserError, match=f"{message} and is .* now"):
        sampler.set_state(sampler.get_state() | change)


@pytest.mark.parametrize(("size", "batch_size"), [(0, 4), (4, 0)])
def test_nothing_to_sample_is_refused(size: int, batch_size: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        BatchSampler(size, batch_size, 0)
