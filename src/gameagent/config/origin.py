"""The configuration that a policy was trained with, so that `job=evaluate job.policy=PATH` needs nothing else.

base = trained_with(["job=evaluate", "job.policy=outputs/catch_ppo/…"])
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gameagent.config.files import CONFIG, load
from gameagent.errors import ConfigError

KEYS = ("job.policy", "job.a")
"""Where a job names the policy that it plays."""
BUNDLE = "policy.safetensors"
LARGEST_HEADER = 1 << 26
"""Bytes; a longer header is no header."""


def trained_with(overrides: Sequence[str]) -> tuple[Path, dict[str, Any]] | None:
    """The file or folder of the policy that the overrides name, and the configuration that goes with it.

    Raises ConfigError where that configuration would run a file or module that nobody here has chosen.
    None where they name none, where nothing is known of it, or where they choose an environment themselves (`env…`, an
    experiment): what is typed counts.
    """
    typed = [text.lstrip("+").partition("=")[::2] for text in overrides]
    if any(key.startswith(("env", "experiment")) for key, _ in typed):
        return None
    for key, value in typed:
        if key in KEYS:
            path = Path(value.strip("'\"")).expanduser()
            for place in (path, path.parent, path.parent.parent):
                plain = _saved(place)
                if plain is not None:
                    return place, plain
    return None


def _saved(place: Path) -> dict[str, Any] | None:
    """Configuration in a policy file's card, or beside a policy in its run folder."""
    plain: Any = None
    if place.is_file():
        plain = _card(place)
        _check(plain)
    elif (place / CONFIG).is_file():
        try:
            plain = load(place)
        except ConfigError:
            return None
    known = isinstance(plain, dict) and "defaults" not in plain and "_target_" in (plain.get("env") or {})
    return {**plain, "out": None} if known else None


def _check(plain: Any) -> None:
    """Refuse a file's configuration that would run code which nobody here has chosen: its classes, its game's file."""
    from gameagent.component import UntrustedError, check_trusted  # pydantic: only where a policy file is named

    if isinstance(plain, list):
        for part in plain:
            _check(part)
    if not isinstance(plain, dict):
        return
    game = str(plain.get("game", ""))
    targets = [str(plain["_target_"])] if "_target_" in plain else []
    try:
        for target in targets + ([f"{game}:game"] if game.endswith(".py") else []):
            check_trusted(target)
    except UntrustedError as error:
        raise ConfigError(
            f"the policy's own configuration: {error}; or choose the environment by hand: env=…"
        ) from error
    for part in plain.values():
        _check(part)


def _card(file: Path) -> Any:
    """`provenance.config` of a .safetensors file: 8 bytes of length, then JSON. Whatever is wrong, the job will say."""
    if file.suffix != Path(BUNDLE).suffix:
        return None
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(length)) if length < LARGEST_HEADER else {}
        return json.loads(header["__metadata__"]["provenance"])["config"]
    except (OSError, ValueError, struct.error, KeyError, TypeError):
        return None
