"""The adapter for Gymnasium's environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from gameagent.envs.base import AutoresetMode
from gameagent.envs.gym import FrameSkip, GymEnv
from gameagent.envs.gym_spaces import Actions, Observations
from gameagent.errors import EnvError


class Toy(gymnasium.Env[Any, Any]):
    """Counts steps; ends after 4 to 7 of them. Returns one and the same buffer each time, as emulators do."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(
        self, render_mode: str | None = None, space: Any = None, actions: Any = None, honest: bool = True
    ) -> None:
        self.render_mode, self.honest = render_mode, honest
        self.observation_space = space or spaces.Box(0, 255, (6, 8, 3), np.uint8)
        self.action_space = actions or spaces.Discrete(3)
        self.taken: list[Any] = []
        if isinstance(self.observation_space, spaces.Box):
            self.buffer = np.zeros(self.observation_space.shape, self.observation_space.dtype)

    def _obs(self) -> Any:
        if isinstance(self.observation_space, spaces.Box):
            self.buffer[...] = self.t
            return self.buffer
        return {k: np.full(s.shape, self.t, s.dtype) for k, s in self.observation_space.items()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        self.end = int(self.np_random.integers(4, 8))
        return self._obs(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.taken.append(action)
        noise = float(self.np_random.normal()) if self.honest else float(np.random.default_rng().normal())
        return self._obs(), noise, self.t >= self.end, False, {}

    def render(self) -> Any:
        return np.full((4, 5, 3), self.t, np.uint8)


gymnasium.register("gameagent-tests/Toy-v0", Toy, disable_env_checker=True)  # it shares its buffer on purpose


def toy(**fields: Any) -> GymEnv:
    return GymEnv(id="gameagent-tests/Toy-v0", **fields)


def test_cartpole_is_features_and_its_score_is_its_length() -> None:
    spec = GymEnv()
    env = spec.make(4, seed=0)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert spec.obs_space == env.obs_space
    assert spec.actions == env.actions
    obs, _ = env.reset()
    assert obs.dtype == np.float32
    ended, lengths = 0, np.zeros(4)
    while ended < 8:
        *_, terminated, _, info = env.step(np.ones(4, np.int64))
        lengths += 1
        for i in np.flatnonzero(terminated):
            assert info["final_info"]["score"][i] == lengths[i]
            lengths[i], ended = 0, ended + 1


def test_episodes_do_not_depend_on_the_batch() -> None:
    together, alone = toy().make(3), toy().make(1)
    together.reset(seed=[5, 6, 7])
    alone.reset(seed=[6])
    for _ in range(40):
        one, other = together.step(np.zeros(3, np.int64)), alone.step(np.zeros(1, np.int64))
        assert one[1][1] == other[1][0]
        assert one[2][1] == other[2][0]


def test_state_is_plain_and_goes_on_exactly() -> None:
    rng = np.random.default_rng(0)
    env = toy(frame_stack=2, sticky=0.3, frame_skip=2, max_episode_steps=3, frame_size=4).make(3, seed=1)
    env.reset()
    for _ in range(9):
        env.step(rng.integers(0, 3, 3))
    state, seen = env.get_state(), env.observe()
    plan = rng.integers(0, 3, (12, 3))
    wanted = [env.step(a)[:4] for a in plan]
    other = toy(frame_stack=2, sticky=0.3, frame_skip=2, max_episode_steps=3, frame_size=4).make(3, seed=50)
    for target in (env, other):
        target.set_state(state)
        np.testing.assert_array_equal(target.observe(), seen)
        for a, want in zip(plan, wanted, strict=True):
            for got, part in zip(target.step(a)[:4], want, strict=True):
                np.testing.assert_array_equal(got, part)


def test_a_masked_reset_works_in_a_fresh_batch_that_took_over_a_state() -> None:
    env, fresh = toy().make(3, seed=1), toy().make(3, seed=50)
    env.reset()
    env.step(np.zeros(3, np.int64))
    fresh.set_state(env.get_state())
    mask = {"reset_mask": np.array([False, True, False])}
    for target in (env, fresh):
        obs, _ = target.reset(seed=[None, 9, None], options=dict(mask))
        assert obs[:, 0, 0, 0].tolist() == [1, 0, 1]
    np.testing.assert_array_equal(env.step(np.zeros(3, np.int64))[1], fresh.step(np.zeros(3, np.int64))[1])


def test_an_env_that_draws_elsewhere_cannot_be_resumed_and_says_so() -> None:
    env = toy(kwargs={"honest": False}).make(1)
    env.reset(seed=0)
    env.step(np.zeros(1, np.int64))
    with pytest.raises(EnvError, match="cannot be resumed exactly.*np_random"):
        env.set_state(env.get_state())


def test_frame_skip_sums_rewards_and_stops_at_the_end() -> None:
    inner = Toy()
    env = FrameSkip(inner, 5)
    env.reset(seed=0)
    rewards = []
    step = inner.step

    def counted(action: Any) -> Any:
        result = step(action)
        rewards.append(result[1])
        return result

    inner.step = counted  # type: ignore[method-assign]
    total, terminated = 0.0, False
    while not terminated:
        _, reward, terminated, _, _ = env.step(0)
        total += reward
    assert len(rewards) == inner.end
    assert total == pytest.approx(sum(rewards))


def test_own_limit_counts_steps_and_replaces_the_registered_one() -> None:
    env = GymEnv(id="MountainCar-v0", max_episode_steps=300, frame_skip=2).make(1, seed=0)
    env.reset()
    cut = [bool(env.step(np.ones(1, np.int64))[3][0]) for _ in range(300)]
    assert cut == [False] * 299 + [True]


def test_raw_is_every_frame_untouched() -> None:
    raw = toy(frame_skip=4, frame_size=4, frame_stack=2, grey=True, sticky=0.5, max_episode_steps=7).raw()
    assert raw == toy()


def test_final_frame_is_the_last_picture() -> None:
    env = toy().make(1, seed=0, render_mode="rgb_array")
    env.reset()
    for t in range(1, 9):
        *_, terminated, _, info = env.step(np.zeros(1, np.int64))
        if terminated[0]:
            assert (info["final_frame"][0] == t).all()
            assert (env.frames()[0] == 0).all()  # type: ignore[index]
            return
    pytest.fail("no episode ended")


def test_frames_are_none_without_a_render_mode() -> None:
    env = toy().make(1, seed=0)
    env.reset()
    assert env.frames() is None


def test_an_env_that_cannot_draw_says_so_at_once() -> None:
    with pytest.raises(EnvError, match="render modes"):
        toy().make(1, render_mode="human")


def test_multidiscrete_is_factored() -> None:
    space = spaces.MultiDiscrete([2, 3], start=[0, 5])
    actions = Actions(Toy(actions=space), "toy")
    assert actions.space.sizes == (2, 3)
    assert actions.space.heads["head1"] == ("5", "6", "7")
    np.testing.assert_array_equal(actions.native(np.array([0, 4, 5])), [[0, 5], [1, 6], [1, 7]])
    env = toy(kwargs={"actions": space}).make(2, seed=0)
    env.reset()
    env.step(np.array([1, 5]))
    np.testing.assert_array_equal(env.sync.envs[1].unwrapped.taken[0], [1, 7])  # type: ignore[attr-defined]


def test_discrete_may_start_anywhere() -> None:
    actions = Actions(Toy(actions=spaces.Discrete(3, start=-1)), "toy")
    np.testing.assert_array_equal(actions.native(np.array([0, 2])), [-1, 1])
    assert actions.space.heads["action"] == ("-1", "0", "1")


def test_action_meanings_become_labels() -> None:
    env = Toy()
    env.get_action_meanings = lambda: ["NOOP", "UP", "DOWN"]  # type: ignore[attr-defined]
    assert Actions(env, "toy").space.heads["action"] == ("NOOP", "UP", "DOWN")


def test_dict_observations_become_frame_and_features() -> None:
    space = spaces.Dict(
        {
            "cam": spaces.Box(0, 255, (6, 8), np.uint8),
            "pos": spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
            "ram": spaces.Box(0, 255, (3,), np.uint8),
        }
    )
    env = toy(kwargs={"space": space}).make(2, seed=0)
    assert env.obs_space["frame"].shape == (6, 8, 1)
    assert env.obs_space["features"].shape == (7,)
    obs, _ = env.reset()
    assert obs["features"].dtype == np.float32
    obs, *_ = env.step(np.zeros(2, np.int64))
    assert (obs["features"] == 1).all()
    assert (obs["frame"] == 1).all()


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Discrete(5), "FlattenObservation"),
        (spaces.Dict({"a": spaces.Discrete(2)}), "'a'"),
        (spaces.Box(0, 255, (3, 84, 84), np.uint8), "height × width × channels"),
        (spaces.Dict({k: spaces.Box(0, 255, (4, 4, 3), np.uint8) for k in "ab"}), r"\['a', 'b'\]"),
    ],
)
def test_other_observations_are_refused_with_advice(space: Any, message: str) -> None:
    with pytest.raises(EnvError, match=message):
        Observations(space, "toy")


def test_continuous_actions_are_refused_with_advice() -> None:
    with pytest.raises(EnvError, match=r"Pendulum-v1: actions are Box.*ActionWrapper"):
        GymEnv(id="Pendulum-v1").make(1)


def test_unknown_ids_name_the_nearest() -> None:
    with pytest.raises(ValueError, match="CartPole-v1"):
        GymEnv(id="CartPol-v1")


def test_wrong_arguments_of_the_env_are_named() -> None:
    with pytest.raises(EnvError, match=r"gymnasium.make\('gameagent-tests/Toy-v0', \*\*{'speed': 3}\)"):
        toy(kwargs={"speed": 3}).make(1)


def test_nothing_works_before_the_first_reset() -> None:
    env = toy().make(2)
    for call in (lambda: env.step(np.zeros(2, np.int64)), env.observe, env.get_state):
        with pytest.raises(ResetNeeded):
            call()


def test_state_of_another_env_is_refused() -> None:
    env = toy().make(2)
    env.reset()
    with pytest.raises(EnvError, match="(?s)2 × .*3 × "):
        toy().make(3).set_state(env.get_state())
