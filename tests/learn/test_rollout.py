"""Collecting play: what is stored, in which type, where final observations go, which environments are refused."""

from __future__ import annotations

import pytest
import torch
from tests.learn.fakes import LAST, Ending, FakeEnv, Frames, small_policy

from gameagent.envs.base import AutoresetMode
from gameagent.learn.guard import FiniteGuard
from gameagent.learn.rollout import Collector
from gameagent.nets.encoders import Tiny
from gameagent.policies.actor_critic import ActorCritic

CPU = torch.device("cpu")


def collector(env: FakeEnv, steps: int = 7, seed: int = 0) -> Collector:
    return Collector(env.make(), steps=steps, device=CPU, seed=seed, guard=FiniteGuard(strict=True))


def test_rows_follow_each_other_over_resets_and_rollouts_though_the_env_reuses_its_buffer() -> None:
    env = FakeEnv(num_envs=2, limit=5)
    play, policy = collector(env), small_policy(env)
    rollout = play.collect(policy)
    assert rollout.obs["features"][:, 0, 0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert play.collect(policy) is rollout
    assert rollout.obs["features"][:, 0, 0].tolist() == [2, 3, 4, 0, 1, 2, 3, 4]


def test_final_observations_are_kept_for_truncated_steps_only() -> None:
    env = FakeEnv(num_envs=2, limit=5)
    rollout = collector(env).collect(small_policy(env))
    assert rollout.truncated[:, 0].tolist() == [False] * 4 + [True] + [False] * 2
    assert [f["features"][:, 0].tolist() for f in rollout.finals] == [[LAST + 5, LAST + 5]]
    env = FakeEnv(num_envs=2, limit=5, ending=Ending.terminated)
    rollout = collector(env).collect(small_policy(env))
    assert rollout.terminated[4].all()
    assert not rollout.truncated.any()
    assert rollout.finals == []


def test_values_come_in_the_order_of_the_rows_and_of_the_cuts() -> None:
    env = FakeEnv(num_envs=2, limit=3)
    policy = small_policy(env)
    rollout = collector(env, steps=7).collect(policy)
    values, finals = rollout.evaluate(policy, chunk=3)
    with torch.no_grad():
        torch.testing.assert_close(values, torch.stack([policy.value(rollout.at(t)) for t in range(8)]))
        torch.testing.assert_close(finals, torch.cat([policy.value(f) for f in rollout.finals]))
    assert finals.shape == (4,)


def test_final_observations_of_all_steps_share_the_critics_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    env = FakeEnv(num_envs=2, limit=2)
    policy, sizes = small_policy(env), []
    rollout = collector(env, steps=8).collect(policy)
    whole = policy.value
    monkeypatch.setattr(policy, "value", lambda obs: (sizes.append(len(obs["features"])), whole(obs))[1])
    _, finals = rollout.evaluate(policy, chunk=6)
    assert len(rollout.finals) == 4
    assert finals.shape == (8,)
    assert sizes == [6, 6, 6, 6, 2]  # 9 rows of 2, then 4 cuts of 2


def test_statistics_count_whole_episodes() -> None:
    env = FakeEnv(num_envs=2, limit=5, reward=2.0)
    play = collector(env, steps=12)
    play.collect(small_policy(env))
    found = play.metrics()
    assert (found["train/return"], found["train/length"], found["train/episodes"]) == (10.0, 5.0, 4.0)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_other_autoreset_modes_are_refused(mode: AutoresetMode) -> None:
    with pytest.raises(ValueError, match="SAME_STEP"):
        collector(FakeEnv(mode=mode))


def test_state_goes_on_where_it_was() -> None:
    env = FakeEnv(num_envs=3, limit=4)
    policy = small_policy(env)
    play, other = collector(env), collector(env, seed=99)
    play.collect(policy)
    other.set_state(play.get_state())
    a, b = play.collect(policy), other.collect(policy)
    for name in ("action", "log_prob", "reward", "truncated"):
        assert torch.equal(getattr(a, name), getattr(b, name)), name
    assert torch.equal(a.obs["features"], b.obs["features"])
    assert play.metrics() == other.metrics()


def test_frames_are_stored_as_bytes_and_cast_once_where_asked() -> None:
    env = Frames(FakeEnv(ending=Ending.never), 2)
    policy = ActorCritic(encoder=Tiny(channels=(4, 4))).build(env.obs_space, env.actions)
    rollout = Collector(env, steps=3, device=CPU, seed=0, guard=FiniteGuard(strict=True)).collect(policy)
    assert rollout.obs["frame"].dtype == torch.uint8
    flat = rollout.flat_obs()["frame"]
    assert flat.dtype == torch.uint8
    assert flat.data_ptr() == rollout.obs["frame"].data_ptr()
    cast = rollout.flat_obs(torch.bfloat16)["frame"]
    assert cast.dtype == torch.bfloat16
    assert cast.flatten(1)[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
