"""Writes one episode, a step at a time, so that it counts only when it is complete.

Use: `writer = store.writer(seed=7)`, `writer.add(parts, action=3, reward=1.0)` each step, `writer.finish(score=12)`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import ZstdCodec

from gameagent.contract import ActionSpace, Array, ObsSpace

CHUNK_ROWS = 256
"""Most rows of a chunk."""
CHUNK_BYTES = 16 * 2**20
"""Most uncompressed bytes of a chunk: what one writer holds in memory."""
UTF8_BYTES = 4
"""Most bytes of one character of text."""

_TEMPORARY = "unfinished-"
# A checksum turns a flipped bit into an error; level 3 is zstd's own default and keeps up with 25,000 frames/s.
_CODEC = ZstdCodec(level=3, checksum=True)


def create_store(path: Path, attributes: dict[str, Any]) -> None:
    """Make an empty Zarr group with attributes; it appears under its name only when whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    zarr.create_group(temporary, zarr_format=3, attributes=attributes)
    temporary.rename(path)


def clear_leftovers(path: Path) -> None:
    """Remove unfinished episodes of a store."""
    for folder in path.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(folder)


class EpisodeWriter:
    """One episode under way. Holds at most one chunk of observations in memory.

    Args:
        folder: where the finished episode will be.
        obs_space, action_space: of the store.
        attributes: what is known beforehand (seed, source).
        on_finish: called with the folder once the episode is complete.
    """

    def __init__(
        self,
        folder: Path,
        obs_space: ObsSpace,
        action_space: ActionSpace,
        attributes: dict[str, Any],
        on_finish: Callable[[Path], None] = lambda folder: None,
    ) -> None:
        self.folder, self._obs_space, self._action_space = folder, obs_space, action_space
        self._attributes, self._on_finish = attributes, on_finish
        self._temporary = folder.with_name(f"{_TEMPORARY}{folder.name}")
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._group = zarr.create_group(self._temporary, zarr_format=3)
        self._arrays, self._rows = self._make_arrays()
        self._actions: list[int] = []
        self._labels: list[int] = []
        self._rewards: list[float] = []
        self._terms: list[Mapping[str, float]] = []

    def _make_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """An extendable array a part, and the buffer of the chunk that is being filled."""
        arrays, rows = {}, {}
        for name, part in self._obs_space.items():
            text = name == "text"
            shape = (part.max_chars * UTF8_BYTES,) if text else part.shape
            dtype = np.dtype("uint8" if text else part.dtype)
            row_bytes = max(1, int(np.prod(shape)) * dtype.itemsize)
            count = int(np.clip(CHUNK_BYTES // row_bytes, 1, CHUNK_ROWS))
            arrays[name] = self._group.create_array(
                f"obs/{name}", shape=(0, *shape), chunks=(count, *shape), dtype=dtype, compressors=_CODEC
            )
            rows[name] = np.empty((count, *shape), dtype)
        return arrays, rows

    def __len__(self) -> int:
        return len(self._actions)

    def add(
        self,
        parts: Mapping[str, Any],
        action: int,
        reward: float,
        terms: Mapping[str, float] | None = None,
        label: int | None = None,
    ) -> None:
        """One step: what the player saw *before* it acted, what it played, and what that earned.

        Args:
            parts: one observation, each part of the store's shape (text: a str). Copied.
            action: flat action that was played.
            reward: what it earned.
            terms: the reward's parts.
            label: flat action that the player wanted, where that is not what was played.
        """
        if parts.keys() != self._obs_space.keys():
            raise ValueError(f"the store records {sorted(self._obs_space)}, got {sorted(parts)}")
        for flat in (action, action if label is None else label):
            if not 0 <= flat < self._action_space.n:
                raise ValueError(f"flat action ids go from 0 to {self._action_space.n - 1}, got {flat}")
        step = len(self._actions)
        for name, buffer in self._rows.items():
            row = _encode(parts[name], len(buffer[0])) if name == "text" else np.asarray(parts[name])
            if row.shape != buffer.shape[1:] or row.dtype != buffer.dtype:
                wanted = f"{buffer.dtype} {buffer.shape[1:]}"
                raise ValueError(f"the store records {name} as {wanted}, got {row.dtype} {row.shape}")
            buffer[step % len(buffer)] = row
            if (step + 1) % len(buffer) == 0:
                self._arrays[name].append(buffer)
        self._actions.append(int(action))
        self._labels.append(int(action if label is None else label))
        self._rewards.append(float(reward))
        self._terms.append(dict(terms or {}))

    def finish(self, *, score: float, terminated: bool = True, truncated: bool = False) -> None:
        """Write the rest and give the episode its name; from then on it counts.

        Args:
            score: the game's own score.
            terminated: it ended by the game's rules.
            truncated: something else cut it, a time limit, say.

        Raises:
            ValueError: no step was added.
        """
        length = len(self._actions)
        if not length:
            raise ValueError("an episode needs at least one step")
        for name, buffer in self._rows.items():
            if length % len(buffer):
                self._arrays[name].append(buffer[: length % len(buffer)])
        with_labels = self._labels != self._actions
        names = sorted({name for terms in self._terms for name in terms})
        self._put("actions", self._actions, np.int64)
        if with_labels:
            self._put("labels", self._labels, np.int64)
        self._put("rewards", self._rewards, np.float64)
        for name in names:
            self._put(f"terms/{name}", [terms.get(name, 0.0) for terms in self._terms], np.float64)
        ending = {"score": float(score), "terminated": bool(terminated), "truncated": bool(truncated)}
        shape = {"length": length, "terms": names, "labels": with_labels, "files": self._files()}
        self._group.update_attributes({**self._attributes, **ending, **shape, "complete": True})
        self._temporary.rename(self.folder)
        self._on_finish(self.folder)

    def discard(self) -> None:
        """Give the episode up and remove what was written of it."""
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _put(self, name: str, values: list[Any], dtype: type) -> None:
        data: Array = np.asarray(values, dtype)
        self._group.create_array(name, data=data, chunks=data.shape, compressors=_CODEC)

    def _files(self) -> dict[str, int]:
        """Every file of the arrays with its size, by path inside the episode."""
        files = (f for f in sorted(self._temporary.rglob("*")) if f.is_file() and f.parent != self._temporary)
        return {f.relative_to(self._temporary).as_posix(): f.stat().st_size for f in files}


def _encode(text: Any, width: int) -> Array:
    """Text -> its UTF-8 bytes, padded with zeros to `width`."""
    raw = str(text).encode()
    if len(raw) > width:
        raise ValueError(f"text of {len(raw)} bytes where the store has room for {width}: {text!r:.80}")
    return np.frombuffer(raw.ljust(width, b"\0"), np.uint8)
