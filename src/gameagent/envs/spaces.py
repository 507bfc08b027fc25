"""Gymnasium spaces of gameagent's observation spaces.

space = gym_space(ObsSpace(frame=(112, 112, 3)))
"""

from __future__ import annotations

import string

import numpy as np
from gymnasium import spaces

from gameagent.contract import ObsPart, ObsSpace, Part

_FLOATS = np.finfo(np.float32)


def gym_space(space: ObsSpace) -> spaces.Space[object]:
    """The Gymnasium space of one env's observation: the part's own space, or a Dict of several."""
    made = {name: _part_space(part) for name, part in space.items()}
    return next(iter(made.values())) if len(made) == 1 else spaces.Dict(made)


def _part_space(part: ObsPart) -> spaces.Space[object]:
    if part.kind is Part.frame:
        return spaces.Box(0, 255, part.shape, np.uint8)
    if part.kind is Part.text:
        return spaces.Text(part.max_chars, min_length=0, charset=string.printable)
    # Any finite float: Gymnasium's checker warns of infinite bounds, and no game is asked to know tighter ones.
    return spaces.Box(_FLOATS.min, _FLOATS.max, part.shape, np.float32)
