"""What happens when a number is no longer finite: counted and skipped, or raised at once.

guard = FiniteGuard(strict=False); if guard.accept("gradient", gradient_norm): optimiser.step()
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from gameagent.errors import UserError

log = logging.getLogger(__name__)


class NonFiniteError(UserError, FloatingPointError):
    """A NaN or an infinity where training cannot go on in strict mode. Says what and when."""


class FiniteGuard:
    """Watches rewards, observations and gradients.

    Args:
        strict: raise NonFiniteError at the first non-finite number instead of skipping and counting.
    """

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.values = 0
        """Non-finite rewards and observation values replaced by 0 so far."""
        self.updates = 0
        """Optimiser steps left out so far because loss or gradient was not finite."""

    def clean(self, what: str, tensor: Tensor) -> Tensor:
        """`tensor` with NaN and ±inf replaced by 0; itself where all is well, or where it holds whole numbers."""
        if not tensor.is_floating_point():
            return tensor
        finite = torch.isfinite(tensor)
        bad = finite.numel() - int(finite.sum())
        if bad == 0:
            return tensor
        if self.strict:
            raise NonFiniteError(
                f"{bad} of {tensor.numel()} numbers in {what} are NaN or infinite. job=doctor checks the environment; "
                "learner.strict=false replaces them by 0 and counts them"
            )
        if not self.values:
            log.warning(
                "%d of %d numbers in %s are NaN or infinite: taken as 0, counted in ppo/nonfinite",
                bad,
                tensor.numel(),
                what,
            )
        self.values += bad
        return torch.where(finite, tensor, 0.0)

    def accept(self, what: str, number: float | Tensor) -> bool:
        """Whether `number` is finite, and so whether the update that it belongs to may be made."""
        if bool(torch.isfinite(torch.as_tensor(number))):
            return True
        if self.strict:
            raise NonFiniteError(
                f"the {what} is {float(number)}. Lower learner.lr or learner.max_grad_norm; "
                "learner.strict=false leaves such updates out and counts them"
            )
        if not self.updates:
            log.warning("the %s is %s: such updates are left out, counted in ppo/skipped_updates", what, float(number))
        self.updates += 1
        return False

    def check_progress(self, skipped: int, made: int) -> None:
        """Raise NonFiniteError where an iteration left updates out and made none: training goes nowhere then."""
        if skipped and not made:
            raise NonFiniteError(
                f"all {skipped} updates of an iteration were left out: loss or gradient was NaN or infinite each time. "
                "Train anew with a lower learner.lr or learner.max_grad_norm"
            )

    def get_state(self) -> dict[str, int]:
        """The counts."""
        return {"values": self.values, "updates": self.updates}

    def set_state(self, state: dict[str, int]) -> None:
        """Inverse of `get_state`."""
        self.values, self.updates = state["values"], state["updates"]
