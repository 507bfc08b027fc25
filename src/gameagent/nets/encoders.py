"""The encoders by name: `Auto` (picks by what there is to see), `Tiny` and `Nature` for frames, `Mlp` for features.

python run.py policy/encoder=tiny policy.encoder.width=128
"""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from gameagent.component import component
from gameagent.contract import ContractError, ObsSpace, Part
from gameagent.nets.base import Encoder, EncoderModule, Tensors
from gameagent.nets.init import orthogonal
from gameagent.nets.pixels import Nature, Size, Tiny

__all__ = ["Activation", "Auto", "Mlp", "Nature", "Tiny"]


class Activation(StrEnum):
    """Non-linearity between layers."""

    tanh = "tanh"
    relu = "relu"
    elu = "elu"


_ACTIVATIONS: dict[Activation, type[nn.Module]] = {
    Activation.tanh: nn.Tanh,
    Activation.relu: nn.ReLU,
    Activation.elu: nn.ELU,
}


@component
class Mlp(Encoder):
    """Fully connected layers over the feature vector."""

    hidden: Annotated[tuple[Size, ...], Field(min_length=1)] = (64, 64)
    """Units of each layer; the last one is the length of the vector that comes out."""
    activation: Activation = Activation.tanh
    """Non-linearity after each layer: tanh, relu or elu."""

    def build(self, obs_space: ObsSpace) -> EncoderModule:
        """The network. Raises ContractError where the space has no features."""
        if Part.features not in obs_space:
            raise ContractError(f"encoder mlp reads features, but the environment gives {obs_space}; try encoder auto")
        return _MlpModule(obs_space[Part.features].shape[0], self.hidden, self.activation)


@component
class Auto(Encoder):
    """`Tiny` where there are frames, `Mlp` where there are features, both side by side where there is both."""

    width: Size = 256
    """Length of the vector made from frames; features add 64."""

    def build(self, obs_space: ObsSpace) -> EncoderModule:
        """The network. Raises ContractError where the space has neither frames nor features."""
        readers: dict[str, Encoder] = {Part.frame: Tiny(width=self.width), Part.features: Mlp()}
        found = [reader.build(obs_space) for part, reader in readers.items() if part in obs_space]
        if not found:
            raise ContractError(f"encoder auto reads frames and features, but the environment gives only {obs_space}")
        return found[0] if len(found) == 1 else SideBySide(found)


class SideBySide(EncoderModule):
    """Several encoders of different parts, their vectors concatenated."""

    def __init__(self, encoders: list[EncoderModule]) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        self.out_features = sum(e.out_features for e in encoders)

    def prepare(self, parts: Tensors) -> Tensors:
        """Each encoder's own layout; they read different parts, so that none overwrites another's."""
        prepared: Tensors = {}
        for encoder in self.encoders:
            prepared |= encoder.prepare(parts)  # type: ignore[operator]
        return prepared

    def forward(self, prepared: Tensors) -> Tensor:
        """Prepared parts -> (B, out_features)."""
        return torch.cat([encoder(prepared) for encoder in self.encoders], -1)


class _MlpModule(EncoderModule):
    """See `Mlp`."""

    def __init__(self, features: int, hidden: tuple[int, ...], activation: Activation) -> None:
        super().__init__()
        self.out_features = hidden[-1]
        layers: list[nn.Module] = []
        for before, after in pairwise((features, *hidden)):
            layers += [orthogonal(nn.Linear(before, after)), _ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers)

    def prepare(self, parts: Tensors) -> Tensors:
        """The features alone."""
        return {Part.features: parts[Part.features]}

    def forward(self, prepared: Tensors) -> Tensor:
        """Features (B, F) -> (B, hidden[-1])."""
        first = self.layers[0]
        return self.layers(prepared[Part.features].to(first.weight.dtype))  # type: ignore[no-any-return, arg-type]
