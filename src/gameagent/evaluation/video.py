"""MP4 files: H.264 that every browser and phone plays, written with PyAV (no ffmpeg program needed).

write_video("outputs/x/video.mp4", frames, fps=30)    # frames: any iterable of (H, W, 3) uint8
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from gameagent.contract import Array
from gameagent.files import replacing

CRF = 20
"""x264 quality: 0 lossless, 51 worst; 20 keeps pixel art crisp at some 100 kB per 10 s."""


def upscale(frame: Array, factor: int) -> Array:
    """Nearest-neighbour enlargement of (H, W, C) by a whole factor: pixels stay square and sharp."""
    enlarged: Array = frame.repeat(factor, 0).repeat(factor, 1)
    return enlarged


def factor_for(height: int, target: int = 448) -> int:
    """The whole factor that brings a frame of this height nearest to `target` rows (112 -> 4, 240 -> 2)."""
    return max(1, round(target / height))


def write_video(path: str | Path, frames: Iterable[Array], fps: float | Fraction) -> int:
    """Encode frames as H.264/yuv420p MP4, odd sizes padded by a row or column. Returns how many frames were written.

    The file appears under its name only when it is whole.

    Args:
        path: ends in .mp4; folders are made.
        frames: (H, W, 3) uint8, all of one size; consumed as they come, so memory stays small.
        fps: frames a second.

    Raises:
        ValueError: no frames, or one of another size, type or number of channels.
    """
    with replacing(path) as part:
        return _encode(part, frames, Fraction(fps).limit_denominator(1000))


def _encode(path: Path, frames: Iterable[Array], fps: Fraction) -> int:
    # faststart puts the index first: browsers begin to play before the whole file is there.
    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream("libx264", rate=fps, options={"crf": str(CRF), "preset": "veryfast"})
        stream.pix_fmt = "yuv420p"
        shape: tuple[int, ...] | None = None
        count = 0
        for frame in frames:
            if shape is None:
                shape = frame.shape
                stream.height, stream.width = (n + n % 2 for n in shape[:2])
            _check(frame, shape, count)
            picture = av.VideoFrame.from_ndarray(_even(frame), format="rgb24")
            container.mux(stream.encode(picture))
            count += 1
        if not count:
            raise ValueError("a video needs at least one frame, got none")
        container.mux(stream.encode(None))
    return count


def _check(frame: Array, shape: tuple[int, ...], index: int) -> None:
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or frame.shape != shape:
        raise ValueError(
            f"video frames are (H, W, 3) uint8, all of one size: frame {index} is {frame.shape} {frame.dtype}, "
            f"the first was {shape}"
        )


def _even(frame: Array) -> Array:
    """yuv420p shares one colour among 2×2 pixels, so both sides must be even."""
    height, width = frame.shape[:2]
    if height % 2 or width % 2:
        return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return np.ascontiguousarray(frame)
