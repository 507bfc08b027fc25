"""`Mlp` and `Auto`: which parts they read, and what they say where there are none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gameagent.contract import ContractError, ObsPart, ObsSpace, Part
from gameagent.nets.encoders import Activation, Auto, Mlp, SideBySide, Tiny

BOTH = ObsSpace(frame=(56, 56, 3), features=(5,))


def test_mlp_is_the_layers_it_says() -> None:
    module = Mlp(hidden=(8, 3), activation=Activation.relu).build(ObsSpace(features=(5,)))
    first, second = (layer for layer in module.layers if isinstance(layer, nn.Linear))
    x = torch.randn(7, 5)
    expected = torch.relu(second(torch.relu(first(x))))
    assert torch.equal(module(module.prepare({"features": x})), expected)
    assert module.out_features == 3


@pytest.mark.parametrize("activation", Activation)
def test_mlp_takes_every_activation_by_its_name(activation: Activation) -> None:
    module = Mlp(activation=activation.value).build(ObsSpace(features=(2,)))
    kind = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU}[activation.value]
    assert isinstance(module.layers[1], kind)


def test_mlp_reads_features_that_were_cast() -> None:
    module = Mlp().build(ObsSpace(features=(5,)))
    x = torch.randn(3, 5).bfloat16()
    assert torch.equal(module({"features": x}), module({"features": x.float()}))


def test_mlp_without_features_names_both_sides() -> None:
    with pytest.raises(ContractError, match=r"reads features, .* gives ObsSpace\(frame=\(56, 56, 3\)\)"):
        Mlp().build(ObsSpace(frame=(56, 56, 3)))


def test_auto_picks_by_what_there_is() -> None:
    frame, features = Auto(width=32).build(ObsSpace(frame=(56, 56, 3))), Auto().build(ObsSpace(features=(5,)))
    assert type(frame) is type(Tiny().build(ObsSpace(frame=(56, 56, 3))))
    assert frame.out_features == 32
    assert type(features) is type(Mlp().build(ObsSpace(features=(5,))))


def test_auto_puts_frames_and_features_side_by_side() -> None:
    module = Auto(width=32).build(BOTH)
    assert isinstance(module, SideBySide)
    parts = {"frame": torch.randint(0, 256, (4, 56, 56, 3), dtype=torch.uint8), "features": torch.randn(4, 5)}
    prepared = module.prepare(parts)
    assert prepared["frame"].dtype == torch.uint8
    assert prepared["features"].dtype == torch.float32
    frame, features = module.encoders
    expected = torch.cat([frame(frame.prepare(parts)), features(features.prepare(parts))], -1)
    assert torch.equal(module(prepared), expected)
    assert expected.shape == (4, module.out_features) == (4, 32 + 64)


def test_auto_ignores_parts_that_no_encoder_reads() -> None:
    space = ObsSpace({"features": ObsPart(Part.features, (5,)), "audio": ObsPart(Part.audio, (16,))})
    module = Auto().build(space)
    prepared = module.prepare({"features": torch.randn(2, 5), "audio": torch.randn(2, 16)})
    assert list(prepared) == ["features"]


def test_auto_with_nothing_to_read_says_what_it_reads() -> None:
    with pytest.raises(ContractError, match="auto reads frames and features"):
        Auto().build(ObsSpace({"text": ObsPart(Part.text, (), max_chars=80)}))
