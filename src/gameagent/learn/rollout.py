"""Playing and remembering: `Rollout` holds T steps of N environments, `Collector` fills it with a policy's play.

collector = Collector(env, steps=128, device=device, seed=0, guard=guard); rollout = collector.collect(policy)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from gameagent.contract import BoolArray, Obs
from gameagent.envs.base import VectorEnv
from gameagent.envs.statistics import EpisodeStatistics, FinishedEpisode
from gameagent.learn.checkpoint_state import pack, unpack
from gameagent.learn.guard import FiniteGuard, NonFiniteError
from gameagent.nets.base import Tensors
from gameagent.nets.distributions import FactoredCategorical
from gameagent.policies.base import Policy

RECENT = 100
"""Finished episodes that `train/return` and its like average over."""


class Rollout:
    """What T steps of N environments gave, preallocated as [T, N, …] and filled in place.

    Observations are kept prepared (`Policy.prepare`) and in their own dtype, one row more than steps: the last row is
    where the next rollout begins.

    Args:
        steps: T.
        first: prepared observations of N environments; they fix the shapes and dtypes.
        logits: sum of the action heads' sizes.
    """

    def __init__(self, steps: int, first: Tensors, logits: int) -> None:
        some = next(iter(first.values()))
        num_envs, device = len(some), some.device
        self.steps, self.num_envs = steps, num_envs
        self.obs = {name: torch.empty((steps + 1, *x.shape), dtype=x.dtype, device=device) for name, x in first.items()}
        self.action = torch.empty(steps, num_envs, dtype=torch.int64, device=device)
        self.log_probs = torch.empty(steps, num_envs, logits, device=device)
        """Of every action of every head: what the exact KL divergence needs."""
        self.log_prob = torch.empty(steps, num_envs, device=device)
        """Of the action taken."""
        self.reward = torch.empty(steps, num_envs, device=device)
        self.terminated = torch.empty(steps, num_envs, dtype=torch.bool, device=device)
        self.truncated = torch.empty(steps, num_envs, dtype=torch.bool, device=device)
        self.finals: list[Tensors] = []
        """Last observations of truncated episodes in row-major order; see `truncated`."""
        self.put(0, first)

    def at(self, t: int) -> Tensors:
        """Prepared observations of step t, (N, …) views."""
        return {name: x[t] for name, x in self.obs.items()}

    def put(self, t: int, prepared: Tensors) -> None:
        """Copy prepared observations (N, …) into row t."""
        for name, x in prepared.items():
            self.obs[name][t].copy_(x)

    def restart(self) -> None:
        """Begin anew where the last rollout ended."""
        self.put(0, self.at(self.steps))
        self.finals = []

    def store(self, t: int, distribution: FactoredCategorical, action: Tensor) -> None:
        """What the policy did at step t."""
        self.log_probs[t].copy_(distribution.log_probs)
        self.log_prob[t].copy_(distribution.log_prob(action))
        self.action[t].copy_(action)

    def flat_obs(self, dtype: torch.dtype | None = None) -> Tensors:
        """Observations of all steps, time-major (T·N, …): views, or with `dtype`, whole numbers cast to it once."""
        flat = {name: x[: self.steps].flatten(0, 1) for name, x in self.obs.items()}
        return flat if dtype is None else {n: x if x.is_floating_point() else x.to(dtype) for n, x in flat.items()}

    @torch.no_grad()
    def evaluate(self, policy: Policy, chunk: int) -> tuple[Tensor, Tensor]:
        """V of every stored observation (T + 1, N) and V(final_obs) of the truncated ones, in one pass over all.

        The critic is not asked while playing: nothing there needs it, and large batches are faster. `chunk` samples are
        worked on at a time, which bounds memory.
        """
        parts = [{name: x.flatten(0, 1) for name, x in self.obs.items()}]
        if self.finals:
            parts.append({name: torch.cat([final[name] for final in self.finals]) for name in self.obs})
        values = [policy.value(piece).float() for part in parts for piece in _split(part, chunk)]
        flat, stored = torch.cat(values), (self.steps + 1) * self.num_envs
        if flat.dim() != 1:
            raise ValueError(f"a policy's value must have shape (B,), got (B, {', '.join(map(str, flat.shape[1:]))})")
        return flat[:stored].view(self.steps + 1, self.num_envs), flat[stored:]


class Collector:
    """Plays the current policy and keeps everything that playing needs: environments, sampling generator, statistics.

    Args:
        env: must reset in the same step as an episode ends (`AutoresetMode.SAME_STEP`). Other modes put a step into the
            rollout whose action did nothing.
        steps: T.
        device: where observations and actions live.
        seed: of the environments and of the sampling.
        guard: watches observations and rewards.

    Raises:
        ValueError: the environment has another autoreset mode.
    """

    def __init__(self, env: VectorEnv, *, steps: int, device: torch.device, seed: int, guard: FiniteGuard) -> None:
        mode = env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(
                f"PPO needs an environment with autoreset_mode=SAME_STEP, got {mode}; env=gym makes such a one"
            )
        self.env, self.steps, self.device, self.seed, self.guard = env, steps, device, seed, guard
        self.generator = torch.Generator(device).manual_seed(seed)
        self.statistics = EpisodeStatistics(env.num_envs)
        self.recent: deque[dict[str, float]] = deque(maxlen=RECENT)
        """Metrics of the last finished episodes."""
        self.episodes = 0
        """Episodes finished so far."""
        self._rollout: Rollout | None = None
        self._current: Tensors | None = None

    @torch.no_grad()
    def collect(self, policy: Policy) -> Rollout:
        """T steps of play. The same storage is filled each time: the last rollout is gone."""
        rollout = self._begin(policy)
        for t in range(self.steps):
            distribution = policy.distribution(rollout.at(t))
            try:
                action = distribution.sample(self.generator)
            except RuntimeError as e:
                if bool(distribution.log_probs.isfinite().all()):
                    raise
                raise NonFiniteError(
                    "the policy's probabilities are NaN: its weights are broken. Train anew with a lower learner.lr"
                ) from e
            rollout.store(t, distribution, action)
            obs, reward, terminated, truncated, info = self.env.step(action.cpu().numpy())
            rollout.put(t + 1, self._prepare(policy, self.env.obs_space.as_parts(obs)))
            rollout.reward[t].copy_(self.guard.clean("the rewards", torch.as_tensor(reward, dtype=torch.float32)))
            rollout.terminated[t].copy_(torch.as_tensor(terminated))
            cut = np.asarray(truncated) & ~np.asarray(terminated)
            rollout.truncated[t].copy_(torch.as_tensor(cut))
            if cut.any():
                rollout.finals.append(self._final(policy, info, cut))
            self._count(self.statistics.update(reward, terminated, truncated, info))
        return rollout

    def metrics(self) -> dict[str, float]:
        """Means over the recent episodes, by metric name; those without any are left out."""
        names = {name for episode in self.recent for name in episode}
        means = {n: float(np.mean([e[n] for e in self.recent if n in e])) for n in sorted(names)}
        return {f"train/{name}": mean for name, mean in means.items()} | {"train/episodes": float(self.episodes)}

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on exactly from the end of the last rollout, in checkpoint form."""
        current = self._rollout.at(self.steps) if self._rollout is not None else self._current
        return {
            "env": pack(self.env.get_state()),
            "current": None if current is None else {str(name): x.clone() for name, x in current.items()},
            "generator": self.generator.get_state(),
            "statistics": pack(self.statistics.get_state()),
            "recent": [dict(episode) for episode in self.recent],
            "episodes": self.episodes,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Inverse of `get_state`. Raises ValueError where the environment is another one."""
        self.env.set_state(unpack(state["env"]))
        current = state["current"]
        self._current = None if current is None else {name: x.to(self.device) for name, x in current.items()}
        self._rollout = None
        self.generator.set_state(state["generator"].cpu())
        self.statistics.set_state(unpack(state["statistics"]))
        self.recent = deque(state["recent"], maxlen=RECENT)
        self.episodes = state["episodes"]

    def _begin(self, policy: Policy) -> Rollout:
        """The storage with its first row filled: by a reset at the very beginning, else by where play stands."""
        if self._rollout is not None:
            self._rollout.restart()
            return self._rollout
        if self._current is None:
            obs, _ = self.env.reset(seed=self.seed)
            self._current = self._prepare(policy, self.env.obs_space.as_parts(obs))
        self._rollout = Rollout(self.steps, self._current, sum(self.env.actions.sizes))
        return self._rollout

    def _prepare(self, policy: Policy, parts: Obs) -> Tensors:
        """Arrays -> what the policy reads, on the device. Text stays behind: policies of this learner read numbers."""
        numbers = {name: x for name, x in parts.items() if x.dtype != object}
        tensors = {
            n: self.guard.clean(f"the {n}", torch.from_numpy(np.ascontiguousarray(x))) for n, x in numbers.items()
        }
        return policy.prepare({name: x.to(self.device) for name, x in tensors.items()})

    def _final(self, policy: Policy, info: Mapping[str, Any], cut: BoolArray) -> Tensors:
        """Prepared last observations of the environments that were cut in this step."""
        missing = "final_obs" not in info or not np.asarray(info["_final_obs"])[cut].all()
        if missing:
            raise ValueError("the environment truncated an episode without giving info['final_obs'] for it")
        parts = self.env.obs_space.as_parts(info["final_obs"])
        return self._prepare(policy, {name: x[cut] for name, x in parts.items()})

    def _count(self, finished: Sequence[FinishedEpisode]) -> None:
        """Remember finished episodes."""
        for episode in finished:
            terms = {f"reward/{name}": float(total) for name, total in episode.terms.items()}
            self.recent.append(
                {"return": episode.episode_return, "score": episode.score, "length": float(episode.length), **terms}
            )
        self.episodes += len(finished)


def _split(parts: Tensors, size: int) -> Iterator[Tensors]:
    """Consecutive pieces of at most `size` samples."""
    count = len(next(iter(parts.values())))
    for start in range(0, count, size):
        yield {name: x[start : start + size] for name, x in parts.items()}
