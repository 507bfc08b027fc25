"""MiniCatch: move a basket, catch apples, let bombs fall. The game to begin with.

Play it with `env=catch`; the knobs below are set by `env.knobs.speed=3`. This file is all there is to the game: it
shows what a game file of your own looks like.

Points (the signal `score`, on the screen top left): +1 for each apple caught, -1.5 for each bomb. A bomb also costs a
life, and the game is over without lives. Apples that fall to the ground cost nothing. A dash moves the basket twice as
fast.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gameagent.envs.mini.draw import blit, number, paste, picture, rect
from gameagent.envs.mini.rng import uniform

ACTIONS = {"move": ("left", "stay", "right"), "act": ("wait", "dash")}
KEYMAP = {"left": ("move", "left"), "right": ("move", "right"), "space": ("act", "dash")}
SIZE = (112, 112)
MAX_STEPS = 1000
CONFIG = {
    "lives": 3,
    "speed": 2.5,  # pixels a frame that things fall
    "bombs": 0.25,  # share of bombs among them
    "items": 4,  # how many fall at a time
    "walk": 3.0,  # pixels a frame that the basket moves; a dash is twice that
    "expert_dashes": True,  # false: the built-in expert only walks, a demonstration that leaves much to improve
}
LIMITS = {"lives": (1, 9), "speed": (0.5, 8.0), "bombs": (0.0, 1.0), "items": (1, 6), "walk": (0.5, 8.0)}
CAPACITY = 6

STATE = [
    ("x", float),
    ("item_x", float, CAPACITY),
    ("item_y", float, CAPACITY),
    ("is_bomb", bool, CAPACITY),
    ("lives", int),
    ("caught", int),
    ("hit", int),
    ("apples", int),
    ("bombs", int),
    ("flash", int),
]
SIGNALS = ("apples", "bombs", "lives", "score", "distance")
FEATURES = ("x", "lives", *(f"{what}{k}" for k in range(CAPACITY) for what in ("dx", "y", "bomb")))

LEFT, RIGHT = 10.0, 102.0
"""How far the middle of the basket goes."""
TOP, RIM, GROUND = 16.0, 96.0, 108.0
"""Where things appear, where the basket catches them, where they are gone."""
REACH = 10.0
"""Pixels to either side within which the basket catches."""
EASE = 6.0
"""Pixels to either side within which the expert lets an apple come: it doesn't fidget."""


def reset(s: Any, cfg: Any, rng: Any) -> None:
    """Basket in the middle, things above the screen one after the other."""
    s.x = 56.0
    s.lives = cfg.lives
    for k in range(cfg.items):
        spawn(s, k, cfg, rng)
        s.item_y[k] = TOP - (GROUND - TOP) / cfg.items * k


def spawn(s: Any, k: int, cfg: Any, rng: Any) -> None:
    """A new thing at the top."""
    s.item_x[k] = LEFT + (RIGHT - LEFT) * uniform(rng)
    s.item_y[k] = TOP
    s.is_bomb[k] = uniform(rng) < cfg.bombs


def step(s: Any, move: int, act: int, cfg: Any, rng: Any) -> bool:
    """One frame: the basket moves, everything falls, the basket catches."""
    s.x = min(max(s.x + (move - 1) * cfg.walk * (1 + act), LEFT), RIGHT)
    s.apples = 0
    s.bombs = 0
    s.flash = max(s.flash - 1, 0)
    for k in range(cfg.items):
        s.item_y[k] += cfg.speed
        if RIM <= s.item_y[k] < GROUND - 4.0 and abs(s.item_x[k] - s.x) < REACH:
            if s.is_bomb[k]:
                s.bombs += 1
                s.flash = 6
            else:
                s.apples += 1
            spawn(s, k, cfg, rng)
        elif s.item_y[k] >= GROUND:
            spawn(s, k, cfg, rng)
    s.caught += s.apples
    s.hit += s.bombs
    s.lives = max(s.lives - s.bombs, 0)
    return bool(s.lives == 0)


def signals(s: Any, out: Any, cfg: Any) -> None:
    """What rewards may look at."""
    out.apples = s.apples
    out.bombs = s.bombs
    out.lives = s.lives
    out.score = s.caught - 1.5 * s.hit
    target = lowest_apple(s, cfg)
    out.distance = abs(s.item_x[target] - s.x) if target >= 0 else 0.0


def lowest_apple(s: Any, cfg: Any) -> int:
    """Index of the apple that will be lost first, or -1."""
    best = -1
    for k in range(cfg.items):
        if not s.is_bomb[k] and TOP <= s.item_y[k] < GROUND - 4.0 and (best < 0 or s.item_y[k] > s.item_y[best]):
            best = k
    return best


def features(s: Any, out: Any, cfg: Any) -> None:
    """Numbers of about -1 to 1; things that are not there are zeros."""
    out[0] = s.x / 56.0 - 1.0
    out[1] = s.lives / 9.0
    for k in range(CAPACITY):
        there = k < cfg.items
        out[2 + 3 * k] = (s.item_x[k] - s.x) / 112.0 if there else 0.0
        out[3 + 3 * k] = s.item_y[k] / 112.0 if there else 0.0
        out[4 + 3 * k] = 1.0 if there and s.is_bomb[k] else 0.0


def text(s: Any, cfg: Any) -> str:
    """The screen in words."""
    lines = [f"You are at {s.x:.0f} of 112. Lives: {s.lives}. Points: {s.caught - 1.5 * s.hit:g}."]
    for k in range(cfg.items):
        if s.item_y[k] >= TOP:
            what = "bomb" if s.is_bomb[k] else "apple"
            lines.append(f"{what} at {s.item_x[k]:.0f}, {max(RIM - s.item_y[k], 0):.0f} above the basket")
    return "\n".join(lines)


def expert(s: Any, cfg: Any) -> int:
    """Go for the apple that can still be caught and falls soonest, but not to where a bomb comes down."""
    if not cfg.expert_dashes:
        return 2 * stroll(s, cfg)
    target = aim(s, cfg)
    best, best_cost = 2, 1e9
    for action in range(6):
        move, act = action // 2, action % 2
        x = min(max(s.x + (move - 1) * cfg.walk * (1 + act), LEFT), RIGHT)
        cost = abs(x - target) + 0.1 * act + 0.01 * (move != 1)
        for k in range(cfg.items):
            if s.is_bomb[k] and RIM - 5.0 * cfg.speed <= s.item_y[k] < GROUND - 4.0:
                cost += 100.0 * max(REACH + 2.0 - abs(s.item_x[k] - x), 0.0)
        if cost < best_cost - 1e-9:
            best, best_cost = action, cost
    return best


def aim(s: Any, cfg: Any) -> float:
    """Where the expert wants the basket: under the next apple within reach, else where it is."""
    target, soonest = s.x, 1e9
    for k in range(cfg.items):
        if not s.is_bomb[k] and s.item_y[k] < GROUND - 4.0:
            frames = max((RIM + 4.0 - s.item_y[k]) / cfg.speed, 0.0)
            within_reach = abs(s.item_x[k] - s.x) - REACH <= 2.0 * cfg.walk * frames
            if frames < soonest and within_reach:
                target, soonest = s.item_x[k], frames
    return float(target)


def stroll(s: Any, cfg: Any) -> int:
    """Move of an expert that only walks: under the lowest apple, roughly, and away from a bomb that is about to land.

    Simple to copy: what it does shows on the screen and does not hang on a pixel.
    """
    for k in range(cfg.items):
        if s.is_bomb[k] and RIM - 18.0 < s.item_y[k] < GROUND - 4.0 and abs(s.item_x[k] - s.x) < REACH + 5.0:
            return 0 if s.item_x[k] > s.x else 2
    target = lowest_apple(s, cfg)
    if target < 0 or abs(s.item_x[target] - s.x) <= 6.0:
        return 1
    return 0 if s.item_x[target] < s.x else 2


def render(s: Any, img: Any, cfg: Any) -> None:
    """Sky and meadow, what falls, the basket, and points and lives in the bar at the top."""
    paste(img, MEADOW)
    for k in range(cfg.items):
        if s.item_y[k] >= TOP:
            left, top = math.floor(s.item_x[k]) - 5, math.floor(s.item_y[k]) - 6
            if s.is_bomb[k]:
                blit(img, left, top, BOMB)
            else:
                blit(img, left, top, APPLE)
    blit(img, math.floor(s.x) - 10, 96, BASKET)
    if s.flash > 0:
        blit(img, math.floor(s.x) - 7, 86, BLAST)
    rect(img, 0, 0, 112, 11, (24, 28, 48))
    blit(img, 3, 2, SMALL_APPLE)
    points(img, 13, 3, 2 * s.caught - 3 * s.hit)
    for k in range(s.lives):
        blit(img, 102 - 9 * k, 2, HEART)


def points(img: Any, x: int, y: int, halves: int) -> None:
    """Half points in figures: 7.5 for 15."""
    white = (250, 246, 220)
    if halves < 0:
        rect(img, x, y + 2, 3, 1, white)
        x += 4
    x = number(img, x, y, abs(halves) // 2, 1, white)
    if halves % 2 == 1:
        rect(img, x, y + 4, 1, 1, white)
        number(img, x + 2, y, 5, 1, white)


def _meadow() -> Any:
    """The background: a sky that pales towards two rows of hills, and grass."""
    y, x = np.mgrid[0:112, 0:112]
    share = (y / 106.0)[..., None]
    image = (1 - share) * np.array([112, 184, 240]) + share * np.array([214, 240, 250])
    far, near = 80 + 7 * np.sin(x / 17.0 + 1), 90 + 5 * np.sin(x / 11.0 + 4)
    image[y >= far] = (150, 205, 170)
    image[y >= near] = (122, 190, 128)
    image[y >= 104] = (92, 164, 84)
    image[(y >= 104) & (y < 107) & ((x * 7 + y * 3) % 5 < 2)] = (122, 190, 96)
    return np.ascontiguousarray(image.astype(np.uint8))


MEADOW = _meadow()
_COLOURS = {
    "r": (222, 48, 56),
    "d": (168, 24, 44),
    "w": (255, 214, 206),
    "g": (64, 152, 60),
    "b": (96, 60, 36),
    "k": (38, 38, 52),
    "l": (92, 94, 116),
    "m": (20, 20, 30),
    "y": (255, 226, 92),
    "o": (250, 140, 40),
    "t": (196, 138, 74),
    "u": (156, 100, 48),
    "v": (232, 182, 112),
    "x": (112, 68, 32),
}
APPLE = picture(
    (
        "......gg...",
        ".....bggg..",
        ".rrr.b.rrr.",
        "rrrrrbrrrrr",
        "rwwrrrrrrrr",
        "rwrrrrrrrrd",
        "rrrrrrrrrrd",
        "rrrrrrrrrrd",
        ".rrrrrrrrd.",
        ".drrrrrrdd.",
        "..ddddddd..",
    ),
    _COLOURS,
)
BOMB = picture(
    (
        ".......oy..",
        "......bby..",
        ".....b.....",
        "...kllkk...",
        "..kkkkkkk..",
        ".kllkkkkkk.",
        ".klkkkkkkm.",
        ".kkkkkkkkm.",
        ".kkkkkkkmm.",
        "..kkkkmmm..",
        "...mmmmm...",
    ),
    _COLOURS,
)
BASKET = picture(
    (
        "vvvvvvvvvvvvvvvvvvvvv",
        "xvxvxvxvxvxvxvxvxvxvx",
        ".ttuuttuuttuuttuuttu.",
        ".uuttuuttuuttuuttuut.",
        "..ttuuttuuttuuttuut..",
        "..uuttuuttuuttuuttu..",
        "...ttuuttuuttuuttu...",
        "...xxxxxxxxxxxxxxx...",
    ),
    _COLOURS,
)
BLAST = picture(
    (
        "...o.....o.....",
        "..o..oyo...o...",
        ".o..oyyyo.o..o.",
        "..oyyywyyyyoo..",
        "o.oyywwwwyyo..o",
        "..oyyywwyyyo...",
        ".o.ooyyyyoo.o..",
        "...o..oo..o..o.",
    ),
    _COLOURS,
)
SMALL_APPLE = picture(("...gg..", ".rrgrr.", "rwrrrrr", "rrrrrrd", "rrrrrrd", ".rrrrd.", "..ddd.."), _COLOURS)
HEART = picture((".rr.rr.", "rwrrrrr", "rrrrrrr", "rrrrrrd", ".rrrrd.", "..rrd..", "...d..."), _COLOURS)
