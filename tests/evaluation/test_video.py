"""Videos: what is written can be read back, at the right size, rate and length, and only when whole."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from gameagent.contract import Array
from gameagent.evaluation.video import factor_for, upscale, write_video


def bars(count: int, height: int = 48, width: int = 64) -> Iterator[Array]:
    """A white bar that wanders to the right."""
    for i in range(count):
        frame = np.zeros((height, width, 3), np.uint8)
        frame[:, 4 * (i % 12) : 4 * (i % 12) + 8] = 255
        yield frame


def test_every_frame_is_read_back_where_it_was(tmp_path: Path) -> None:
    assert write_video(tmp_path / "v.mp4", bars(20), 30) == 20
    with av.open(str(tmp_path / "v.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")
        assert stream.average_rate == 30
        read = [f.to_ndarray(format="rgb24") for f in container.decode(stream)]
    assert len(read) == 20
    for written, got in zip(bars(20), read, strict=True):
        assert np.abs(written.astype(int) - got).mean() < 6


def test_odd_sizes_are_padded_to_even_ones(tmp_path: Path) -> None:
    write_video(tmp_path / "v.mp4", bars(3, height=49, width=63), Fraction(15, 2))
    with av.open(str(tmp_path / "v.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.height, stream.width, stream.average_rate) == (50, 64, Fraction(15, 2))


def test_a_failed_video_leaves_the_old_file_and_no_scraps(tmp_path: Path) -> None:
    (tmp_path / "v.mp4").write_bytes(b"old")

    def broken() -> Iterator[Array]:
        yield from bars(3)
        raise RuntimeError("emulator died")

    with pytest.raises(RuntimeError, match="emulator died"):
        write_video(tmp_path / "v.mp4", broken(), 30)
    assert [p.name for p in tmp_path.iterdir()] == ["v.mp4"]
    assert (tmp_path / "v.mp4").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([], "at least one frame"),
        ([np.zeros((4, 4, 3), np.float32)], "frame 0 is .* float32"),
        ([np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)], r"frame 1 is \(4, 6, 3\)"),
    ],
)
def test_unusable_frames_are_named(tmp_path: Path, frames: list[Array], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        write_video(tmp_path / "v.mp4", frames, 30)
    assert not list(tmp_path.iterdir())


def test_upscaling_repeats_pixels() -> None:
    frame = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    big = upscale(frame, 3)
    assert big.shape == (6, 6, 3)
    assert (big[::3, ::3] == frame).all()
    assert (big[2::3, 2::3] == frame).all()


@pytest.mark.parametrize(("height", "factor"), [(112, 4), (240, 2), (224, 2), (84, 5), (600, 1)])
def test_frames_are_brought_near_to_448_rows(height: int, factor: int) -> None:
    assert factor_for(height) == factor
