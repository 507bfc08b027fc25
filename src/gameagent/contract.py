"""What environments, data and policies agree on: action space, observation space, reward signals; versioned JSON.

Imports numpy only, so that worker processes and exported models can use it: `ActionSpace.from_json(text)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONTRACT_VERSION = 1
"""Raised whenever a stored space can no longer be read as before."""

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Obs = dict[str, Array]
"""Observations of a batch by part name, each (N, *part shape)."""


class ContractError(ValueError):
    """Two sides disagree about a space or a contract version; the message names both."""


class ActionSpace:
    """One or several labelled heads, e.g. `move` × `act`; every combination has one flat id.

    The first head is the most significant: with two heads, flat id = move · len(act) + act.

    Args:
        heads: head name -> labels. Give this, or `move_labels` (and `act_labels`) for the common factored case.
        move_labels: labels of a head named `move`.
        act_labels: labels of a second head named `act`.
        button_masks: for a one-head vocabulary of controller states, the button bit mask of each id.
    """

    __slots__ = ("button_masks", "heads")

    heads: dict[str, tuple[str, ...]]
    button_masks: tuple[int, ...] | None

    def __init__(
        self,
        heads: Mapping[str, tuple[str, ...] | list[str]] | None = None,
        *,
        move_labels: tuple[str, ...] | list[str] | None = None,
        act_labels: tuple[str, ...] | list[str] | None = None,
        button_masks: tuple[int, ...] | list[int] | None = None,
    ) -> None:
        if (heads is None) == (move_labels is None):
            raise ContractError("give either heads={name: labels} or move_labels=(…)[, act_labels=(…)]")
        if heads is None:
            heads = {"move": tuple(move_labels or ())} | ({"act": tuple(act_labels)} if act_labels is not None else {})
        if bare := [name for name, labels in heads.items() if isinstance(labels, str)]:
            raise ContractError(f"head {bare[0]!r} has the labels {heads[bare[0]]!r}; give a list of strings")
        self.heads = {str(name): tuple(map(str, labels)) for name, labels in heads.items()}
        self.button_masks = None if button_masks is None else tuple(int(m) for m in button_masks)
        self._check()

    def _check(self) -> None:
        if not self.heads:
            raise ContractError("an action space needs at least one head")
        for name, labels in self.heads.items():
            if not labels or len(set(labels)) != len(labels):
                raise ContractError(f"head {name!r} needs one or more distinct labels, got {labels}")
        if self.button_masks is not None and (len(self.heads) != 1 or len(self.button_masks) != self.n):
            raise ContractError(
                f"button_masks belong to a single head, one for each of its labels: "
                f"got {len(self.button_masks)} masks for heads of {self.sizes} labels"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of labels of each head."""
        return tuple(len(labels) for labels in self.heads.values())

    @property
    def n(self) -> int:
        """Number of flat ids."""
        return int(np.prod(self.sizes))

    def flatten(self, parts: Array) -> IntArray:
        """Ids per head (…, heads) -> flat ids (…). Raises ContractError if one is out of range."""
        parts = np.asarray(parts, np.int64)
        sizes = np.array(self.sizes)
        if parts.shape[-1:] != sizes.shape or (parts < 0).any() or (parts >= sizes).any():
            raise ContractError(f"expected ids below {self.sizes} in the last axis, got shape {parts.shape}: {parts}")
        flat: IntArray = np.ravel_multi_index(tuple(np.moveaxis(parts, -1, 0)), self.sizes).astype(np.int64)
        return flat

    def unflatten(self, flat: Array | int) -> IntArray:
        """Flat ids (…) -> ids per head (…, heads). Raises ContractError if one is out of range."""
        flat = np.asarray(flat, np.int64)
        if (flat < 0).any() or (flat >= self.n).any():
            raise ContractError(f"flat action ids go from 0 to {self.n - 1}, got {flat}")
        return np.stack(np.unravel_index(flat, self.sizes), -1).astype(np.int64)

    def label(self, flat: int) -> str:
        """Readable form of one flat id: the heads' labels joined by `+`."""
        return "+".join(labels[i] for labels, i in zip(self.heads.values(), self.unflatten(flat), strict=True))

    def labels(self) -> tuple[str, ...]:
        """`label` of every flat id, in order."""
        return tuple(self.label(i) for i in range(self.n))

    def to_dict(self) -> dict[str, Any]:
        """Plain form, with the contract version."""
        heads = {name: list(labels) for name, labels in self.heads.items()}
        masks = None if self.button_masks is None else list(self.button_masks)
        return {"contract": CONTRACT_VERSION, "heads": heads, "button_masks": masks}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ActionSpace:
        """Inverse of `to_dict`. Raises ContractError for another version or a malformed dict."""
        _check_version(plain, "action space")
        try:
            return cls(plain["heads"], button_masks=plain.get("button_masks"))
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise ContractError(f"not an action space: {plain!r} ({e})") from None

    def to_json(self) -> str:
        """JSON text of `to_dict`. Head order is kept: it decides the flat ids."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> ActionSpace:
        """Inverse of `to_json`. Raises ContractError."""
        return cls.from_dict(_parse(text, "action space"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionSpace) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"ActionSpace({' × '.join(f'{name}[{len(labels)}]' for name, labels in self.heads.items())} = {self.n})"


class Part(StrEnum):
    """The kinds of observation that exist; the name of a part is its kind."""

    frame = "frame"
    features = "features"
    audio = "audio"
    text = "text"


_DTYPES = {Part.frame: "uint8", Part.features: "float32", Part.audio: "float32", Part.text: "str"}


@dataclass(frozen=True)
class ObsPart:
    """One named part of an observation, without the batch axis.

    `frame` is (H, W, C) uint8, stacked frames last in C; `features` (F,) float32; `audio` (mels, columns) float32 or
    (samples,) float32; `text` is () with `max_chars` characters.
    """

    kind: Part
    shape: tuple[int, ...]
    max_chars: int = 0
    names: tuple[str, ...] = ()
    """Optional labels along the last axis, e.g. what each feature is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Part(self.kind))
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "names", tuple(self.names))
        rank = {Part.frame: (3,), Part.features: (1,), Part.audio: (1, 2), Part.text: (0,)}[self.kind]
        if len(self.shape) not in rank or any(n < 1 for n in self.shape):
            raise ContractError(f"a {self.kind} part has {' or '.join(map(str, rank))} positive axes, got {self.shape}")
        if self.names and (not self.shape or len(self.names) != self.shape[-1]):
            raise ContractError(f"{len(self.names)} names for a {self.kind} part of shape {self.shape}")

    @property
    def dtype(self) -> str:
        """numpy name of the element type."""
        return _DTYPES[self.kind]


class ObsSpace(Mapping[str, ObsPart]):
    """Named parts of an observation. `ObsSpace(frame=(112, 112, 3))` or `ObsSpace({"features": ObsPart(...)})`."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[str, ObsPart] | None = None, **shapes: tuple[int, ...] | ObsPart) -> None:
        given: dict[str, Any] = {**(parts or {}), **shapes}
        if not given:
            raise ContractError("an observation space needs at least one part")
        unknown = set(given) - {p.value for p in Part}
        if unknown:
            raise ContractError(f"unknown observation parts {sorted(unknown)}; they are {[p.value for p in Part]}")
        made = {name: p if isinstance(p, ObsPart) else ObsPart(Part(name), p) for name, p in given.items()}
        self._parts: dict[str, ObsPart] = {p.value: made[p.value] for p in Part if p.value in made}

    def __getitem__(self, name: str) -> ObsPart:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def as_parts(self, obs: Any) -> Obs:
        """Gymnasium's form -> parts by name: a space of one part travels bare, several as a dict, texts as a tuple."""
        given = obs if isinstance(obs, Mapping) else {next(iter(self._parts)): obs}
        return {n: np.asarray(given[n], object if p.kind is Part.text else None) for n, p in self._parts.items()}

    def as_gym(self, parts: Obs) -> Any:
        """Inverse of `as_parts`."""
        made = {n: tuple(v) if n == Part.text else v for n, v in parts.items()} if Part.text in self._parts else parts
        return made[next(iter(self._parts))] if len(self) == 1 else dict(made)

    def empty(self, *lead: int) -> Obs:
        """Uninitialised arrays of shape (*lead, *part shape) by part name, each in the part's own dtype."""
        kinds = {n: np.dtype(object) if p.kind is Part.text else np.dtype(p.dtype) for n, p in self._parts.items()}
        return {n: np.empty((*lead, *p.shape), kinds[n]) for n, p in self._parts.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain form, with the contract version."""
        parts = {
            n: {"shape": list(p.shape), "dtype": p.dtype, "max_chars": p.max_chars, "names": list(p.names)}
            for n, p in self._parts.items()
        }
        return {"contract": CONTRACT_VERSION, "parts": parts}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ObsSpace:
        """Inverse of `to_dict`. Raises ContractError for another version or a malformed dict."""
        _check_version(plain, "observation space")
        try:
            return cls(
                {
                    n: ObsPart(Part(n), tuple(p["shape"]), p.get("max_chars", 0), tuple(p.get("names", ())))
                    for n, p in plain["parts"].items()
                }
            )
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise ContractError(f"not an observation space: {plain!r} ({e})") from None

    def to_json(self) -> str:
        """JSON text of `to_dict`."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> ObsSpace:
        """Inverse of `to_json`. Raises ContractError."""
        return cls.from_dict(_parse(text, "observation space"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObsSpace) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"ObsSpace({', '.join(f'{n}={p.shape}' for n, p in self._parts.items())})"


SIGNALS = {
    "apples": "good items caught in this step",
    "bombs": "bad items caught in this step",
    "confidence": "how sure the reader of the other signals is, 0..1",
    "deaths": "own deaths so far",
    "distance": "distance to the current target, pixels",
    "enemy_hp": "hit points of the opponent",
    "gold": "currency held",
    "hp": "own hit points",
    "kills": "opponents beaten so far",
    "lives": "lives left",
    "progress": "distance covered towards the goal",
    "score": "the game's own score so far",
    "wave": "waves finished so far",
    "win": "1 won, -1 lost, 0 undecided",
}
"""Names that more than one game uses, with their meaning. A game may add its own."""


@dataclass(frozen=True)
class RewardContext:
    """Signals of one step for a batch of environments: what a reward function may look at.

    Every signal is a float64 array (N,). A signal that a game lacks is simply absent: the reward's term is skipped.
    """

    signals: Mapping[str, FloatArray]
    """After the step."""
    previous: Mapping[str, FloatArray] = field(default_factory=dict)
    """Before the step; right after a reset, the values of the fresh episode."""

    def __post_init__(self) -> None:
        shape = next((v.shape for v in (self.signals or self.previous).values()), ())
        for values in (self.signals, self.previous):  # every frame of every game comes by here: a loop is the fastest
            for value in values.values():
                if value.shape != shape or len(shape) != 1:
                    found = {k: v.shape for k, v in {**self.previous, **self.signals}.items()}
                    raise ContractError(f"signals must all have shape (num_envs,), got {found}")

    @property
    def num_envs(self) -> int:
        """N."""
        return len(next(iter(self.signals.values()))) if self.signals else 0

    def __contains__(self, name: str) -> bool:
        return name in self.signals

    def get(self, name: str) -> FloatArray | None:
        """The signal (N,), or None where the game has none of that name."""
        return self.signals.get(name)

    def delta(self, name: str) -> FloatArray | None:
        """Change of the signal over the step (N,), or None where it is missing."""
        if name not in self.signals or name not in self.previous:
            return None
        change: FloatArray = np.asarray(self.signals[name], np.float64) - np.asarray(self.previous[name], np.float64)
        return change


def check_spaces(what: str, expected: tuple[ObsSpace, ActionSpace], found: tuple[ObsSpace, ActionSpace]) -> None:
    """Raise ContractError naming both sides unless two pairs of spaces are equal. `what` says whose they are."""
    sides: list[tuple[str, ObsSpace | ActionSpace, ObsSpace | ActionSpace]] = [
        ("observations", expected[0], found[0]),
        ("actions", expected[1], found[1]),
    ]
    for name, want, got in sides:
        if want != got:
            raise ContractError(f"{what}: {name} don't fit: expected {want}, found {got}{_detail(want, got)}")


def _detail(want: ObsSpace | ActionSpace, got: ObsSpace | ActionSpace) -> str:
    """What differs where two spaces look alike in short form."""
    return f"\n  expected {want.to_json()}\n  found    {got.to_json()}" if repr(want) == repr(got) else ""


def _parse(text: str, what: str) -> Mapping[str, Any]:
    try:
        plain = json.loads(text)
    except json.JSONDecodeError as e:
        raise ContractError(f"not JSON, so no {what}: {e}") from None
    if not isinstance(plain, dict):
        raise ContractError(f"not a JSON object, so no {what}: {text[:80]}")
    return plain


def _check_version(plain: Mapping[str, Any], what: str) -> None:
    found = plain.get("contract") if isinstance(plain, Mapping) else None
    if found != CONTRACT_VERSION:
        raise ContractError(f"{what} of contract version {found}; this gameagent reads version {CONTRACT_VERSION}")
