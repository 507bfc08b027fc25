"""Orthogonal initialisation with the gains that PPO is known to need.

    orthogonal(nn.Linear(64, 6), POLICY_GAIN)

Source: Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients"; the gains are OpenAI baselines' own.
"""

from __future__ import annotations

import math
from typing import TypeVar

from torch import nn

HIDDEN_GAIN = math.sqrt(2)
"""Hidden layers: keeps the variance of activations through ReLU."""
POLICY_GAIN = 0.01
"""Last layer of the actor: the first policy is near uniform, no action is preferred before anything is learned."""
VALUE_GAIN = 1.0
"""Last layer of the critic."""

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def orthogonal(layer: Layer, gain: float = HIDDEN_GAIN) -> Layer:
    """Give `layer` an orthogonal weight scaled by `gain` (all singular values equal it) and a zero bias; returns it."""
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
