"""What a saved policy says about itself, in whatever file it is kept.

metadata = pack_card(make_card(policy, provenance={"experiment": "catch"})); card = unpack_card(metadata, path)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gameagent.component import to_config
from gameagent.contract import CONTRACT_VERSION
from gameagent.errors import UserError
from gameagent.policies.base import Policy

Card = dict[str, Any]
"""What a saved policy says about itself: `contract`, `obs_space`, `action_space`, `architecture`, `provenance`,
`evaluation`."""

_KEYS = ("contract", "obs_space", "action_space", "architecture", "provenance", "evaluation")


class PolicyFileError(UserError, ValueError):
    """A file can't be used as a policy; the message says which, why, and what to do."""


class PolicyNotFoundError(UserError, FileNotFoundError):
    """There is no policy at a path."""


def describe(policy: Policy) -> Card:
    """What rebuilds `policy` without its weights: `architecture`, `obs_space` and `action_space` in plain form."""
    return {
        "architecture": to_config(policy.architecture),
        "obs_space": policy.obs_space.to_dict(),
        "action_space": policy.action_space.to_dict(),
    }


def make_card(
    policy: Policy, provenance: Mapping[str, Any] | None = None, evaluation: Mapping[str, Any] | None = None
) -> Card:
    """The whole card of `policy`."""
    about = {"provenance": dict(provenance or {}), "evaluation": None if evaluation is None else dict(evaluation)}
    return {"contract": CONTRACT_VERSION, **describe(policy), **about}


def pack_card(card: Card) -> dict[str, str]:
    """The form that file formats with text-only metadata hold: JSON per key."""
    return {key: json.dumps(card[key]) for key in _KEYS}


def unpack_card(metadata: Mapping[str, str], path: Path) -> Card:
    """Inverse of `pack_card`. Raises PolicyFileError where the metadata of `path` is none of ours."""
    try:
        card = {key: json.loads(metadata[key]) for key in _KEYS}
    except (KeyError, TypeError, ValueError):
        raise PolicyFileError(
            f"{path} was not written by gameagent (no contract in its metadata), so nothing says what it observes and "
            "does; give a policy.safetensors, a policy.onnx, a .ckpt of a learner, or a run folder"
        ) from None
    if card["contract"] != CONTRACT_VERSION:
        raise PolicyFileError(
            f"{path} is of contract version {card['contract']}; this gameagent reads version {CONTRACT_VERSION}"
        )
    return card
