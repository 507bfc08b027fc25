"""`patch_layer` is a linear layer with ReLU, whatever the size of its blocks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gameagent.nets import patches
from gameagent.nets.patches import patch_layer


def plain(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.nn.functional.linear(x.to(weight.dtype), weight, bias))


@given(
    rows=st.integers(1, 40),
    block_rows=st.integers(1, 50),
    dtype=st.sampled_from([torch.uint8, torch.float32, torch.bfloat16]),
    seed=st.integers(0, 1000),
)
def test_equals_the_plain_layer_in_values_and_gradients(
    rows: int, block_rows: int, dtype: torch.dtype, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, (rows, 3, 12), generator=generator).to(dtype)
    parameters = [torch.randn(5, 12, generator=generator) / 255, torch.randn(5, generator=generator)]
    grad = torch.randn(rows, 3, 5, generator=generator)
    results = []
    before, patches.BLOCK_BYTES = patches.BLOCK_BYTES, block_rows * 12 * 4
    try:
        for function in (plain, patch_layer):
            weight, bias = (p.clone().requires_grad_() for p in parameters)
            out = function(x, weight, bias)
            out.backward(grad)
            results.append((out.detach(), weight.grad, bias.grad))
    finally:
        patches.BLOCK_BYTES = before
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-4)


def test_gradients_are_those_of_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "BLOCK_BYTES", 3 * 4 * 8)  # three rows of four float64
    torch.manual_seed(0)
    x = torch.randint(0, 9, (7, 4), dtype=torch.uint8)
    weight, bias = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda w, b: patch_layer(x, w, b), (weight.requires_grad_(), bias.requires_grad_()))


def test_patches_themselves_are_left_alone() -> None:
    x = torch.full((4, 3), 7, dtype=torch.uint8)
    patch_layer(x, torch.randn(2, 3, requires_grad=True), torch.zeros(2)).sum().backward()
    assert (x == 7).all()
