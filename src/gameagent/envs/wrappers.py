"""Observation transforms for a whole batch: grey, resize, stack. Live envs and stored episodes use the same ones.

chain = Chain(raw_space, frame_transforms(raw_space, size=56, grey=False, stack=4))
parts = chain(parts, fresh)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numba
import numpy as np

from gameagent.contract import Array, BoolArray, FloatArray, IntArray, Obs, ObsPart, ObsSpace, Part
from gameagent.envs.base import State, Transform
from gameagent.errors import EnvError


class Grey(Transform):
    """RGB frames to one channel of brightness (ITU-R BT.601, in integers: 77 R + 150 G + 29 B, over 256, rounded)."""

    def __init__(self, space: ObsSpace) -> None:
        height, width, channels = _frame(space, "grey")
        if channels != 3:
            raise EnvError(f"grey needs RGB frames of 3 channels, this game draws {channels}; leave out grey=true")
        self.space = _with_frame(space, (height, width, 1))

    def __call__(self, parts: Obs, fresh: BoolArray, rows: IntArray | None = None) -> Obs:
        """The parts with grey frames."""
        frames = np.ascontiguousarray(parts["frame"])
        out = np.empty((*frames.shape[:3], 1), np.uint8)
        _grey(frames, out)
        return {**parts, "frame": out}


class Resize(Transform):
    """Area average to a square: each new pixel is the mean of the area that it covers, rounded half up.

    Whole ratios (112 → 56) are computed in integers, exactly; other sizes weight the pixels on the border of an area by
    the share that lies inside, which also serves for enlarging.

    Args:
        space: of the raw observations.
        size: side of the square, pixels.
    """

    def __init__(self, space: ObsSpace, size: int) -> None:
        self._source = _frame(space, "frame_size")
        self._size = size
        self.space = _with_frame(space, (size, size, self._source[2]))
        height, width, _ = self._source
        self._whole = height % size == 0 and width % size == 0
        self._rows, self._columns = _spans(height, size), _spans(width, size)

    def __call__(self, parts: Obs, fresh: BoolArray, rows: IntArray | None = None) -> Obs:
        """The parts with resized frames."""
        frames = np.ascontiguousarray(parts["frame"])
        height, width, channels = self._source
        out = np.empty((len(frames), self._size, self._size, channels), np.uint8)
        if self._whole:
            _shrink(frames, out, height // self._size, width // self._size)
        else:
            _resample(frames, out, *self._rows, *self._columns)
        return {**parts, "frame": out}


class Stack(Transform):
    """The last `k` frames (and features), oldest first, in the last axis. After a reset all k are the first one.

    Args:
        space: of the observations before.
        k: how many, 2 or more.
    """

    def __init__(self, space: ObsSpace, k: int) -> None:
        self._k = k
        self._names = [name for name, part in space.items() if part.kind in (Part.frame, Part.features)]
        if not self._names:
            raise EnvError(f"frame_stack stacks frames or features; this observation has only {list(space)}")
        self._memory: Obs = {}
        self.space = ObsSpace({n: _stacked(p, k) if n in self._names else p for n, p in space.items()})

    def __call__(self, parts: Obs, fresh: BoolArray, rows: IntArray | None = None) -> Obs:
        """The parts with stacked frames and features. Raises ValueError for another batch than it was made for."""
        out = dict(parts)
        for name in self._names:
            new = parts[name]
            memory = self._memory.get(name)
            if memory is None or (rows is None and len(memory) != len(new)):
                if rows is not None or not fresh.all():
                    raise ValueError(
                        f"this stack is made for another batch than {len(new)} envs; make a new one for it"
                    )
                memory = self._memory[name] = np.zeros((len(new), *self.space[name].shape), new.dtype)
            _push(memory, new, fresh, rows)
            out[name] = memory.copy() if rows is None else memory[rows]
        return out

    def peek(self, parts: Obs) -> Obs:
        """What it gave last."""
        return {name: self._memory[name].copy() if name in self._names else part for name, part in parts.items()}

    def get_state(self) -> State:
        """The stacks."""
        return {name: memory.copy() for name, memory in self._memory.items()}

    def set_state(self, state: State) -> None:
        """Inverse of `get_state`. Raises EnvError for stacks of another shape."""
        for name, memory in state.items():
            if name not in self._names or np.shape(memory)[1:] != self.space[name].shape:
                raise EnvError(
                    f"stacked {name} of shape {np.shape(memory)[1:]} don't fit {self.space}; frame_stack differs"
                )
        self._memory = {name: np.array(memory) for name, memory in state.items()}


class Chain(Transform):
    """Several transforms, one after the other; none is fine too."""

    def __init__(self, space: ObsSpace, transforms: Sequence[Transform] = ()) -> None:
        self.transforms = tuple(transforms)
        self.space = self.transforms[-1].space if self.transforms else space

    def __call__(self, parts: Obs, fresh: BoolArray, rows: IntArray | None = None) -> Obs:
        """The parts after all transforms."""
        for transform in self.transforms:
            parts = transform(parts, fresh, rows)
        return parts

    def restart(self, parts: Obs, rows: IntArray) -> Obs:
        """The first observations of new episodes: of a whole batch of parts, those of the envs `rows`, transformed."""
        fresh = np.ones(len(rows), np.bool_)
        if len(rows) == len(next(iter(parts.values()))):
            return self(parts, fresh)
        return self({name: part[rows] for name, part in parts.items()}, fresh, rows)

    def peek(self, parts: Obs) -> Obs:
        """What it gave last, made again from the parts that it was given last."""
        for transform in self.transforms:
            parts = transform.peek(parts)
        return parts

    def get_state(self) -> State:
        """What each transform remembers, by its position."""
        return {str(i): transform.get_state() for i, transform in enumerate(self.transforms)}

    def set_state(self, state: State) -> None:
        """Inverse of `get_state`. Raises EnvError for a state of other transforms."""
        if set(state) != {str(i) for i in range(len(self.transforms))}:
            raise EnvError(f"a state of {len(state)} transforms for an env that has {len(self.transforms)}")
        for i, transform in enumerate(self.transforms):
            transform.set_state(state[str(i)])


def frame_transforms(space: ObsSpace, *, size: int | None, grey: bool, stack: int) -> list[Transform]:
    """The usual chain, in this order: grey, resize, stack. What the space has no frame for is left out.

    Raises:
        EnvError: frames that cannot be made grey, or nothing to stack.
    """
    made: list[Transform] = []
    if "frame" in space and grey:
        made.append(Grey(space))
        space = made[-1].space
    if "frame" in space and size is not None and space["frame"].shape[:2] != (size, size):
        made.append(Resize(space, size))
        space = made[-1].space
    if stack > 1:
        made.append(Stack(space, stack))
    return made


def _frame(space: ObsSpace, what: str) -> tuple[int, int, int]:
    if "frame" not in space:
        raise EnvError(f"{what} works on frames; this observation has {list(space)}")
    height, width, channels = space["frame"].shape
    return height, width, channels


def _with_frame(space: ObsSpace, shape: tuple[int, int, int]) -> ObsSpace:
    return ObsSpace({n: ObsPart(Part.frame, shape) if n == "frame" else p for n, p in space.items()})


def _stacked(part: ObsPart, k: int) -> ObsPart:
    names = tuple(f"{n}[{age - k + 1}]" for age in range(k) for n in part.names)
    return replace(part, shape=(*part.shape[:-1], part.shape[-1] * k), names=names)


def _spans(source: int, target: int) -> tuple[IntArray, FloatArray]:
    """First source index (target,) and weight of each source pixel (target, width) that an output pixel covers."""
    edges = np.arange(target + 1) * (source / target)
    first = np.minimum(np.floor(edges[:-1] + 1e-9).astype(np.int64), source - 1)
    width = int(np.ceil(source / target)) + 1
    index = first[:, None] + np.arange(width)
    inside = np.minimum(edges[1:, None], index + 1) - np.maximum(edges[:-1, None], index)
    weights = np.where(index < source, np.clip(inside, 0, None), 0.0)
    return first, weights / weights.sum(1, keepdims=True)


def _push(memory: Array, new: Array, fresh: BoolArray, rows: IntArray | None) -> None:
    """Drop the oldest of each row and append the newest; fresh rows are filled with it."""
    depth = new.shape[-1]
    if new.ndim == 4 and new.flags.c_contiguous:
        _push_frames(memory, new, fresh, np.arange(len(new)) if rows is None else rows)
        return
    where = np.arange(len(new)) if rows is None else rows
    past = np.where(
        fresh.reshape(-1, *[1] * (new.ndim - 1)),
        np.tile(new, memory.shape[-1] // depth)[..., depth:],
        memory[where][..., depth:],
    )
    memory[where] = np.concatenate([past, new], -1)


# Each of these compiled functions stands by itself: numba's cache notices changes of this file, not of others.
@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _grey(frames: Array, out: Array) -> None:
    flat, grey = frames.reshape(-1), out.reshape(-1)
    for i in range(grey.size):
        grey[i] = (77 * flat[3 * i] + 150 * flat[3 * i + 1] + 29 * flat[3 * i + 2] + 128) >> 8


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _shrink(frames: Array, out: Array, ratio_y: int, ratio_x: int) -> None:
    """Mean of whole blocks. Division by the area is a multiplication, exact for areas up to a million pixels."""
    number, height, width, channels = out.shape
    area = ratio_y * ratio_x
    half, inverse = np.uint64(area // 2), np.uint64((2**48 + area - 1) // area)
    down = np.zeros(frames.shape[2] * channels, np.uint32)
    across = np.zeros(down.size - (ratio_x - 1) * channels, np.uint32)
    for n in range(number):
        for y in range(height):
            # Whole lines are summed first, also where no block begins: such loops run on vector registers.
            down[:] = frames[n, y * ratio_y].reshape(-1)
            for k in range(1, ratio_y):
                down += frames[n, y * ratio_y + k].reshape(-1)
            across[:] = down[: across.size]
            for k in range(1, ratio_x):
                across += down[k * channels : k * channels + across.size]
            line = out[n, y].reshape(-1)
            for x in range(width):
                for c in range(channels):
                    total = np.uint64(across[x * ratio_x * channels + c]) + half
                    line[x * channels + c] = (total * inverse) >> np.uint64(48)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _resample(
    frames: Array, out: Array, first_y: IntArray, weight_y: FloatArray, first_x: IntArray, weight_x: FloatArray
) -> None:
    number, height, width, channels = out.shape
    down = np.zeros(frames.shape[2] * channels, np.float32)
    pixel = np.zeros(channels, np.float32)
    for n in range(number):
        for y in range(height):
            down[:] = np.float32(0.0)
            for k in range(weight_y.shape[1]):
                weight = np.float32(weight_y[y, k])
                if weight > 0.0:
                    source = frames[n, first_y[y] + k].reshape(-1)
                    for i in range(down.size):
                        down[i] += weight * np.float32(source[i])
            line = out[n, y].reshape(-1)
            for x in range(width):
                pixel[:] = np.float32(0.5)
                for k in range(weight_x.shape[1]):
                    weight = np.float32(weight_x[x, k])
                    if weight > 0.0:
                        for c in range(channels):
                            pixel[c] += weight * down[(first_x[x] + k) * channels + c]
                for c in range(channels):
                    line[x * channels + c] = np.uint8(min(pixel[c], np.float32(255.0)))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _push_frames(memory: Array, new: Array, fresh: BoolArray, rows: IntArray) -> None:
    depth, total = new.shape[3], memory.shape[3]
    for j in range(new.shape[0]):
        stack, frame = memory[rows[j]].reshape(-1), new[j].reshape(-1)
        if fresh[j]:
            for p in range(frame.size // depth):
                for c in range(total):
                    stack[p * total + c] = frame[p * depth + c % depth]
        else:
            # All bytes move by one frame's depth, across the borders of pixels too: the last ones are written next.
            stack[: stack.size - depth] = stack[depth:].copy()
            for p in range(frame.size // depth):
                for c in range(depth):
                    stack[p * total + total - depth + c] = frame[p * depth + c]
