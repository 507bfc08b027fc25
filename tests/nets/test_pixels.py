"""Frame encoders: patches and folded scaling compute exactly what ordinary convolutions of pixels/255 do."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from pydantic import ValidationError
from torch import Tensor, nn

from gameagent.contract import ContractError, ObsSpace
from gameagent.nets.base import EncoderModule
from gameagent.nets.encoders import Nature, Tiny


def frames(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def ordinary_conv(module: EncoderModule, patch: int, colours: int) -> nn.Conv2d:
    """The textbook p×p stride-p convolution with the same weights; those are stored row, column, colour."""
    conv = nn.Conv2d(colours, module.first.out_channels, patch, patch)
    stored = module.first.weight.detach().reshape(-1, patch, patch, colours)
    conv.weight.data = stored.permute(0, 3, 1, 2).contiguous()
    conv.bias.data = module.first.bias.detach().clone()
    return conv


@pytest.mark.parametrize(("side", "colours", "patch"), [(112, 3, 8), (56, 3, 4), (56, 12, 4), (36, 1, 4)])
def test_tiny_equals_an_ordinary_convolution_of_centred_pixels(side: int, colours: int, patch: int) -> None:
    module = Tiny(width=32).build(ObsSpace(frame=(side, side, colours)))
    conv, batch = ordinary_conv(module, patch, colours), frames(5, side, side, colours)
    nn.init.normal_(module.first.bias)
    conv.bias.data = module.first.bias.detach().clone()

    prepared, scaled = module.prepare({"frame": batch}), batch.permute(0, 3, 1, 2).double() / 127.5 - 1
    expected = module.rest(torch.relu(conv(scaled.float())))
    torch.testing.assert_close(module(prepared), expected, rtol=0, atol=1e-6 * expected.abs().max().item())
    module.double()
    torch.testing.assert_close(module(prepared), module.rest(torch.relu(conv.double()(scaled))), rtol=0, atol=1e-12)


def test_tiny_has_the_gradients_of_an_ordinary_convolution() -> None:
    module = Tiny(width=32).build(ObsSpace(frame=(56, 56, 3)))
    conv, batch = ordinary_conv(module, 4, 3), frames(5, 56, 56, 3)
    module(module.prepare({"frame": batch})).square().sum().backward()
    found = {name: p.grad.clone() for name, p in module.named_parameters()}
    module.zero_grad()
    module.rest(torch.relu(conv(batch.permute(0, 3, 1, 2).float() / 127.5 - 1))).square().sum().backward()

    weight = conv.weight.grad.permute(0, 2, 3, 1).reshape(found["first.weight"].shape)
    expected = {"first.weight": weight, "first.bias": conv.bias.grad}
    expected |= {f"rest.{name}": p.grad for name, p in module.rest.named_parameters()}
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        scale = expected[name].abs().max()
        torch.testing.assert_close(gradient / scale, expected[name] / scale, rtol=0, atol=1e-5, msg=name)


def test_patch_is_8_from_100_pixels_on_and_4_below() -> None:
    patches = {n: Tiny().build(ObsSpace(frame=(n, n, 3))).patch for n in (112, 100, 99, 56)}
    assert patches == {112: 8, 100: 8, 99: 4, 56: 4}
    assert Tiny(patch=14).build(ObsSpace(frame=(112, 112, 3))).patch == 14


@settings(max_examples=25)
@given(height=st.integers(1, 20), width=st.integers(1, 20), colours=st.integers(1, 4), patch=st.sampled_from([1, 2, 4]))
def test_prepare_is_a_permutation_of_the_pixels_plus_black_at_the_edges(
    height: int, width: int, colours: int, patch: int
) -> None:
    module = Tiny(patch=patch, channels=(2,), width=2).build(ObsSpace(frame=(height, width, colours)))
    batch = frames(2, height, width, colours)
    found = module.prepare({"frame": batch})["frame"]
    rows, columns = -(-height // patch), -(-width // patch)
    assert found.shape == (2, rows, columns, patch * patch * colours)
    assert found.dtype == torch.uint8
    tiles = found.reshape(2, rows, columns, patch, patch, colours)
    for y in range(height):
        for x in range(width):
            assert torch.equal(tiles[:, y // patch, x // patch, y % patch, x % patch], batch[:, y, x])
    assert found.sum(dtype=torch.int64) == batch.sum(dtype=torch.int64)


def test_prepare_takes_any_leading_axes() -> None:
    module = Tiny().build(ObsSpace(frame=(58, 56, 3)))
    rollout = frames(3, 2, 58, 56, 3)
    flat = module.prepare({"frame": rollout.flatten(0, 1)})["frame"]
    assert torch.equal(module.prepare({"frame": rollout})["frame"].flatten(0, 1), flat)


def test_a_frame_of_uneven_size_equals_one_padded_with_black() -> None:
    module = Tiny(width=16).build(ObsSpace(frame=(58, 61, 3)))
    batch = frames(2, 58, 61, 3)
    padded = torch.zeros(2, 60, 64, 3, dtype=torch.uint8)
    padded[:, :58, :61] = batch
    first = ordinary_conv(module, 4, 3)(padded.permute(0, 3, 1, 2).float() / 127.5 - 1)
    expected = module.rest(torch.relu(first))
    torch.testing.assert_close(module(module.prepare({"frame": batch})), expected, rtol=0, atol=1e-6)


def test_nature_equals_the_papers_network_on_centred_pixels() -> None:
    module = Nature(width=64).build(ObsSpace(frame=(84, 84, 4))).double()
    batch = frames(3, 84, 84, 4)
    paper = nn.Sequential(nn.Conv2d(4, 32, 8, 4).double(), module.rest)
    paper[0].load_state_dict(module.first.state_dict())
    assert [tuple(p.shape) for p in paper.parameters()][0::2] == [
        (32, 4, 8, 8),
        (64, 32, 4, 4),
        (64, 64, 3, 3),
        (64, 64 * 7 * 7),
    ]
    found = module(module.prepare({"frame": batch}))
    torch.testing.assert_close(found, paper(batch.permute(0, 3, 1, 2).double() / 127.5 - 1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoder", [Tiny(width=16), Nature(width=16)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_frames_cast_once_by_the_learner_give_bit_for_bit_the_same(encoder: Tiny | Nature, dtype: torch.dtype) -> None:
    module = encoder.build(ObsSpace(frame=(56, 56, 3)))
    prepared = module.prepare({"frame": frames(4, 56, 56, 3)})
    cast = {name: part.to(dtype) for name, part in prepared.items()}
    assert torch.equal(module(prepared), module(cast))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module(prepared), module(cast))


@pytest.mark.parametrize("encoder", [Tiny(), Nature()])
def test_bfloat16_stays_near_float32(encoder: Tiny | Nature) -> None:
    module = encoder.build(ObsSpace(frame=(56, 56, 3)))
    prepared = module.prepare({"frame": frames(4, 56, 56, 3)})
    with torch.autocast("cpu", torch.bfloat16):
        rough = module(prepared)
    assert rough.dtype == torch.bfloat16
    exact = module(prepared)
    assert (rough.float() - exact).abs().max() < 0.02 * exact.abs().max()


@pytest.mark.parametrize("encoder", [Tiny(), Nature()])
def test_without_frames_the_error_names_both_sides(encoder: Tiny | Nature) -> None:
    with pytest.raises(ContractError, match=r"reads frames, but the environment gives ObsSpace\(features=\(4,\)\)"):
        encoder.build(ObsSpace(features=(4,)))


@pytest.mark.parametrize("side", [56, 112, 84])
def test_tiny_sees_every_pixel(side: int) -> None:
    """Without padding the last rows and columns, a basket at the bottom say, would reach no output."""
    module = Tiny(width=16).build(ObsSpace(frame=(side, side, 3))).double()
    prepared = module.prepare({"frame": torch.full((1, side, side, 3), 128, dtype=torch.uint8)})["frame"]
    pixels = prepared.double().requires_grad_()
    module({"frame": pixels}).sum().backward()
    assert pixels.grad.abs().sum(-1).gt(0).all()


def test_a_frame_that_is_too_small_says_what_to_type() -> None:
    with pytest.raises(ContractError, match="at least 36×36, got 35×84"):
        Nature().build(ObsSpace(frame=(35, 84, 3)))


@pytest.mark.parametrize("fields", [{"patch": 0}, {"channels": []}, {"channels": [0]}, {"width": 0}, {"depth": 3}])
def test_impossible_settings_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Tiny(**fields)
