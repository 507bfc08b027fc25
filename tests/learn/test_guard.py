"""Non-finite numbers are counted and left out, or raise in strict mode."""

from __future__ import annotations

import pytest
import torch

from gameagent.learn.guard import FiniteGuard, NonFiniteError

BAD = torch.tensor([1.0, float("nan"), float("-inf")])


def test_bad_numbers_become_0_and_are_counted() -> None:
    guard = FiniteGuard(strict=False)
    torch.testing.assert_close(guard.clean("x", BAD), torch.tensor([1.0, 0.0, 0.0]))
    assert guard.values == 2
    assert not guard.accept("gradient norm", torch.tensor(float("inf")))
    assert guard.accept("gradient norm", 3.0)
    assert guard.updates == 1


def test_strict_mode_raises_and_says_what_and_what_to_type() -> None:
    guard = FiniteGuard(strict=True)
    with pytest.raises(NonFiniteError, match=r"2 of 3 numbers in the rewards.*learner\.strict=false"):
        guard.clean("the rewards", BAD)
    with pytest.raises(NonFiniteError, match=r"gradient norm is nan"):
        guard.accept("gradient norm", float("nan"))


def test_whole_numbers_pass_untouched() -> None:
    frame = torch.zeros(3, dtype=torch.uint8)
    assert FiniteGuard(strict=True).clean("the frame", frame) is frame


def test_counts_survive_a_checkpoint() -> None:
    guard, other = FiniteGuard(strict=False), FiniteGuard(strict=False)
    guard.clean("x", BAD)
    other.set_state(guard.get_state())
    assert (other.values, other.updates) == (2, 0)


def test_the_first_of_a_kind_is_told_and_the_rest_only_counted(caplog: pytest.LogCaptureFixture) -> None:
    guard = FiniteGuard(strict=False)
    for _ in range(3):
        guard.clean("the rewards", BAD)
        guard.accept("gradient norm", float("nan"))
    assert [r.getMessage() for r in caplog.records] == [
        "2 of 3 numbers in the rewards are NaN or infinite: taken as 0, counted in ppo/nonfinite",
        "the gradient norm is nan: such updates are left out, counted in ppo/skipped_updates",
    ]
