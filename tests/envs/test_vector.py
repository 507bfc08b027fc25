"""What `CoreVectorEnv` does for every core, on a core that counts frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from tests.envs.toys import Clock

from gameagent.contract import BoolArray, FloatArray, IntArray, RewardContext
from gameagent.envs.vector import CoreVectorEnv, checked_actions, reset_mask, seed_list
from gameagent.envs.wrappers import frame_transforms
from gameagent.errors import EnvError


def reward(ctx: RewardContext) -> tuple[FloatArray, dict[str, FloatArray]]:
    """10 a frame from the score, 1 to 3 from the action."""
    terms = {"score": ctx.delta("score"), "gain": ctx.get("gain")}
    return terms["score"] + terms["gain"], terms  # type: ignore[operator, return-value]


def clock(n: int = 3, length: int | None = None, max_frames: int | None = None, **options: Any) -> CoreVectorEnv:
    return CoreVectorEnv(Clock(n, length, max_frames), reward, **options)


def zeros(env: CoreVectorEnv) -> IntArray:
    return np.zeros(env.num_envs, np.int64)


def test_rewards_are_summed_over_the_skip_and_terms_add_up() -> None:
    env = clock(2, length=100, frame_skip=4)
    env.reset(seed=0)
    _, total, terminated, truncated, info = env.step(np.array([0, 2]))
    np.testing.assert_array_equal(info["reward_terms"]["score"], [40, 40])
    np.testing.assert_array_equal(info["reward_terms"]["gain"], [4, 12])
    np.testing.assert_array_equal(total, [44, 52])
    assert not terminated.any()
    assert not truncated.any()


def test_a_finished_env_idles_for_the_rest_of_the_skip() -> None:
    env = clock(2, frame_skip=4)
    env.reset(seed=[0, 1])
    lengths = env.core.lengths()
    seen: dict[int, float] = {}
    for _ in range(2):
        _, total, terminated, _, info = env.step(zeros(env))
        for i in np.flatnonzero(terminated):
            if int(i) in seen:
                continue
            seen[int(i)] = info["final_obs"]["features"][i, 0]
            assert info["final_info"]["score"][i] == 10 * lengths[i]
            assert total[i] == 11 * (lengths[i] % 4 or 4)
    assert seen == {0: lengths[0], 1: lengths[1]}


def test_the_observed_frame_is_drawn_once_however_many_are_skipped() -> None:
    env = clock(3, length=100, frame_skip=5)
    env.reset(seed=0)
    before = env.core.drawn
    env.step(zeros(env))
    assert env.core.drawn - before == 3


def test_only_fresh_episodes_are_drawn_again() -> None:
    env = clock(3)
    env.reset(seed=[0, 1, 2])
    for _ in range(12):
        before = env.core.drawn
        _, _, terminated, _, _ = env.step(zeros(env))
        assert env.core.drawn - before == 3 + terminated.sum()


def test_same_step_autoreset_gives_both_observations() -> None:
    env = clock(1, length=3)
    env.reset(seed=5)
    for t in (1, 2):
        obs, *_, info = env.step(zeros(env))
        assert obs["features"][0, 0] == t
        assert "final_obs" not in info
    obs, _, terminated, _, info = env.step(zeros(env))
    assert terminated[0]
    assert info["final_obs"]["features"][0, 0] == 3
    assert obs["features"][0, 0] == 0
    obs, reward_, *_ = env.step(zeros(env))
    assert obs["features"][0, 0] == 1
    assert reward_[0] == 11  # previous values are those of the fresh episode: no jump back from 30 to 10


def test_rows_of_unfinished_envs_in_final_obs_are_blank() -> None:
    env = clock(8)
    env.reset(seed=0)
    for _ in range(6):
        *_, terminated, _, info = env.step(zeros(env))
        if terminated.any():
            assert not info["final_obs"]["frame"][~terminated].any()
            assert info["final_obs"]["frame"][terminated].any()


@pytest.mark.parametrize(("length", "limit", "flags"), [(3, 5, (1, 0)), (5, 3, (0, 1)), (4, 4, (1, 1))])
def test_limit_truncates_and_end_terminates_and_both_may_coincide(
    length: int, limit: int, flags: tuple[int, int]
) -> None:
    env = clock(1, length, max_episode_steps=limit)
    env.reset(seed=0)
    for _ in range(min(length, limit)):
        _, _, terminated, truncated, _ = env.step(zeros(env))
    assert (int(terminated[0]), int(truncated[0])) == flags


def test_the_games_own_limit_counts_frames_and_the_given_one_steps() -> None:
    own = clock(1, length=1000, max_frames=10, frame_skip=4)
    given = clock(1, length=1000, max_frames=10, frame_skip=4, max_episode_steps=5)
    for env, steps in ((own, 3), (given, 5)):
        env.reset(seed=0)
        cut = [bool(env.step(zeros(env))[3][0]) for _ in range(steps)]
        assert cut == [False] * (steps - 1) + [True]


def test_limit_starts_anew_in_every_episode() -> None:
    env = clock(1, length=1000, max_episode_steps=3)
    env.reset(seed=0)
    assert [bool(env.step(zeros(env))[3][0]) for _ in range(9)] == [False, False, True] * 3


def test_core_may_cut_an_episode_short() -> None:
    env = clock(2, length=50, frame_skip=3)
    env.reset(seed=0)
    env.core.cut = np.array([False, True])
    obs, _, terminated, truncated, info = env.step(zeros(env))
    np.testing.assert_array_equal(truncated, [False, True])
    assert not terminated.any()
    assert info["final_obs"]["features"][1, 0] == 1  # the cut env idled after its first frame


def test_seeds_are_base_plus_index_or_given_one_by_one() -> None:
    a, b = clock(3), clock(3)
    np.testing.assert_array_equal(a.reset(seed=7)[0]["features"], b.reset(seed=[7, 8, 9])[0]["features"])


def test_episodes_do_not_depend_on_the_batch_or_on_neighbours() -> None:
    together, alone = clock(5), clock(1)
    obs, _ = together.reset(seed=100)
    one, _ = alone.reset(seed=103)
    for _ in range(40):
        np.testing.assert_array_equal(obs["features"][3], one["features"][0])
        obs, one = together.step(zeros(together))[0], alone.step(zeros(alone))[0]


def test_reset_without_seed_goes_on_to_the_next_episode() -> None:
    env, other = clock(1, length=3), clock(1, length=3)
    env.reset(seed=4)
    second, _ = env.reset()
    other.reset(seed=4)
    for _ in range(3):
        obs, *_ = other.step(zeros(other))
    np.testing.assert_array_equal(obs["features"], second["features"])


def test_first_reset_uses_the_seed_of_the_constructor() -> None:
    np.testing.assert_array_equal(clock(2, seed=9).reset()[0]["features"], clock(2).reset(seed=9)[0]["features"])
    one, other = clock(2).reset()[0], clock(2).reset()[0]
    assert not np.array_equal(one["features"], other["features"])


def test_masked_reset_touches_the_masked_envs_only() -> None:
    env = clock(3, length=50)
    env.reset(seed=0)
    for _ in range(4):
        env.step(zeros(env))
    options = {"reset_mask": np.array([False, True, False])}
    obs, _ = env.reset(seed=[0, 77, 0], options=options)
    np.testing.assert_array_equal(obs["features"][:, 0], [4, 0, 4])
    assert obs["features"][1, 1] == clock(1).reset(seed=77)[0]["features"][0, 1]
    assert list(options) == ["reset_mask"]
    assert env.step(zeros(env))[1].tolist() == [11, 11, 11]


@pytest.mark.parametrize("size", [None, 2])
def test_observations_are_never_written_to_again(size: int | None) -> None:
    env = clock(4, transforms=frame_transforms(Clock.space, size=size, grey=False, stack=1))
    kept = [env.reset(seed=0)[0]]
    copies = [{k: v.copy() for k, v in kept[0].items()}]
    for _ in range(20):
        obs, *_, info = env.step(zeros(env))
        for given in (obs, info.get("final_obs", obs)):
            kept.append(given)
            copies.append({k: v.copy() for k, v in given.items()})
    for one, copy in zip(kept, copies, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], copy[name])


def test_final_frame_shows_the_last_picture_only_when_asked_for() -> None:
    env, blind = clock(1, length=3, render_mode="rgb_array"), clock(1, length=3)
    for e in (env, blind):
        e.reset(seed=0)
        for _ in range(3):
            *_, info = e.step(zeros(e))
        assert ("final_frame" in info) == (e is env)
        if e is env:
            assert (info["final_frame"][0] == 3).all()
            assert (e.frames()[0] == 0).all()


def test_disabled_autoreset_waits_for_a_reset() -> None:
    env = clock(2, length=2, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    env.step(zeros(env))
    obs, _, terminated, _, info = env.step(zeros(env))
    assert terminated.all()
    assert "final_obs" not in info
    assert (obs["features"][:, 0] == 2).all()
    with pytest.raises(ResetNeeded, match="finished"):
        env.step(zeros(env))
    env.reset(options={"reset_mask": np.array([True, True])})
    env.step(zeros(env))


@pytest.mark.parametrize("options", [{}, {"frame_skip": 2, "sticky": 0.4}, {"max_episode_steps": 4}])
def test_state_round_trip_goes_on_exactly(options: dict[str, Any]) -> None:
    def make() -> CoreVectorEnv:
        core = Clock(4)
        transforms = frame_transforms(core.space, size=2, grey=True, stack=3)
        return CoreVectorEnv(core, reward, transforms=transforms, **options)

    rng = np.random.default_rng(0)
    env = make()
    env.reset(seed=3)
    for _ in range(7):
        env.step(rng.integers(0, 3, 4))
    state, seen = env.get_state(), env.observe()
    plan = rng.integers(0, 3, (20, 4))
    wanted = [env.step(a) for a in plan]
    for target in (env, make()):
        target.set_state(state)
        for name, part in target.observe().items():
            np.testing.assert_array_equal(part, seen[name])
        for a, (obs, reward_, terminated, truncated, _) in zip(plan, wanted, strict=True):
            again = target.step(a)
            np.testing.assert_array_equal(again[0]["frame"], obs["frame"])
            np.testing.assert_array_equal(again[0]["features"], obs["features"])
            np.testing.assert_array_equal(again[1], reward_)
            np.testing.assert_array_equal(again[2], terminated)
            np.testing.assert_array_equal(again[3], truncated)


def test_state_of_another_env_is_refused_naming_both() -> None:
    env = clock(2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="(?s)2 × clock.*3 × clock"):
        clock(3).set_state(env.get_state())
    with pytest.raises(ValueError, match="sticky"):
        clock(2, sticky=0.5).set_state(env.get_state())


def test_score_falls_back_to_the_return() -> None:
    class Plain(Clock):
        def context(self) -> dict[str, FloatArray]:
            return {"gain": self.gain.astype(np.float64)}

    env = CoreVectorEnv(Plain(1, 3), lambda ctx: (2.0 * ctx.signals["gain"], {}))
    env.reset(seed=0)
    for _ in range(3):
        *_, info = env.step(np.array([1]))
    assert info["final_info"]["score"][0] == 12.0


def test_nothing_works_before_the_first_reset() -> None:
    env = clock()
    for call in (lambda: env.step(zeros(env)), env.observe, env.get_state, env.frames, env.expert):
        with pytest.raises(ResetNeeded, match=r"reset\(\)"):
            call()
    with pytest.raises(ResetNeeded, match="all envs once"):
        env.reset(options={"reset_mask": np.array([True, False, False])})


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.array([0, 1, 3]), "0 to 2"),
        (np.array([0, -1, 1]), "0 to 2"),
        (np.array([0, 1]), r"shape \(3,\)"),
        (np.zeros((3, 1), np.int64), r"shape \(3,\)"),
        (np.zeros(3), "dtype float64"),
    ],
)
def test_wrong_actions_are_refused(actions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_actions(actions, 3, 3)


def test_lists_and_short_integers_are_fine_as_actions() -> None:
    assert checked_actions([0, 1, 2], 3, 3).dtype == np.int64
    assert checked_actions(np.array([0, 1, 2], np.uint8), 3, 3).dtype == np.int64


def test_wrong_seeds_and_masks_are_refused() -> None:
    for seed, message in (([1, 2], "2 seeds for 3 envs"), (-1, "from 0"), ([0, 1, -5], "from 0")):
        with pytest.raises(ValueError, match=message):
            seed_list(seed, 3)
    assert seed_list([1, None, 3], 3) == [1, None, 3]
    for mask in (np.zeros(3, np.bool_), np.ones(2, np.bool_), np.ones(3)):
        with pytest.raises(ValueError, match="reset_mask"):
            reset_mask({"reset_mask": mask}, 3)


def test_wrong_settings_are_refused() -> None:
    for options, message in (
        ({"frame_skip": 0}, "frame_skip"),
        ({"max_episode_steps": 0}, "max_episode_steps"),
        ({"sticky": 1.5}, "sticky"),
        ({"autoreset_mode": AutoresetMode.NEXT_STEP}, "NEXT_STEP"),
    ):
        with pytest.raises(ValueError, match=message):
            clock(**options)  # type: ignore[arg-type]


def test_a_reward_of_the_wrong_shape_is_refused() -> None:
    env = CoreVectorEnv(Clock(3), lambda ctx: (ctx.signals["gain"][:, None], {}))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"\(3, 1\)"):
        env.step(zeros(env))


def test_expert_and_flags_are_the_cores() -> None:
    env = clock(2, length=9)
    env.reset(seed=0)
    env.step(zeros(env))
    np.testing.assert_array_equal(env.expert(), [1, 1])  # type: ignore[arg-type]
    done: BoolArray = env.step(zeros(env))[2]
    assert done.dtype == np.bool_


@pytest.mark.parametrize("skip", [1, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_totals_and_terms_are_float64_sums_whatever_the_reward_gives(skip: int, dtype: Any) -> None:
    buffer, again = np.ones(2, dtype), {}
    again["gain"] = buffer  # one array and one dict, over and over

    def careless(ctx: RewardContext) -> Any:
        return buffer, again

    env = CoreVectorEnv(Clock(2, length=100), careless, frame_skip=skip)
    env.reset(seed=0)
    for _ in range(2):
        _, total, _, _, info = env.step(np.zeros(2, np.int64))
        for found in (total, info["reward_terms"]["gain"]):
            assert found.dtype == np.float64
            assert found.tolist() == [skip, skip]
        total += 1.0
        assert info["reward_terms"]["gain"].tolist() == [skip, skip]
    assert buffer.tolist() == [1, 1]


@pytest.mark.parametrize("given", [np.zeros(3), (np.zeros(3),), (np.zeros(3), np.zeros(3))])
def test_a_reward_that_gives_no_pair_is_named(given: Any) -> None:
    env = CoreVectorEnv(Clock(3, None, None), lambda ctx: given)
    env.reset(seed=0)
    with pytest.raises(EnvError, match=r"not \(total, terms\)"):
        env.step(zeros(env))
