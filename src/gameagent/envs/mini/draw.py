"""Drawing for mini-games' `render` hooks: coordinates are (x, y) from the top left, all of it is clipped to the image.

from gameagent.envs.mini.draw import fill, rect, disc, number, picture, paste, blit
rect(img, 10, 20, 5, 5, (230, 70, 70))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]
Image = NDArray[np.uint8]

_DIGITS = (
    "111101101101111 010110010010111 111001111100111 111001111001111 101101111001001 "
    "111100111001111 111100111101111 111001001001001 111101111101111 111101111001111"
)
_FONT = np.array([[int(bit) for bit in digit] for digit in _DIGITS.split()], np.uint8).reshape(10, 5, 3)


def picture(rows: Sequence[str], palette: Mapping[str, Colour]) -> Image:
    """A picture (H, W, 4) from rows of characters, for `blit`: make it once, at the top of the game file.

    Args:
        rows: equally long; a character that the palette lacks (a dot, say) is transparent.
        palette: character -> colour.
    """
    out = np.zeros((len(rows), len(rows[0]), 4), np.uint8)
    for y, row in enumerate(rows):
        for x, mark in enumerate(row):
            if mark in palette:
                out[y, x] = (*palette[mark], 255)
    return out


def fill(img: Image, colour: Colour) -> None:
    """One colour everywhere."""
    rect(img, 0, 0, img.shape[1], img.shape[0], colour)


def paste(img: Image, background: Image) -> None:
    """A whole background of the image's own shape: the fastest way to begin a frame."""
    target, source = img.reshape(-1), background.reshape(-1)
    for i in range(min(target.size, source.size)):
        target[i] = source[i]


def rect(img: Image, x: float, y: float, width: float, height: float, colour: Colour) -> None:
    """A filled rectangle whose top left pixel is (x, y)."""
    left, top = int(x), int(y)
    for row in range(max(top, 0), min(top + int(height), img.shape[0])):
        for column in range(max(left, 0), min(left + int(width), img.shape[1])):
            img[row, column, 0] = colour[0]
            img[row, column, 1] = colour[1]
            img[row, column, 2] = colour[2]


def disc(img: Image, x: float, y: float, radius: float, colour: Colour) -> None:
    """A filled circle around (x, y)."""
    for row in range(max(int(y - radius), 0), min(int(y + radius) + 1, img.shape[0])):
        for column in range(max(int(x - radius), 0), min(int(x + radius) + 1, img.shape[1])):
            if (row - y) * (row - y) + (column - x) * (column - x) <= radius * radius:
                img[row, column, 0] = colour[0]
                img[row, column, 1] = colour[1]
                img[row, column, 2] = colour[2]


def blit(img: Image, x: float, y: float, what: Image) -> None:
    """A `picture` whose top left corner is at (x, y)."""
    left, top = int(x), int(y)
    for row in range(max(-top, 0), min(what.shape[0], img.shape[0] - top)):
        for column in range(max(-left, 0), min(what.shape[1], img.shape[1] - left)):
            if what[row, column, 3] > 0:
                img[top + row, left + column, 0] = what[row, column, 0]
                img[top + row, left + column, 1] = what[row, column, 1]
                img[top + row, left + column, 2] = what[row, column, 2]


def number(img: Image, x: float, y: float, value: int, scale: int, colour: Colour) -> int:
    """A whole number in digits of 3·scale × 5·scale pixels, (x, y) top left. Gives the x after its last digit."""
    left, rest = int(x), abs(value)
    if value < 0:
        rect(img, left, y + 2 * scale, 3 * scale, scale, colour)
        left += 4 * scale
    unit = 1
    while rest // unit >= 10:
        unit *= 10
    while unit > 0:
        digit = rest // unit % 10
        for row in range(5):
            for column in range(3):
                if _FONT[digit, row, column] > 0:
                    rect(img, left + column * scale, y + row * scale, scale, scale, colour)
        left += 4 * scale
        unit //= 10
    return left


__all__ = ["Colour", "Image", "blit", "disc", "fill", "number", "paste", "picture", "rect"]
