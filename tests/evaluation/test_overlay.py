"""The panel beside a video shows what the policy did and thought."""

from __future__ import annotations

import numpy as np
import pytest

from gameagent.contract import ActionSpace, Array
from gameagent.evaluation.overlay import CHOSEN, OTHER, Decision, Panel

CATCH = ActionSpace({"move": ("left", "stay", "right"), "act": ("wait", "dash")})


def filled(picture: Array, colour: tuple[int, int, int]) -> int:
    return int((picture == np.array(colour)).all(-1).sum())


def decision(move: list[float], act: list[float]) -> Decision:
    return Decision(4, score=3, step=1, steps=10, probabilities=(np.array(move), np.array(act)), value=1.5)


@pytest.mark.parametrize("height", [448, 480, 240])
def test_the_panel_is_as_high_as_the_picture(height: int) -> None:
    picture = Panel(CATCH, height, "PPO").draw(decision([0.1, 0.2, 0.7], [0.9, 0.1]))
    assert picture.shape == (height, round(height / 2), 3)
    assert picture.dtype == np.uint8


def test_a_likelier_action_has_a_longer_bar_and_the_chosen_one_its_own_colour() -> None:
    panel = Panel(CATCH, 448, "PPO")
    sure, unsure = panel.draw(decision([0, 0, 1], [1, 0])), panel.draw(decision([0.3, 0.3, 0.4], [0.5, 0.5]))
    assert filled(sure, CHOSEN) > 1.5 * filled(unsure, CHOSEN)
    assert filled(sure, OTHER) == 0 < filled(unsure, OTHER)


def test_a_player_without_probabilities_is_drawn_too() -> None:
    picture = Panel(CATCH, 448, "expert").draw(Decision(4, score=3, step=0, steps=10))
    assert filled(picture, CHOSEN) > 0
    assert filled(picture, OTHER) == 0


def test_of_many_labels_the_likeliest_and_the_chosen_one_are_shown() -> None:
    p = np.array([0.0, 0.5, 0.1, 0.3, 0.05, 0.05])
    assert Panel._shown(p, 0, 3) == [0, 1, 3]
    assert Panel._shown(p, 1, 3) == [1, 2, 3]
    assert Panel._shown(p, 0, 6) == [0, 1, 2, 3, 4, 5]
