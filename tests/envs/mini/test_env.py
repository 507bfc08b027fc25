"""`MiniEnv`, the component."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from tests.envs.toys import SLIM

from gameagent.component import from_config, to_config
from gameagent.envs.mini.env import MiniEnv
from gameagent.rewards.catch import CatchReward


@pytest.mark.parametrize(
    ("fields", "shapes"),
    [
        ({}, {"frame": (112, 112, 3)}),
        ({"frame_size": 56, "frame_stack": 2}, {"frame": (56, 56, 6)}),
        ({"grey": True, "frame_stack": 4, "frame_size": 84}, {"frame": (84, 84, 4)}),
        ({"obs": "features"}, {"features": (20,)}),
        ({"obs": "both", "frame_size": 28}, {"frame": (28, 28, 3), "features": (20,)}),
        ({"obs": "text"}, {"text": ()}),
    ],
)
def test_obs_space_is_known_without_making_the_env(fields: dict[str, object], shapes: dict[str, object]) -> None:
    spec = MiniEnv(**fields)  # type: ignore[arg-type]
    env = spec.make(2, 0)
    assert {n: p.shape for n, p in spec.obs_space.items()} == shapes
    assert spec.obs_space == env.obs_space
    assert spec.actions == env.actions
    parts = env.obs_space.as_parts(env.reset(seed=0)[0])
    assert {n: p.shape for n, p in parts.items()} == {n: (2, *shape) for n, shape in shapes.items()}  # type: ignore[misc]


def test_raw_is_every_frame_untouched() -> None:
    shaped = {"frame_skip": 4, "frame_size": 56, "frame_stack": 3, "grey": True, "sticky": 0.2, "max_episode_steps": 9}
    spec = MiniEnv(obs="features", knobs={"lives": 2}, **shaped)  # type: ignore[arg-type]
    assert spec.raw() == MiniEnv(obs="features", knobs={"lives": 2})


def test_survives_its_plain_form() -> None:
    spec = MiniEnv(frame_skip=4, knobs={"lives": 2, "expert_dashes": False}, reward=CatchReward(tracking=0.5))
    assert from_config(to_config(spec)) == spec


@pytest.mark.parametrize(
    "fields", [{"num_envs": 0}, {"frame_skip": 0}, {"sticky": 1.5}, {"obs": "smell"}, {"reward": 3}, {"frame_stak": 2}]
)
def test_wrong_fields_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MiniEnv(**fields)  # type: ignore[arg-type]


def test_own_reward_is_the_games_hook_or_else_its_score(tmp_path: Path) -> None:
    plain, hooked = tmp_path / "plain.py", tmp_path / "hooked.py"
    plain.write_text(SLIM)
    hooked.write_text(
        SLIM + "\n\ndef reward(ctx):\n    gain = 7.0 * ctx.delta('score')\n    return gain, {'seven': gain}\n"
    )
    for path, wanted, terms in ((plain, 1.0, ["score"]), (hooked, 7.0, ["seven"])):
        env = MiniEnv(game=str(path)).make(1, 0)
        env.reset(seed=0)
        _, reward, _, _, info = env.step(np.array([0]))
        assert reward[0] == wanted
        assert list(info["reward_terms"]) == terms
    env = MiniEnv(game=str(hooked), reward=CatchReward()).make(1, 0)
    env.reset(seed=0)
    assert env.step(np.array([0]))[1][0] == 0.0


def test_state_survives_the_formats_that_checkpoints_use(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    env = MiniEnv(frame_size=28, frame_stack=2, sticky=0.3).make(3, 0)
    env.reset(seed=0)
    for _ in range(5):
        env.step(np.array([0, 3, 5]))

    def tensors(value: object) -> object:
        if isinstance(value, dict):
            return {k: tensors(v) for k, v in value.items()}
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    def arrays(value: object) -> object:
        if isinstance(value, dict):
            return {k: arrays(v) for k, v in value.items()}
        return value.numpy() if isinstance(value, torch.Tensor) else value

    torch.save(tensors(env.get_state()), tmp_path / "state.pt")
    other = MiniEnv(frame_size=28, frame_stack=2, sticky=0.3).make(3, 9)
    other.set_state(arrays(torch.load(tmp_path / "state.pt", weights_only=True)))
    for _ in range(20):
        one, two = env.step(np.array([5, 3, 0])), other.step(np.array([5, 3, 0]))
        for a, b in zip(one[:4], two[:4], strict=True):
            np.testing.assert_array_equal(a, b)


def test_state_of_a_changed_game_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "walk.py"
    path.write_text(SLIM)
    env = MiniEnv(game=str(path)).make(1, 0)
    env.reset(seed=0)
    state = env.get_state()
    path.write_text(SLIM.replace('("steps", int)', '("steps", int), ("more", float)'))
    with pytest.raises(ValueError, match="another layout"):
        MiniEnv(game=str(path)).make(1, 0).set_state(state)


def test_two_threads_may_play_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def play(seed: int) -> float:
        env = MiniEnv(obs="features").make(4, 0)
        env.reset(seed=seed)
        return sum(float(env.step(np.full(4, t % 6))[1].sum()) for t in range(200))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(play, [1, 2, 1, 2])) == [play(1), play(2)] * 2
