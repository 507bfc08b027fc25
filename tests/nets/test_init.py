"""Orthogonal initialisation: every singular value is the gain, biases are zero."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gameagent.nets.init import HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN, orthogonal


@pytest.mark.parametrize("gain", [HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN])
@pytest.mark.parametrize("layer", [nn.Linear(64, 6), nn.Linear(5, 64), nn.Conv2d(32, 64, 3), nn.Conv2d(192, 32, 1)])
def test_every_singular_value_is_the_gain(layer: nn.Linear | nn.Conv2d, gain: float) -> None:
    made = orthogonal(layer, gain)
    assert made is layer
    values = torch.linalg.svdvals(layer.weight.detach().flatten(1))
    torch.testing.assert_close(values, torch.full_like(values, gain), rtol=1e-4, atol=0)
    assert not layer.bias.any()


def test_gains_are_those_of_the_literature() -> None:
    gains = (HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN)
    assert gains == (math.sqrt(2), 0.01, 1.0)


def test_a_layer_without_bias_is_fine() -> None:
    assert orthogonal(nn.Linear(3, 3, bias=False)).bias is None
