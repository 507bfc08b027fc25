"""A linear layer with ReLU over the pixels of patches, worked off in blocks that fit a CPU's cache.

latent = patch_layer(patches, weight, bias)  # (…, K) bytes or floats -> (…, M)

Bytes become floats block by block, in forward and again in backward, so that the float patches, four times as large as
the frames, are never written to memory and read back: in PPO on 112×112 frames that is a third of this layer's time
(benchmarks/encoder_speed.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK_BYTES = 2**21
"""Size of a block of float patches."""


def patch_layer(patches: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`relu(patches @ weight.T + bias)` in the weight's dtype; no gradient goes to the patches.

    Args:
        patches: (…, K) of any dtype, contiguous.
        weight: (M, K).
        bias: (M,).
    """
    rows: Tensor = _PatchLayer.apply(patches.reshape(-1, patches.shape[-1]), weight, bias)
    return rows.view(*patches.shape[:-1], weight.shape[0])


class _PatchLayer(torch.autograd.Function):
    """See `patch_layer`."""

    @staticmethod
    def forward(ctx: Any, patches: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """(R, K), (M, K), (M,) -> (R, M)."""
        out = weight.new_empty(len(patches), len(weight))
        for rows, block in _blocks(patches, weight.dtype):
            torch.addmm(bias, block, weight.t(), out=out[rows]).relu_()
        ctx.save_for_backward(patches, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor]:
        """Gradients of weight and bias."""
        patches, out = ctx.saved_tensors
        weight, bias = grad.new_zeros(grad.shape[1], patches.shape[1]), grad.new_zeros(grad.shape[1])
        for rows, block in _blocks(patches, grad.dtype):
            active = torch.ops.aten.threshold_backward(grad[rows], out[rows], 0)
            weight.addmm_(active.t(), block)
            bias += active.sum(0)
        return None, weight, bias


def _blocks(patches: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
    """Which rows, and these rows as `dtype`. The next block is written over the last."""
    size = max(BLOCK_BYTES // (dtype.itemsize * patches.shape[1]), 1)
    memory = (
        None if patches.dtype == dtype else patches.new_empty(min(size, len(patches)), patches.shape[1], dtype=dtype)
    )
    for start in range(0, len(patches), size):
        rows = slice(start, start + size)
        block = patches[rows]
        yield rows, block if memory is None else memory[: len(block)].copy_(block)
