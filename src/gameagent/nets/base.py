"""What an encoder is: observations in, one vector a sample out.

encoder = Tiny(width=128).build(obs_space)
latent = encoder(encoder.prepare(parts))
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from gameagent.contract import ObsSpace

Tensors = dict[str, Tensor]
"""Observation parts by name, each (B, *shape), in the part's own dtype until the network casts it."""


class EncoderModule(nn.Module, ABC):
    """A built encoder."""

    out_features: int
    """Length of the vector that it gives."""

    def prepare(self, parts: Tensors) -> Tensors:
        """Rearrange raw parts, without changing their dtype, into what `forward` reads. Default: nothing.

        Done once a sample, so that a layout which costs time (frames into patches) is not made anew for every epoch.
        """
        return parts

    @abstractmethod
    def forward(self, prepared: Tensors) -> Tensor:
        """Prepared parts -> (B, out_features) float."""


class Encoder(ABC):
    """Base of every encoder component (`conf/policy/encoder/*.yaml`)."""

    @abstractmethod
    def build(self, obs_space: ObsSpace) -> EncoderModule:
        """The network for these parts. Raises ContractError naming what it needs where a part is missing."""
