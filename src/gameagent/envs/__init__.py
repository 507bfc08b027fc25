"""Environments: batches of games behind Gymnasium's interface. Importing this registers `gameagent/MiniCatch-v0`.

import gymnasium, gameagent.envs; env = gymnasium.make("gameagent/MiniCatch-v0", render_mode="rgb_array")
"""

from __future__ import annotations

import gymnasium

__all__ = ["register"]

GAMES = {"gameagent/MiniCatch-v0": "catch"}
"""Gymnasium id -> built-in mini-game."""


def register() -> None:
    """Make the built-in games known to `gymnasium.make` and `gymnasium.make_vec`; again is harmless."""
    for name, game in GAMES.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="gameagent.envs.single:SingleEnv",
                vector_entry_point="gameagent.envs.single:make_batch",
                kwargs={"game": game},
            )


register()
