"""How a coefficient changes over training: fixed, annealed to 0, or (learning rate only) steered by the KL divergence.

lr = annealed(3e-4, progress=0.5); lr = adapted(lr, kl=0.03, desired_kl=0.01)
"""

from __future__ import annotations

from enum import StrEnum

ADAPTIVE_BOUNDS = (1e-5, 1e-2)
"""The adaptive learning rate never leaves this range."""
ADAPTIVE_FACTOR = 1.5
"""What one adjustment multiplies or divides the learning rate by."""


class RateSchedule(StrEnum):
    """How the learning rate changes."""

    fixed = "fixed"
    anneal = "anneal"
    adaptive = "adaptive"


class Schedule(StrEnum):
    """How another coefficient changes."""

    fixed = "fixed"
    anneal = "anneal"


def annealed(start: float, progress: float) -> float:
    """Linear from `start` at progress 0 to 0 at progress 1, and 0 beyond."""
    return start * max(0.0, 1.0 - progress)


def adapted(lr: float, kl: float, desired_kl: float) -> float:
    """The next learning rate: smaller after too large a change of the policy, larger after too small a one.

    rsl_rl's rule, applied at every minibatch before its step: KL above twice the desired one divides by 1.5, KL below
    half of it multiplies by 1.5. A KL of exactly 0 (the policy that played is being updated) and a NaN say nothing.
    """
    low, high = ADAPTIVE_BOUNDS
    if kl > 2 * desired_kl:
        return max(low, lr / ADAPTIVE_FACTOR)
    if 0 < kl < desired_kl / 2:
        return min(high, lr * ADAPTIVE_FACTOR)
    return lr
