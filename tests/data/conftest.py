"""A tiny store of made-up episodes, and the game whose action shows in the next frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from gameagent.contract import ActionSpace, ObsSpace
from gameagent.data.episodes import EpisodeStore

ACTIONS = ActionSpace(move_labels=("left", "stay", "right"), act_labels=("wait", "dash"))
SPACE = ObsSpace(frame=(4, 6, 3))

MakeStore = Callable[..., EpisodeStore]


@pytest.fixture
def make_store(tmp_path: Path) -> MakeStore:
    """`make_store(lengths=(5, 3))`: episode e has frames filled with 40·e + t, actions (e + t) % 6, rewards t / 2."""

    def make(lengths: Sequence[int] = (5, 3), name: str = "episodes.zarr") -> EpisodeStore:
        store = EpisodeStore.create(
            tmp_path / name, obs_space=SPACE, action_space=ACTIONS, env={"game": "fake"}, source={"collector": "expert"}
        )
        for e, length in enumerate(lengths):
            writer = store.writer(seed=100 + e)
            for t in range(length):
                frame = np.full((4, 6, 3), (40 * e + t) % 256, np.uint8)
                writer.add({"frame": frame}, (e + t) % 6, t / 2, {"apples": float(t)})
            writer.finish(score=10.0 * e, terminated=e % 2 == 0, truncated=e % 2 == 1)
        return store

    return make
