"""Recorded episodes: one Zarr v3 folder that holds what a player saw, did and got.

    store = EpisodeStore.create("episodes.zarr", obs_space=env.obs_space, action_space=env.actions, env={}, source={})
    frames = EpisodeStore.open("episodes.zarr").episodes[0].obs()["frame"]

Layout, where T is the episode's length and each array has T rows:

    episodes.zarr/                attributes: format, spaces, env, fps, source
      000000/                     attributes: seed, score, length, terminated, truncated, source, complete, files
        obs/frame …               each part in its own dtype; text as UTF-8 bytes padded with zeros
        actions                   int64, the flat action that was played
        labels                    int64, what the player wanted; only where that may differ (noise was mixed in)
        rewards, terms/<name>     float64

Alignment: row t of `obs` is what the player looked at when it chose `actions[t]`; `rewards[t]` is what that action
earned. An action therefore shows in row t+1 and never in its own row, so nothing leaks from the answer into the
question. The picture after the last action is not kept.

An episode is written under a temporary name and renamed when complete, so a killed writer costs at most the episodes
that were under way. `files` lists every file with its size: Zarr itself reads a missing chunk as zeros. One process
writes to a store at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from gameagent.contract import CONTRACT_VERSION, ActionSpace, Array, ContractError, FloatArray, IntArray, Obs, ObsSpace
from gameagent.data.writer import UTF8_BYTES, EpisodeWriter, clear_leftovers, create_store
from gameagent.errors import UserError

FORMAT = "gameagent.episodes"
FORMAT_VERSION = 1
STORE_NAME = "episodes.zarr"
"""What the store is called inside a run folder."""

Plain = dict[str, Any]


class EpisodeError(UserError, ValueError):
    """A store, or an episode in it, can't be used. The message says which, why, and what to type."""


class Episode:
    """One complete episode. Attributes are read at once, arrays when asked for.

    Attributes:
        index: number of the episode in its store, the name of its folder.
        seed: what the environment was reset with.
        score: the game's own score.
        length: number of steps T.
        terminated, truncated: how it ended.
        source: who played it (collector, policy, noise, …).
    """

    def __init__(self, folder: Path, obs_space: ObsSpace) -> None:
        self.folder, self.index, self._obs_space = folder, int(folder.name), obs_space
        attributes = _metadata(folder, self._problem).get("attributes", {})
        if attributes.get("complete") is not True:
            raise self._problem("it was never completed")
        try:
            self.seed, self.length = int(attributes["seed"]), int(attributes["length"])
            self.score = float(attributes["score"])
            self.terminated, self.truncated = bool(attributes["terminated"]), bool(attributes["truncated"])
            self.source: Plain = dict(attributes["source"])
            self._files: dict[str, int] = dict(attributes["files"])
            self.term_names: tuple[str, ...] = tuple(attributes["terms"])
            self.has_labels = bool(attributes["labels"])
        except (KeyError, TypeError, ValueError) as e:
            raise self._problem(f"its attributes are incomplete ({type(e).__name__}: {e})") from None

    def check(self) -> None:
        """Look at every file's size and every array's shape and dtype, without reading data.

        Raises:
            EpisodeError: a file is missing or cut short, or an array isn't what the spaces say.
        """
        for name, size in self._files.items():
            file = self.folder / name
            found = file.stat().st_size if file.is_file() else None
            if found is None:
                raise self._problem(f"its file {name} is missing")
            if found != size:
                raise self._problem(f"its file {name} has {found} bytes where {size} were written")
        for name, (dtype, tail) in self._expected().items():
            metadata = _metadata(self.folder / name, self._problem)
            shape, kind = tuple(metadata.get("shape", ())), metadata.get("data_type")
            if kind != dtype or shape != (self.length, *tail):
                wanted = f"{dtype} {(self.length, *tail)}"
                raise self._problem(f"its array {name} is {kind} {shape}, but must be {wanted}")

    def _expected(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Array name -> dtype and shape of one row."""
        arrays: dict[str, tuple[str, tuple[int, ...]]] = {"actions": ("int64", ()), "rewards": ("float64", ())}
        if self.has_labels:
            arrays["labels"] = ("int64", ())
        arrays |= {f"terms/{name}": ("float64", ()) for name in self.term_names}
        for name, part in self._obs_space.items():
            text = name == "text"
            arrays[f"obs/{name}"] = ("uint8", (part.max_chars * UTF8_BYTES,)) if text else (part.dtype, part.shape)
        return arrays

    def obs(self, rows: slice = slice(None)) -> Obs:
        """Observation parts of some steps, each (rows, *part shape). Reads only the chunks that hold them."""
        parts = {name: self._read(f"obs/{name}", rows) for name in self._obs_space}
        if "text" in parts:
            parts["text"] = np.array([bytes(row).rstrip(b"\0").decode() for row in parts["text"]], object)
        return parts

    @cached_property
    def actions(self) -> IntArray:
        """Flat actions that were played (T,)."""
        return self._read("actions")

    @cached_property
    def labels(self) -> IntArray:
        """Flat actions that the player wanted (T,): what cloning learns. Noise makes `actions` differ from them."""
        return self._read("labels") if self.has_labels else self.actions

    @cached_property
    def rewards(self) -> FloatArray:
        """What each action earned (T,)."""
        return self._read("rewards")

    @cached_property
    def terms(self) -> dict[str, FloatArray]:
        """The rewards' parts by name, each (T,)."""
        return {name: self._read(f"terms/{name}") for name in self.term_names}

    def _read(self, name: str, rows: slice = slice(None)) -> Array:
        try:
            return np.asarray(zarr.open_array(self.folder / name, mode="r")[rows])
        except Exception as e:  # codecs raise whatever they like on damaged bytes
            raise self._problem(f"its array {name} can't be read ({type(e).__name__}: {e})") from e

    def _problem(self, what: str) -> EpisodeError:
        return EpisodeError(
            f"episode {self.folder.name} of {self.folder.parent} is damaged: {what}. To go on without it type\n"
            f"  rm -r {self.folder}"
        )

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"Episode({self.folder.name}, seed={self.seed}, length={self.length}, score={self.score:g})"


class EpisodeStore:
    """A folder of episodes. `create` or `open` one; add with `writer`, read with `episodes`.

    Attributes:
        obs_space: parts of the recorded observations, before any resizing or stacking.
        action_space: labelled heads behind the flat actions.
        env: configuration of the environment they come from (plain form), possibly empty.
        source: who played when the store was begun. Each episode carries its own as well.
        fps: recorded frames a second of play.
        frames_per_step: emulated frames between two rows.
    """

    def __init__(self, path: Path, attributes: Plain) -> None:
        self.path = path
        self.obs_space = ObsSpace.from_dict(attributes["obs_space"])
        self.action_space = ActionSpace.from_dict(attributes["action_space"])
        self.env: Plain = attributes["env"]
        self.source: Plain = attributes["source"]
        self.fps, self.frames_per_step = float(attributes["fps"]), int(attributes["frames_per_step"])
        self._episodes: dict[int, Episode] = {}

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        obs_space: ObsSpace,
        action_space: ActionSpace,
        env: Plain,
        source: Plain,
        fps: float = 30.0,
        frames_per_step: int = 1,
    ) -> EpisodeStore:
        """An empty store. `env` and `source` are plain (JSON) dicts.

        Raises:
            EpisodeError: something is there already.
        """
        path = Path(path)
        if path.exists():
            raise EpisodeError(
                f"{path} exists already; give another out=PATH, or add to it with job.resume={path.parent}"
            )
        attributes = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "contract": CONTRACT_VERSION,
            "obs_space": obs_space.to_dict(),
            "action_space": action_space.to_dict(),
            "env": env,
            "source": source,
            "fps": fps,
            "frames_per_step": frames_per_step,
        }
        create_store(path, attributes)
        return cls(path, attributes)

    @classmethod
    def open(cls, path: str | Path) -> EpisodeStore:
        """Open and check a store; `path` may be a run folder that holds one as `episodes.zarr`.

        Raises:
            EpisodeError: nothing is there, it is no store, of another version, or an episode is damaged.
        """
        path = find_store(path)
        attributes = _store_attributes(path)
        try:
            store = cls(path, attributes)
        except ContractError as e:
            raise EpisodeError(f"{path}: {e}. {_COLLECT_AGAIN}") from None
        except (KeyError, TypeError, ValueError) as e:
            what = f"its attributes are incomplete ({type(e).__name__}: {e})"
            raise EpisodeError(f"{path}: {what}. {_COLLECT_AGAIN}") from None
        for folder in sorted(path.iterdir()):
            if re.fullmatch(r"\d{6,}", folder.name):
                episode = Episode(folder, store.obs_space)
                episode.check()
                store._episodes[episode.index] = episode
        return store

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """Complete episodes in the order of their numbers, which may have gaps."""
        return tuple(self._episodes[i] for i in sorted(self._episodes))

    @property
    def next_index(self) -> int:
        """First number that no episode has or had."""
        return max(self._episodes, default=-1) + 1

    def __len__(self) -> int:
        return len(self._episodes)

    def writer(self, *, seed: int, index: int | None = None, source: Plain | None = None) -> EpisodeWriter:
        """Begin an episode. It appears in `episodes` after the writer's `finish`.

        Args:
            seed: what the environment was reset with.
            index: its number; default: the next one.
            source: who plays; default: the store's.
        """
        index = self.next_index if index is None else index
        if index in self._episodes:
            raise ValueError(f"{self.path} has an episode {index} already; the next free number is {self.next_index}")
        folder = self.path / f"{index:06d}"
        attributes = {"seed": int(seed), "source": self.source if source is None else source}
        return EpisodeWriter(folder, self.obs_space, self.action_space, attributes, on_finish=self._add)

    def clear_leftovers(self) -> None:
        """Remove what a killed writer left behind. Only while nobody else writes to the store."""
        clear_leftovers(self.path)

    def _add(self, folder: Path) -> None:
        episode = Episode(folder, self.obs_space)
        self._episodes[episode.index] = episode


_COLLECT_AGAIN = "Collect the episodes again: python run.py job=collect env=…"


def find_store(path: str | Path) -> Path:
    """The store that a path means: itself, or `episodes.zarr` inside a run folder.

    Raises:
        EpisodeError: the path doesn't exist, or is no store and holds none.
    """
    path = Path(path)
    inside = path / STORE_NAME
    if (inside / "zarr.json").is_file():
        return inside
    if (path / "zarr.json").is_file():
        return path
    if not path.exists():
        raise EpisodeError(f"{path}: no such folder. Give an {STORE_NAME}, or the run folder of a job=collect")
    raise EpisodeError(f"{path} is no Zarr store of episodes and holds no {STORE_NAME}. {_COLLECT_AGAIN}")


def _store_attributes(path: Path) -> Plain:
    """The store's attributes. Raises EpisodeError for another format or version."""

    def problem(what: str) -> EpisodeError:
        return EpisodeError(f"{path} can't be used: {what}. {_COLLECT_AGAIN}")

    attributes: Plain = _metadata(path, problem).get("attributes", {})
    if attributes.get("format") != FORMAT:
        raise problem(f"it is a Zarr folder, but holds no gameagent episodes (format {attributes.get('format')!r})")
    if attributes.get("format_version") != FORMAT_VERSION:
        found = attributes.get("format_version")
        raise problem(f"it has format version {found}; this gameagent reads version {FORMAT_VERSION}")
    return attributes


def _metadata(folder: Path, problem: Any) -> Mapping[str, Any]:
    """The `zarr.json` of a group or array. `problem` makes the error from a sentence."""
    file = folder / "zarr.json"
    try:
        plain = json.loads(file.read_text())
    except FileNotFoundError:
        raise problem(f"{file.parent.name}/zarr.json is missing") from None
    except (OSError, ValueError) as e:
        raise problem(f"{file.parent.name}/zarr.json can't be read ({e})") from None
    if not isinstance(plain, dict) or plain.get("zarr_format") != 3:
        raise problem(f"{file.parent.name}/zarr.json is no Zarr v3 metadata")
    return plain
