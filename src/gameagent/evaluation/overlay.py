"""What stands beside the picture in a video: score, time, the action taken and how likely each one was.

panel = Panel(actions=env.actions, height=448, title="PPO"); picture = np.hstack([frame, panel.draw(decision)])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gameagent.contract import ActionSpace, Array, FloatArray

BACKGROUND = (17, 20, 28)
TRACK = (38, 44, 58)
TEXT = (232, 236, 244)
QUIET = (139, 149, 168)
CHOSEN = (94, 200, 255)
OTHER = (78, 92, 122)
GOOD = (126, 214, 140)

_DESIGN_HEIGHT = 448
"""All sizes below are for a panel this high; others are scaled."""
_ROW, _GAP, _MARGIN = 21, 12, 20


@dataclass(frozen=True)
class Decision:
    """One decision of the policy and how the episode stands."""

    action: int
    """Flat id."""
    score: float
    """So far, before it."""
    step: int
    """Decisions taken before this one."""
    steps: int
    """Decisions in the whole episode."""
    probabilities: tuple[FloatArray, ...] | None = None
    """Of each head's labels, (size,) each; None where the player has none (expert, random)."""
    value: float | None = None
    """The policy's own estimate of the return still to come."""


class Panel:
    """Draws panels of one size.

    Args:
        actions: names the heads and their labels.
        height: rows of the panel: those of the picture that it stands beside.
        title: who plays.
        subtitle: small print under it.
        counts: what `Decision.score` is.
    """

    def __init__(
        self, actions: ActionSpace, height: int, title: str, subtitle: str = "", counts: str = "score"
    ) -> None:
        self.actions, self.title, self.subtitle, self.counts = actions, title, subtitle, counts
        self._scale = height / _DESIGN_HEIGHT
        self.height, self.width = height, self._px(224)

    def draw(self, decision: Decision) -> Array:
        """The panel (height, width, 3) uint8."""
        image = Image.new("RGB", (self.width, self.height), BACKGROUND)
        pen = ImageDraw.Draw(image)
        self._text(pen, _MARGIN, 16, self.title, 19, TEXT, bold=True)
        self._text(pen, _MARGIN, 41, self.subtitle, 11, QUIET)
        self._text(pen, _MARGIN, 66, self.counts.upper(), 10, QUIET)
        score = f"{decision.score:.6g}"
        size = min(40, 140 / len(score))  # long scores must not run into their neighbour
        self._text(pen, _MARGIN, 76 + (40 - size) / 2, score, size, GOOD, bold=True)
        if decision.value is not None:
            self._text(pen, 138, 66, "EXPECTS", 10, QUIET)
            self._text(pen, 138, 84, f"{decision.value:+.1f}", 22, TEXT)
        self._text(pen, _MARGIN, 134, "ACTION", 10, QUIET)
        self._text(pen, _MARGIN, 147, self.actions.label(decision.action).replace("+", " + "), 17, CHOSEN, bold=True)
        self._heads(pen, decision, top=180)
        self._time(pen, decision)
        return np.asarray(image)

    def _heads(self, pen: ImageDraw.ImageDraw, decision: Decision, top: float) -> None:
        """One block of bars a head. Without probabilities the chosen labels stand at 1."""
        chosen = self.actions.unflatten(decision.action)
        rows_left = int((_DESIGN_HEIGHT - 56 - top) // _ROW) - len(chosen)
        for k, (name, labels) in enumerate(self.actions.heads.items()):
            given = decision.probabilities
            p = np.eye(len(labels))[chosen[k]] if given is None else given[k]
            shown = self._shown(p, int(chosen[k]), max(1, rows_left // (len(chosen) - k)))
            rows_left -= len(shown)
            self._text(pen, _MARGIN, top, name.upper(), 10, QUIET)
            top += 14
            for i in shown:
                self._bar(pen, top, labels[i], float(p[i]), bool(i == chosen[k]), known=given is not None)
                top += _ROW
            top += _GAP

    @staticmethod
    def _shown(p: FloatArray, chosen: int, room: int) -> list[int]:
        """All labels in order where they fit; else the likeliest, the chosen one always among them."""
        if len(p) <= room:
            return list(range(len(p)))
        best = [int(i) for i in np.argsort(-p, kind="stable")]
        best.remove(chosen)
        return sorted([chosen, *best[: room - 1]])

    def _bar(self, pen: ImageDraw.ImageDraw, top: float, label: str, p: float, chosen: bool, *, known: bool) -> None:
        left, right = 86.0, 224.0 - _MARGIN - (30 if known else 0)
        box = [self._px(left), self._px(top + 4), self._px(right), self._px(top + 14)]
        radius = self._px(4)
        pen.rounded_rectangle(box, radius, fill=TRACK)
        if p > 0.005:
            end = max(left + (right - left) * p, left + 8)
            pen.rounded_rectangle([*box[:2], self._px(end), box[3]], radius, fill=CHOSEN if chosen else OTHER)
        self._text(pen, _MARGIN, top + 2, label[:10], 12, TEXT if chosen else QUIET, bold=chosen)
        if known:
            self._text(pen, right + 6, top + 3, f"{100 * p:.0f}%", 10, TEXT if chosen else QUIET)

    def _time(self, pen: ImageDraw.ImageDraw, decision: Decision) -> None:
        """How far the episode is, at the bottom edge."""
        left, right, y = _MARGIN, 224 - _MARGIN, _DESIGN_HEIGHT - 22
        end = left + (right - left) * (decision.step + 1) / max(decision.steps, 1)
        self._text(pen, left, y - 18, f"step {decision.step + 1} of {decision.steps}", 10, QUIET)
        pen.rectangle([self._px(left), self._px(y), self._px(right), self._px(y + 3)], fill=TRACK)
        pen.rectangle([self._px(left), self._px(y), self._px(end), self._px(y + 3)], fill=QUIET)

    def _px(self, length: float) -> int:
        return round(length * self._scale)

    def _text(
        self,
        pen: ImageDraw.ImageDraw,
        x: float,
        y: float,
        text: str,
        size: float,
        colour: tuple[int, int, int],
        *,
        bold: bool = False,
    ) -> None:
        pen.text((self._px(x), self._px(y)), text, colour, _font(max(6, self._px(size)), bold))


@cache
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which comes with matplotlib: no system font is needed, and it knows most scripts."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(str(folder / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")), size)
