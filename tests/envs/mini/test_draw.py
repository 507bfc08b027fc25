"""Drawing primitives, plain and by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gameagent.envs.mini.draw import blit, disc, fill, number, paste, picture, rect

RED = (200, 10, 20)
far = st.integers(-40, 40)


def blank(height: int = 12, width: int = 16) -> np.ndarray:
    return np.zeros((height, width, 3), np.uint8)


def painted(img: np.ndarray) -> set[tuple[int, int]]:
    return {(int(x), int(y)) for y, x in np.argwhere(img.any(-1))}


@given(far, far, st.integers(0, 50), st.integers(0, 50))
def test_rect_covers_its_pixels_and_is_clipped(x: int, y: int, width: int, height: int) -> None:
    img = blank()
    rect(img, x, y, width, height, RED)
    wanted = {(a, b) for a in range(x, x + width) for b in range(y, y + height) if 0 <= a < 16 and 0 <= b < 12}
    assert painted(img) == wanted


@given(far, far, st.floats(0, 20))
def test_disc_holds_every_pixel_within_its_radius(x: int, y: int, radius: float) -> None:
    img = blank()
    disc(img, x, y, radius, RED)
    assert painted(img) == {
        (a, b) for a in range(16) for b in range(12) if (a - x) ** 2 + (b - y) ** 2 <= radius * radius
    }


@given(far, far)
def test_blit_leaves_transparent_pixels_and_is_clipped(x: int, y: int) -> None:
    img = blank()
    blit(img, x, y, picture(("a.a", ".a."), {"a": RED}))
    assert painted(img) == {(x + a, y + b) for a, b in ((0, 0), (2, 0), (1, 1)) if 0 <= x + a < 16 and 0 <= y + b < 12}


def test_fill_and_paste_cover_everything() -> None:
    img, other = blank(), blank()
    fill(img, RED)
    assert (img == RED).all()
    paste(other, img)
    assert (other == img).all()


def test_numbers_are_legible_and_tell_where_they_end() -> None:
    img = blank(7, 20)
    assert number(img, 0, 1, 17, 1, RED) == 8
    rows = ["".join("#" if on else "." for on in row[:8]) for row in img[1:6].any(-1)]
    assert rows == [".#..###.", "##....#.", ".#....#.", ".#....#.", "###...#."]


def test_negative_numbers_have_a_minus_and_scale_is_in_pixels() -> None:
    img = blank(12, 30)
    assert number(img, 0, 0, -4, 2, RED) == 16
    assert (0, 4) in painted(img)
    assert (0, 0) not in painted(img)
    assert (8, 0) in painted(img)
    assert (9, 1) in painted(img)
    assert number(blank(), 0, 0, 0, 1, RED) == 4
