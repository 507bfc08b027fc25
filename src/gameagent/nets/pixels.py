"""Encoders of frames: `Tiny`, fast on CPUs, and `Nature`, the network of the DQN paper.

    encoder = Tiny(width=256).build(ObsSpace(frame=(56, 56, 12))); latent = encoder(encoder.prepare({"frame": frames}))

Both read frames as the environment gives them, (B, H, W, C) uint8. Bringing them to −1..1 happens in the first layer's
weights, not in the pixels: the same function, one pass over a big tensor less. Whole numbers up to 256 are exact in
bfloat16, so a learner may cast prepared frames to it (or to float32) once and lose nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from gameagent.component import component
from gameagent.contract import ContractError, ObsSpace, Part
from gameagent.nets.base import Encoder, EncoderModule, Tensors
from gameagent.nets.init import orthogonal
from gameagent.nets.patches import patch_layer

Size = Annotated[int, Field(gt=0)]

LARGE_SIDE = 100
"""From this side length on (pixels), `Tiny` cuts frames into patches of 8, below it of 4."""


@component
class Tiny(Encoder):
    """Non-overlapping patches, then 3×3 convolutions of stride 2: about a third of Nature's cost."""

    patch: Size | None = None
    """Side of the first convolution's kernel and its stride, pixels; null: 8 for sides from 100, 4 for smaller ones."""
    channels: Annotated[tuple[Size, ...], Field(min_length=1)] = (32, 64, 64)
    """Output channels of the patch layer and of each 3×3 convolution after it."""
    width: Size = 256
    """Length of the vector that comes out."""

    def build(self, obs_space: ObsSpace) -> EncoderModule:
        """The network. Raises ContractError without a frame."""
        height, width, colours = frame_shape(obs_space, "tiny")
        patch = self.patch or (8 if min(height, width) >= LARGE_SIDE else 4)
        grid = (-(-height // patch), -(-width // patch))
        for _ in self.channels[1:]:
            grid = ((grid[0] + 1) // 2, (grid[1] + 1) // 2)
        return _TinyModule((height, width, colours), patch, self.channels, grid, self.width)


@component
class Nature(Encoder):
    """The convolutional network of Mnih et al. 2015 (8×8 stride 4, 4×4 stride 2, 3×3 stride 1)."""

    width: Size = 512
    """Length of the vector that comes out."""

    def build(self, obs_space: ObsSpace) -> EncoderModule:
        """The network. Raises ContractError without a frame of at least 36×36."""
        height, width, colours = frame_shape(obs_space, "nature")
        if min(height, width) < 36:
            raise ContractError(
                f"encoder nature needs frames of at least 36×36, got {height}×{width}; try encoder tiny"
            )
        return _NatureModule((height, width, colours), self.width)


def frame_shape(obs_space: ObsSpace, who: str) -> tuple[int, int, int]:
    """(height, width, channels) of the space's frame. Raises ContractError where it has none; `who` asks."""
    if Part.frame not in obs_space:
        raise ContractError(f"encoder {who} reads frames, but the environment gives {obs_space}; try encoder auto")
    height, width, colours = obs_space[Part.frame].shape
    return height, width, colours


class _TinyModule(EncoderModule):
    """See `Tiny`.

    The patch layer is a linear layer over whole patches: exactly the p×p stride-p convolution, but run as matrix
    products without the gather that convolutions make (measured in benchmarks/encoder_speed.py). Its weights are kept
    in the shape of a 1×1 convolution, as which other devices and ONNX run it.
    """

    def __init__(
        self, frame: tuple[int, int, int], patch: int, channels: tuple[int, ...], grid: tuple[int, int], width: int
    ) -> None:
        super().__init__()
        height, width_px, colours = frame
        self.patch, self.out_features = patch, width
        self.padding = (0, 0, 0, -width_px % patch, 0, -height % patch)
        self.first = orthogonal(nn.Conv2d(patch * patch * colours, channels[0], 1))
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            # Padded: without it the last rows and columns of an even grid are never looked at.
            layers += [orthogonal(nn.Conv2d(before, after, 3, 2, padding=1)), nn.ReLU(inplace=True)]
        head = orthogonal(nn.Linear(channels[-1] * grid[0] * grid[1], width))
        self.rest = nn.Sequential(*layers, nn.Flatten(), head, nn.ReLU(inplace=True)).to(
            memory_format=torch.channels_last
        )

    def prepare(self, parts: Tensors) -> Tensors:
        """Frames (…, H, W, C) -> patches (…, H/p, W/p, p·p·C) of the same dtype: a permutation.

        Black is added at the right and at the bottom where the frame is no whole number of patches.
        """
        frame = parts[Part.frame]
        if any(self.padding):
            frame = F.pad(frame, self.padding)
        *lead, height, width, colours = frame.shape
        p = self.patch
        tiles = frame.reshape(*lead, height // p, p, width // p, p, colours).transpose(-4, -3)
        return {Part.frame: tiles.reshape(*lead, height // p, width // p, p * p * colours)}

    def forward(self, prepared: Tensors) -> Tensor:
        """Patches (B, H/p, W/p, p·p·C) holding 0..255 in any dtype -> (B, width)."""
        patches = prepared[Part.frame]
        weight, bias, dtype = _centred(self.first, patches)
        if patches.device.type == "cpu" and dtype == torch.float32 and not torch.onnx.is_in_onnx_export():
            latent = patch_layer(patches, weight.flatten(1), bias).permute(0, 3, 1, 2)
        else:
            latent = F.conv2d(patches.permute(0, 3, 1, 2).to(dtype), weight, bias).relu_()
        return self.rest(latent)  # type: ignore[no-any-return]


class _NatureModule(EncoderModule):
    """See `Nature`."""

    def __init__(self, frame: tuple[int, int, int], width: int) -> None:
        super().__init__()
        height, width_px, colours = frame
        self.out_features = width
        self.first = orthogonal(nn.Conv2d(colours, 32, 8, 4))
        sides = [((n - 8) // 4 + 1 - 4) // 2 + 1 - 2 for n in (height, width_px)]
        self.rest = nn.Sequential(
            nn.ReLU(inplace=True),
            orthogonal(nn.Conv2d(32, 64, 4, 2)),
            nn.ReLU(inplace=True),
            orthogonal(nn.Conv2d(64, 64, 3, 1)),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            orthogonal(nn.Linear(64 * sides[0] * sides[1], width)),
            nn.ReLU(inplace=True),
        )
        self.to(memory_format=torch.channels_last)

    def prepare(self, parts: Tensors) -> Tensors:
        """The frames alone, as they are."""
        return {Part.frame: parts[Part.frame]}

    def forward(self, prepared: Tensors) -> Tensor:
        """Frames (B, H, W, C) holding 0..255 in any dtype -> (B, width)."""
        frames = prepared[Part.frame]
        weight, bias, dtype = _centred(self.first, frames)
        # As (B, C, H, W) they are channels_last.
        latent = F.conv2d(frames.permute(0, 3, 1, 2).to(dtype), weight, bias, self.first.stride)
        return self.rest(latent)  # type: ignore[no-any-return]


def _centred(conv: nn.Conv2d, pixels: Tensor) -> tuple[Tensor, Tensor, torch.dtype]:
    """Weight and bias of `conv` for pixels in 0..255 as if these were brought to −1..1, and the dtype to compute in.

    Centred, because a bright background would otherwise push every unit the same way and slow learning down. Conv of
    (x/127.5 − 1) is conv of x with weights/127.5, less the weights' sum.
    """
    device = pixels.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else conv.weight.dtype
    bias = -conv.weight.sum((1, 2, 3)) if conv.bias is None else conv.bias - conv.weight.sum((1, 2, 3))
    return conv.weight / 127.5, bias, dtype
