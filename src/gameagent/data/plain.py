"""Episodes in the plain form that any tool reads: `action.jsonl`, PNG frames and `labels.json`.

    export_plain(EpisodeStore.open("outputs/run"), "folder"); store = import_plain("folder", "episodes.zarr")

On the command line: `job=collect job.export_plain=true` writes `plain/` beside the store, and
`job=collect job.collector=plain job.source=FOLDER` makes a store from such a folder, your own recordings included:

    labels.json      {"heads": {"move": ["left", "stay", "right"], "act": ["wait", "dash"]}}; more keys are optional
    action.jsonl     a line each frame, in order: {"frame": "frames/000000/000000.png", "action": 3};
                     optional: "episode" (0), "step", "reward" (0), "label" (action), "terms" {}, "features" []
    frames/…         RGB pictures, all of one size; what the player looked at when it chose the action
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from gameagent.contract import CONTRACT_VERSION, ActionSpace, Array, ContractError, ObsSpace
from gameagent.data.episodes import Episode, EpisodeError, EpisodeStore

LABELS, ACTIONS, FRAMES = "labels.json", "action.jsonl", "frames"
_ROWS = 256
"""Frames read at a time."""


def export_plain(store: EpisodeStore, folder: str | Path) -> Path:
    """Write every episode of `store` in the plain form. Features are kept; audio and text are not.

    Returns:
        The folder.

    Raises:
        EpisodeError: the folder exists, or the store holds no frames.
    """
    folder = Path(folder)
    if folder.exists():
        raise EpisodeError(f"{folder} exists already; remove it or export into another folder")
    if "frame" not in store.obs_space:
        raise EpisodeError(f"{store.path} holds no frames (parts: {sorted(store.obs_space)}), and so has no plain form")
    temporary = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    labels = store.action_space.to_dict() | {
        "obs_space": store.obs_space.to_dict(),
        "env": store.env,
        "source": store.source,
        "fps": store.fps,
        "frames_per_step": store.frames_per_step,
        "episodes": [_ending(e) for e in store.episodes],
    }
    (temporary / LABELS).write_text(json.dumps(labels, indent=1))
    with (temporary / ACTIONS).open("w") as lines:
        for episode in store.episodes:
            for line in _export_episode(episode, temporary):
                lines.write(json.dumps(line) + "\n")
    return temporary.rename(folder)


def _ending(episode: Episode) -> dict[str, Any]:
    names = ("seed", "score", "terminated", "truncated", "source")
    return {"episode": episode.index} | {name: getattr(episode, name) for name in names}


def _export_episode(episode: Episode, folder: Path) -> Iterator[dict[str, Any]]:
    """Write an episode's frames and give its lines."""
    within = f"{FRAMES}/{episode.index:06d}"
    (folder / within).mkdir(parents=True)
    for start in range(0, len(episode), _ROWS):
        parts = episode.obs(slice(start, start + _ROWS))
        for step, frame in enumerate(parts["frame"], start):
            name = f"{within}/{step:06d}.png"
            # Level 1: game frames shrink nearly as far as with the default, six times as fast.
            Image.fromarray(frame.squeeze(-1) if frame.shape[-1] == 1 else frame).save(folder / name, compress_level=1)
            line: dict[str, Any] = {"frame": name, "action": int(episode.actions[step])}
            line |= {"episode": episode.index, "step": step, "reward": float(episode.rewards[step])}
            line["terms"] = {term: float(values[step]) for term, values in episode.terms.items()}
            if episode.has_labels:
                line["label"] = int(episode.labels[step])
            if "features" in parts:
                line["features"] = [float(x) for x in parts["features"][step - start]]
            yield line


def import_plain(folder: str | Path, path: str | Path) -> EpisodeStore:
    """Make a store from the plain form.

    Args:
        folder: holds `labels.json`, `action.jsonl` and the frames that it names.
        path: of the new store.

    Raises:
        EpisodeError: `path` exists, a file is missing or isn't what it should be; names the line.
    """
    folder = Path(folder)
    labels = _read_labels(folder)
    actions = _action_space(folder / LABELS, labels)
    first = next(_lines(folder), None)
    if first is None:
        raise EpisodeError(f"{folder / ACTIONS} is empty: it needs a line for each frame")
    parts = _parts(folder, *first)
    space = ObsSpace({name: _names(labels, name, part.shape) for name, part in parts.items()})
    path = Path(path)
    if path.exists():
        raise EpisodeError(f"{path} exists already; give another out=PATH")
    temporary = path.with_name(f".{path.name}.unfinished")
    shutil.rmtree(temporary, ignore_errors=True)
    store = EpisodeStore.create(
        temporary,
        obs_space=space,
        action_space=actions,
        env=dict(labels.get("env") or {}),
        source=dict(labels.get("source", {"collector": "plain"})),
        fps=float(labels.get("fps", 30.0)),
        frames_per_step=int(labels.get("frames_per_step", 1)),
    )
    endings = {int(e["episode"]): e for e in labels.get("episodes", [])}
    for number, lines in groupby(_lines(folder), key=lambda item: int(item[1].get("episode", 0))):
        _import_episode(store, folder, number, lines, endings.get(number, {}))
    return EpisodeStore.open(temporary.rename(path))


def _names(labels: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Any:
    """The part as the exporter knew it (feature names and all), where the shape still fits; else from its shape."""
    try:
        part = ObsSpace.from_dict(labels["obs_space"])[name]
    except (KeyError, ContractError):
        return shape
    return part if part.shape == shape else shape


def _import_episode(
    store: EpisodeStore,
    folder: Path,
    number: int,
    lines: Iterator[tuple[int, dict[str, Any]]],
    ending: Mapping[str, Any],
) -> None:
    try:
        writer = store.writer(seed=int(ending.get("seed", number)), index=number, source=ending.get("source"))
    except ValueError:
        raise EpisodeError(f"{folder / ACTIONS}: the lines of episode {number} must follow one another") from None
    total = 0.0
    for at, line in lines:
        if int(line.get("step", len(writer))) != len(writer):
            raise _bad_line(folder, at, f"step {line['step']} where {len(writer)} of episode {number} should follow")
        reward = float(line.get("reward", 0.0))
        try:
            writer.add(_parts(folder, at, line), line["action"], reward, line.get("terms"), line.get("label"))
        except (ValueError, TypeError) as e:
            raise e if isinstance(e, EpisodeError) else _bad_line(folder, at, str(e)) from None
        total += reward
    truncated = bool(ending.get("truncated", False))
    terminated = bool(ending.get("terminated", not truncated))
    writer.finish(score=float(ending.get("score", total)), terminated=terminated, truncated=truncated)


def _read_labels(folder: Path) -> dict[str, Any]:
    try:
        labels = json.loads((folder / LABELS).read_text())
    except FileNotFoundError:
        raise EpisodeError(_incomplete(folder, LABELS)) from None
    except ValueError as e:
        raise EpisodeError(f"{folder / LABELS} is no JSON: {e}") from None
    if not isinstance(labels, dict):
        raise EpisodeError(f'{folder / LABELS} must be an object like {{"heads": {{"move": ["left", "right"]}}}}')
    return labels


def _action_space(file: Path, labels: Mapping[str, Any]) -> ActionSpace:
    try:
        return ActionSpace.from_dict({"contract": CONTRACT_VERSION, **labels})
    except ContractError as e:
        raise EpisodeError(f'{file}: {e}. It needs {{"heads": {{"move": ["left", "right"], …}}}}') from None


def _lines(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and content of every line of `action.jsonl`."""
    file = folder / ACTIONS
    if not file.is_file():
        raise EpisodeError(_incomplete(folder, ACTIONS))
    with file.open() as lines:
        for at, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                line = json.loads(text)
            except ValueError as e:
                raise _bad_line(folder, at, f"no JSON ({e})") from None
            is_line = isinstance(line, dict) and isinstance(line.get("frame"), str)
            if not is_line or type(line.get("action")) is not int:
                raise _bad_line(folder, at, f'needs "frame" (a path) and "action" (an integer), got {text.strip():.80}')
            yield at, line


def _parts(folder: Path, at: int, line: Mapping[str, Any]) -> dict[str, Array]:
    """The observation that a line describes."""
    file = folder / line["frame"]
    try:
        with Image.open(file) as picture:
            frame = np.asarray(picture if picture.mode == "L" else picture.convert("RGB"))
    except (OSError, UnidentifiedImageError) as e:
        raise _bad_line(folder, at, f"its frame {file} can't be read ({type(e).__name__}: {e})") from None
    parts: dict[str, Array] = {"frame": frame[..., None] if frame.ndim == 2 else frame}
    if "features" in line:
        parts["features"] = np.asarray(line["features"], np.float32)
    return parts


def _incomplete(folder: Path, name: str) -> str:
    return f"{folder} holds no {name}; the plain form is {LABELS}, {ACTIONS} and frames"


def _bad_line(folder: Path, at: int, what: str) -> EpisodeError:
    return EpisodeError(f"{folder / ACTIONS}, line {at}: {what}")
