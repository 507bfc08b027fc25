"""Who plays: a policy with a sampler, a game's built-in expert, or chance, behind one call.

actor = PolicyActor(load_policy("outputs/x"), Argmax(), seed=0)
obs, reward, *_ = env.step(actor.act(env.obs_space.as_parts(obs), env))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from gameagent.contract import BoolArray, IntArray, Obs, check_spaces
from gameagent.envs.base import VectorEnv
from gameagent.errors import UserError
from gameagent.policies.base import Infers
from gameagent.policies.samplers import Sampler


class Actor(ABC):
    """Anything that gives actions for a batch of environments.

    Args:
        seed: of its random numbers, 0 or more.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        """For batches whose episodes nobody announced."""
        self.streams: list[np.random.Generator] = []
        """One a row, once episodes are announced."""

    def begin(self, rows: BoolArray, seeds: Sequence[int]) -> None:
        """Episodes of known seeds are about to start in `rows` (N,), a mask over the batch; `seeds` holds N.

        From then on every row draws from a stream of its own, made from the episode's seed: what happens in an episode
        depends neither on the size of the batch nor on what is played beside it.
        """
        if len(self.streams) != len(rows):
            self.streams = [self.rng] * len(rows)
        for i in np.flatnonzero(rows).tolist():
            self.streams[i] = np.random.default_rng([self.seed, int(seeds[i])])

    @abstractmethod
    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        """Flat actions (N,) for observation parts (N, …) that `env` has just given. Never steps or changes `env`."""


class PolicyActor(Actor):
    """Plays a policy, torch or ONNX.

    Args:
        policy: what `load_policy` gives, or any policy that was just built.
        sampler: how an action is chosen from its logits.
        seed: of the sampler's random numbers, 0 or more.
    """

    def __init__(self, policy: Infers, sampler: Sampler, seed: int = 0) -> None:
        super().__init__(seed)
        self.policy, self.sampler = policy, sampler
        self._checked: VectorEnv | None = None

    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        """Raises ContractError, naming both sides, where the policy was made for other spaces than `env` has."""
        if self._checked is not env:
            spaces = (self.policy.obs_space, self.policy.action_space)
            check_spaces("the policy was made for another environment", spaces, (env.obs_space, env.actions))
            self._checked = env
        logits = self.policy.infer(obs).logits
        if not self.streams:
            return self.sampler(logits, self.rng)
        rows = [self.sampler([head[i : i + 1] for head in logits], rng) for i, rng in enumerate(self.streams)]
        return np.concatenate(rows)


class NoExpertError(UserError, ValueError):
    """The game has no built-in expert."""


class ExpertActor(Actor):
    """Plays the expert that is built into the game."""

    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        """Raises NoExpertError where the game has none."""
        actions = env.expert()
        if actions is None:
            raise NoExpertError(
                f"{type(env).__name__} has no built-in expert; play at random or with a policy instead "
                "(job.collector=random, or job.collector=policy job.policy=PATH), or give the game an expert hook"
            )
        return actions


class RandomActor(Actor):
    """Plays every action with equal probability."""

    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        """Uniform over flat actions."""
        if not self.streams:
            return self.rng.integers(env.actions.n, size=env.num_envs, dtype=np.int64)
        return np.array([rng.integers(env.actions.n) for rng in self.streams], np.int64)
