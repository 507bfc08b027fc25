"""From command line and YAML to an `Experiment`: compose, check, build; and plain YAML in and out.

    plain = compose(["+experiment=catch_ppo", "learner.lr=1e-4"]); experiment = build(plain); save(plain, "config.yaml")

What this package imports at the top stays light, so that `--help` answers at once: Hydra and pydantic come with
first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gameagent.config.cli import main
from gameagent.errors import ConfigError

if TYPE_CHECKING:
    from gameagent.config.checking import build, check
    from gameagent.config.composing import compose, expand
    from gameagent.config.files import Change, diff, load, save

__all__ = ["Change", "ConfigError", "build", "check", "compose", "diff", "expand", "load", "main", "save"]

_HOMES = {
    "build": "checking",
    "check": "checking",
    "compose": "composing",
    "expand": "composing",
    "Change": "files",
    "diff": "files",
    "load": "files",
    "save": "files",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"gameagent.config.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
