"""Actors: what they ask of an environment and what they say where it can't give it."""

from __future__ import annotations

import numpy as np
import pytest

from gameagent.contract import ActionSpace, ContractError, ObsSpace
from gameagent.envs.base import VectorEnv
from gameagent.envs.gym import GymEnv
from gameagent.envs.mini.env import MiniEnv
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.actors import Actor, ExpertActor, PolicyActor, RandomActor
from gameagent.policies.samplers import Argmax, Sampler, Temperature, TieTolerance


@pytest.fixture
def env() -> VectorEnv:
    return MiniEnv(game="catch", obs="features").make(num_envs=3, seed=0)


def same_obs(env: VectorEnv) -> dict[str, np.ndarray]:
    return {name: np.zeros((env.num_envs, *part.shape), part.dtype) for name, part in env.obs_space.items()}


def play(actor: Actor, env: VectorEnv, steps: int = 5) -> np.ndarray:
    """Actions (steps, N)."""
    obs, _ = env.reset(seed=0)
    actions = []
    for _ in range(steps):
        actions.append(actor.act(env.obs_space.as_parts(obs), env))
        obs, *_ = env.step(actions[-1])
    return np.array(actions)


def test_policy_actor_plays_what_its_sampler_chooses(env: VectorEnv) -> None:
    policy = ActorCritic().build(env.obs_space, env.actions)
    obs, _ = env.reset(seed=0)
    parts = env.obs_space.as_parts(obs)
    expected = Argmax()(policy.infer(parts).logits, np.random.default_rng(0))
    np.testing.assert_array_equal(PolicyActor(policy, Argmax()).act(parts, env), expected)


def test_policy_actor_is_repeated_by_its_seed(env: VectorEnv) -> None:
    policy = ActorCritic().build(env.obs_space, env.actions)
    first, second, other = (play(PolicyActor(policy, Temperature(), seed=s), env, 20) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


@pytest.mark.parametrize("sampler", [Temperature(), TieTolerance(tolerance=1)])
def test_announced_episodes_draw_alike_in_any_batch(env: VectorEnv, sampler: Sampler) -> None:
    policy = ActorCritic().build(env.obs_space, env.actions)
    for make in (lambda: PolicyActor(policy, sampler, seed=5), lambda: RandomActor(seed=5)):
        three, two = make(), make()
        three.begin(np.ones(3, bool), [10, 11, 12])
        two.begin(np.ones(2, bool), [12, 10])
        small = MiniEnv(game="catch", obs="features").make(num_envs=2, seed=0)
        many, few = ([a.act(same_obs(e), e) for _ in range(30)] for a, e in ((three, env), (two, small)))
        np.testing.assert_array_equal(np.array(many)[:, [2, 0]], np.array(few))


def test_an_announced_episode_restarts_its_own_row_only(env: VectorEnv) -> None:
    actor, undisturbed = RandomActor(), RandomActor()
    for a in (actor, undisturbed):
        a.begin(np.ones(3, bool), [1, 2, 3])
    first = np.array([actor.act({}, env) for _ in range(20)])
    actor.begin(np.array([False, True, False]), [7, 2, 8])
    second = np.array([actor.act({}, env) for _ in range(20)])
    expected = np.array([undisturbed.act({}, env) for _ in range(40)])[20:]
    np.testing.assert_array_equal(second[:, 1], first[:, 1])
    np.testing.assert_array_equal(second[:, [0, 2]], expected[:, [0, 2]])


def test_policy_actor_refuses_another_game_by_naming_both_sides(env: VectorEnv) -> None:
    foreign = ActorCritic().build(ObsSpace(features=(99,)), ActionSpace({"go": ("up", "down")}))
    obs, _ = env.reset(seed=0)
    with pytest.raises(ContractError, match=r"expected ObsSpace\(features=\(99,\)\), found ObsSpace\(features=\("):
        PolicyActor(foreign, Argmax()).act(env.obs_space.as_parts(obs), env)


def test_expert_actor_plays_the_games_expert(env: VectorEnv) -> None:
    obs, _ = env.reset(seed=0)
    actions = ExpertActor().act(env.obs_space.as_parts(obs), env)
    np.testing.assert_array_equal(actions, env.expert())


def test_expert_actor_says_what_to_do_where_there_is_no_expert() -> None:
    env = GymEnv(id="CartPole-v1").make(num_envs=1, seed=0)
    with pytest.raises(ValueError, match=r"no built-in expert.*job.collector=random"):
        play(ExpertActor(), env, 1)


def test_random_actor_plays_every_action_equally(env: VectorEnv) -> None:
    actor = RandomActor(seed=0)
    ids = np.concatenate([actor.act({}, env) for _ in range(4000)])
    n = env.actions.n
    assert ids.dtype == np.int64
    counts = np.bincount(ids, minlength=n) / ids.size
    assert (np.abs(counts - 1 / n) < 5 * np.sqrt((1 / n) * (1 - 1 / n) / ids.size)).all()
    np.testing.assert_array_equal(play(RandomActor(seed=4), env), play(RandomActor(seed=4), env))
