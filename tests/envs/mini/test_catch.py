"""MiniCatch's rules, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gameagent.envs.mini import catch
from gameagent.envs.mini.env import MiniEnv
from gameagent.envs.vector import CoreVectorEnv
from gameagent.rewards.catch import CatchReward

STAY, LEFT, DASH_RIGHT = 2, 0, 5


def scene(y: float, x: float, *, bomb: bool, at: float = 56.0, **knobs: Any) -> CoreVectorEnv:
    """One thing at (x, y), the basket at `at`."""
    env = MiniEnv(knobs={"items": 1, "speed": 2.0, **knobs}, reward=CatchReward()).make(1, 0)
    env.reset(seed=0)
    states = env.core._states
    states["item_x"][0, 0], states["item_y"][0, 0], states["is_bomb"][0, 0], states["x"] = x, y, bomb, at
    return env


def act(env: CoreVectorEnv, action: int) -> tuple[float, bool, dict[str, np.ndarray]]:
    _, reward, terminated, _, _ = env.step(np.array([action]))
    return float(reward[0]), bool(terminated[0]), env.core.context()


def test_an_apple_in_the_basket_is_a_point() -> None:
    env = scene(95.0, 60.0, bomb=False)
    reward, over, now = act(env, STAY)
    assert (reward, over) == (1.0, False)
    assert (now["apples"][0], now["score"][0], now["lives"][0]) == (1, 1, 3)
    reward, _, now = act(env, STAY)
    assert (reward, now["apples"][0], now["score"][0]) == (0.0, 0, 1)


def test_a_bomb_costs_a_life_and_a_point_and_a_half() -> None:
    reward, over, now = act(scene(95.0, 60.0, bomb=True), STAY)
    assert (reward, over) == (-1.5, False)
    assert (now["bombs"][0], now["score"][0], now["lives"][0]) == (1, -1.5, 2)


def test_the_last_life_ends_the_game() -> None:
    _, over, _ = act(scene(95.0, 56.0, bomb=True, lives=1), STAY)
    assert over


def test_a_missed_apple_costs_nothing() -> None:
    env = scene(107.0, 20.0, bomb=False)
    reward, over, now = act(env, STAY)
    assert (reward, over, now["score"][0]) == (0.0, False, 0)
    assert env.core._states["item_y"][0, 0] == catch.TOP  # a new thing falls


@pytest.mark.parametrize(("y", "x", "caught"), [(94.0, 65.9, 1), (94.0, 66.0, 0), (93.9, 60.0, 0), (102.0, 60.0, 0)])
def test_the_basket_catches_within_its_reach_only(y: float, x: float, caught: int) -> None:
    assert act(scene(y, x, bomb=False), STAY)[2]["apples"][0] == caught


def test_walking_dashing_and_the_walls() -> None:
    for action, start, end in (
        (LEFT, 56, 53),
        (DASH_RIGHT, 56, 62),
        (LEFT, 11, 10),
        (DASH_RIGHT, 100, 102),
        (3, 56, 56),
    ):
        env = scene(20.0, 20.0, bomb=False, at=start)
        act(env, action)
        assert env.core._states["x"][0] == end


def test_game_is_cut_after_its_limit_not_lost() -> None:
    env = MiniEnv(knobs={"bombs": 0.0}, frame_skip=8, obs="features").make(1, 0)
    env.reset(seed=0)
    ends = [env.step(np.array([STAY]))[2:4] for _ in range(125)]
    assert [bool(t[0]) for t, _ in ends] == [False] * 125
    assert [bool(t[0]) for _, t in ends] == [False] * 124 + [True]


def test_knobs_change_the_game() -> None:
    env = MiniEnv(knobs={"lives": 5, "bombs": 1.0, "items": 6}, obs="features").make(50, 0)
    env.reset(seed=0)
    assert (env.core.context()["lives"] == 5).all()
    assert (env.core._states["is_bomb"] == 1).all()
    with pytest.raises(ValueError, match="1 to 6"):
        MiniEnv(knobs={"items": 7})


def mean_score(policy: str, **knobs: Any) -> float:
    env = MiniEnv(knobs=knobs, obs="features").make(60, 0)
    env.reset(seed=0)
    rng, scores = np.random.default_rng(0), np.full(60, np.nan)
    while np.isnan(scores).any():
        actions = env.expert() if policy == "expert" else rng.integers(0, 6, 60)
        *_, info = env.step(actions)  # type: ignore[arg-type]
        if "final_info" in info:
            first = info["_final_info"] & np.isnan(scores)
            scores[first] = info["final_info"]["score"][first]
    return float(scores.mean())


def test_the_expert_is_good_and_the_walking_one_leaves_room() -> None:
    dashing, walking = mean_score("expert"), mean_score("expert", expert_dashes=False)
    assert dashing > walking + 8 > mean_score("random") + 40


def test_the_walking_expert_never_dashes() -> None:
    env = MiniEnv(knobs={"expert_dashes": False}, obs="features").make(20, 0)
    env.reset(seed=0)
    for _ in range(100):
        actions = env.expert()
        assert actions is not None
        assert (actions % 2 == 0).all()
        env.step(actions)


def test_features_are_small_and_text_tells_what_is_seen() -> None:
    env = MiniEnv(obs="features").make(8, 0)
    obs, _ = env.reset(seed=0)
    for _ in range(50):
        assert np.abs(obs).max() <= 1.0
        obs, *_ = env.step(np.full(8, DASH_RIGHT))
    words = MiniEnv(obs="text").make(1, 0)
    words.reset(seed=0)
    told = [words.step(np.array([STAY]))[0][0] for _ in range(30)][-1]
    assert "You are at 56 of 112. Lives: 3. Points: 0." in told
    assert "above the basket" in told


def test_everything_on_the_screen_can_be_told_apart() -> None:
    colours = {}
    for name, sprite in (("apple", catch.APPLE), ("bomb", catch.BOMB), ("basket", catch.BASKET)):
        colours[name] = sprite[sprite[..., 3] > 0][:, :3].mean(0)
    colours["sky"] = catch.MEADOW[20:70].reshape(-1, 3).mean(0)
    names = list(colours)
    for i, a in enumerate(names):
        for b in names[:i]:
            assert np.abs(colours[a] - colours[b]).sum() > 90, (a, b)
