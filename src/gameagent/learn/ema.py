"""Exponential moving average of a policy's weights: a steadier policy to evaluate than the last one.

    average = WeightAverage(policy, decay=0.999); optimiser.step(); average.update(policy)

It is updated inside the learner's own loop, once an optimiser step: a Lightning callback would see one batch an
iteration.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from gameagent.policies.base import Policy


class WeightAverage(nn.Module):
    """Holds the averaged copy as `policy`; its weights are in `state_dict` like any module's.

    Args:
        policy: where it starts from.
        decay: share of the old average that one update keeps, 0 (the last weights) to below 1. The average reaches back
            about 1 / (1 − decay) optimiser steps.
    """

    def __init__(self, policy: Policy, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.policy = copy.deepcopy(policy).requires_grad_(False)

    @torch.no_grad()
    def update(self, policy: Policy) -> None:
        """average ← decay · average + (1 − decay) · weights. Buffers (counters, statistics) are copied."""
        torch._foreach_lerp_(list(self.policy.parameters()), list(policy.parameters()), 1 - self.decay)
        for mine, theirs in zip(self.policy.buffers(), policy.buffers(), strict=True):
            mine.copy_(theirs)
