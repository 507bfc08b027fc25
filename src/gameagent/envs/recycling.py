"""`Recycler`: new arrays out of memory that nobody reads any more.

frames = Recycler((64, 112, 112, 3), np.uint8); first = frames.empty(); second = frames.empty()  # two arrays

Large arrays are expensive to make, not to fill: the kernel takes their memory back when they are freed and pages it in
again at the next step (at 64 frames of 112×112×3, more time than drawing them).
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import DTypeLike

from gameagent.contract import Array

KEPT = 4
"""Arrays kept for later, at most: what a caller holds at a time (now, before, last of an episode) and one more."""


class Recycler:
    """Arrays of one shape and dtype, each handed out again once nothing refers to it: no array, view, tensor or buffer.

    Args:
        shape: of every array.
        dtype: of every array; not object, whose elements would live on.
    """

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._shape, self._dtype = shape, np.dtype(dtype)
        self._arrays: list[Array] = [np.empty(shape, dtype)]
        self._idle = self._references()[0]  # how many references Python itself counts here

    def empty(self) -> Array:
        """An array of any content that nobody else holds."""
        for array, references in zip(self._arrays, self._references(), strict=True):
            if references == self._idle:
                return array
        fresh: Array = np.empty(self._shape, self._dtype)
        if len(self._arrays) < KEPT:
            self._arrays.append(fresh)
        return fresh

    def _references(self) -> list[int]:
        return [sys.getrefcount(array) for array in self._arrays]
