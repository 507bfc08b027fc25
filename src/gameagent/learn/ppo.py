"""Proximal policy optimisation: act, store, returns, update.

    python run.py learner=ppo learner.total_steps=1e6 learner.rollout_steps=128

One Lightning epoch is one iteration: T steps in each of N environments, then some passes over them in shuffled
minibatches. A loss of your own: subclass `PPO` and override `loss`.
Source: Schulman et al. 2017, "Proximal Policy Optimization Algorithms"; details as in rsl_rl and in Huang et al. 2022,
"The 37 Implementation Details of Proximal Policy Optimization".
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import torch
from lightning.pytorch.core.optimizer import LightningOptimizer
from pydantic import Field
from torch import Tensor, nn

from gameagent.component import component
from gameagent.contract import Part
from gameagent.envs.base import Env
from gameagent.learn.base import Learner, LearnerModule
from gameagent.learn.ema import WeightAverage
from gameagent.learn.guard import FiniteGuard
from gameagent.learn.losses import categorical_kl, clipped, policy_loss, value_loss
from gameagent.learn.means import Means
from gameagent.learn.returns import explained_variance, gae, next_values, normalise
from gameagent.learn.rollout import Collector, Rollout
from gameagent.learn.samples import Minibatch, Samples
from gameagent.learn.schedules import RateSchedule, Schedule, adapted, annealed
from gameagent.nets.base import Tensors
from gameagent.policies.base import Policy, PolicyOutput

log = logging.getLogger(__name__)

Count = Annotated[int, Field(gt=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]

CPU_MICRO_BATCH = 256
"""Frames that forward and backward hold at a time on a CPU: more is no faster and takes more memory."""


class AdvantageNorm(StrEnum):
    """Over what advantages are brought to mean 0 and standard deviation 1."""

    rollout = "rollout"
    minibatch = "minibatch"
    none = "none"


@component
class PPO(Learner):
    """Proximal policy optimisation with separate actor and critic."""

    total_steps: Count = 1_000_000
    """Environment steps to learn from (after frame skip), all environments together; rounded up to whole iterations."""
    rollout_steps: Count = 128
    """T: steps of each environment in one iteration."""
    epochs: Count = 4
    """Passes over a rollout."""
    minibatch_size: Count = 512
    """Samples behind one optimiser step; the last one of a pass may be smaller."""
    micro_batch_size: Count | None = None
    """Samples that forward and backward hold at a time; gradients add up to the minibatch's, so that only speed and
    memory change. null: 256 for frames on a CPU, else the whole minibatch."""
    gamma: Share = 0.99
    """Discount of a reward one step later, 0..1."""
    gae_lambda: Share = 0.95
    """λ of the advantage estimate: 0 trusts the critic, 1 the rewards alone."""
    clip: Positive = 0.2
    """ε: how far the probability ratio may leave 1 before its gradient stops."""
    value_clip: Positive | None = None
    """How far a value may move from the rollout's before its gradient stops, in units of returns; null: no limit."""
    value_coef: Annotated[float, Field(ge=0)] = 0.5
    """Weight of the squared error of the value."""
    entropy_coef: Annotated[float, Field(ge=0)] = 0.01
    """Weight of the entropy bonus, per nat."""
    entropy_schedule: Schedule = Schedule.fixed
    """fixed, or anneal: linearly to 0 at total_steps."""
    lr: Positive = 3e-4
    """Learning rate (Adam)."""
    lr_schedule: RateSchedule = RateSchedule.anneal
    """fixed; anneal: linearly to 0 at total_steps; adaptive: steered by desired_kl, starting at lr."""
    desired_kl: Positive = 0.01
    """KL divergence in nats that lr_schedule=adaptive aims at."""
    target_kl: Positive | None = None
    """Ends an iteration's updates once a minibatch's KL divergence in nats exceeds it; null: never."""
    advantage_norm: AdvantageNorm = AdvantageNorm.rollout
    """rollout, minibatch or none."""
    max_grad_norm: Positive | None = 0.5
    """Largest gradient norm, of actor and critic each; null: no limit."""
    adam_eps: Positive = 1e-5
    """ε of Adam."""
    ema_decay: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of the old average that an optimiser step keeps; the averaged policy is what is saved. null: the last one
    is."""
    critic_warmup: Annotated[int, Field(ge=0)] = 0
    """First iterations in which only the critic learns: worth it where init_from brings an actor without a critic."""
    strict: bool = False
    """Raise at the first NaN or infinity instead of leaving it out and counting it."""
    log_every: Count = 1
    """Iterations from one row of metrics to the next."""
    init_from: str | None = None
    """Policy to start from: a .safetensors or .ckpt file or a run folder. Actor and critic weights are both loaded."""

    def module(self, *, env: Env, policy: Policy, seed: int) -> PPOModule:
        """The loop over a batch of `env.num_envs`."""
        if self.critic_warmup * self.rollout_steps * env.num_envs >= self.total_steps:
            log.warning(
                "learner.critic_warmup=%d iterations take all of learner.total_steps=%d: the actor will not learn",
                self.critic_warmup,
                self.total_steps,
            )
        return PPOModule(self, env=env, policy=policy, seed=seed)

    def loss(self, new: PolicyOutput, batch: Minibatch, entropy_coef: float) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of each sample (B,), and what to log by metric name, (B,) each. `new` is the policy being updated."""
        log_prob, entropy = new.distribution.log_prob(batch.action), new.distribution.entropy()
        policy = policy_loss(log_prob, batch.log_prob, batch.advantage, self.clip)
        value = self.critic_loss(new.value, batch)
        terms = {
            "loss/policy": policy,
            "loss/value": value,
            "loss/entropy": entropy,
            "ppo/kl": categorical_kl(batch.log_probs, new.distribution.log_probs),
            "ppo/clip_fraction": clipped(log_prob, batch.log_prob, self.clip),
        }
        return policy + self.value_coef * value - entropy_coef * entropy, terms

    def critic_loss(self, value: Tensor, batch: Minibatch) -> Tensor:
        """Squared error of each value (B,): all there is to learn during critic_warmup."""
        return value_loss(value.float(), batch.returns, batch.value, self.value_clip)


class PPOModule(LearnerModule):
    """`PPO` under Lightning. Manual optimisation: one `training_step` is one iteration.

    Args:
        spec: the settings.
        env: component to make the batch from.
        policy: what to train.
        seed: of environments, sampling and shuffling.
    """

    collector: Collector

    def __init__(self, spec: PPO, *, env: Env, policy: Policy, seed: int) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.spec, self.policy = spec, policy
        self.average = None if spec.ema_decay is None else WeightAverage(policy, spec.ema_decay)
        self.guard = FiniteGuard(spec.strict)
        self.iteration = 0
        self.entropy_coef = spec.entropy_coef
        self.max_epochs = math.ceil(spec.total_steps / (spec.rollout_steps * env.num_envs))
        self._env, self._seed = env, seed

    def setup(self, stage: str) -> None:
        """Make the environments."""
        self.collector = Collector(
            self._env.make(seed=self._seed),
            steps=self.spec.rollout_steps,
            device=self.trainer.strategy.root_device,
            seed=self._seed,
            guard=self.guard,
        )

    def teardown(self, stage: str) -> None:
        """Close them. Also called where training failed; twice does no harm."""
        if hasattr(self, "collector"):
            self.collector.env.close()

    def train_dataloader(self) -> range:
        """One item: Lightning's epoch is our iteration."""
        return range(1)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One Adam over actor and critic."""
        return torch.optim.Adam(self.policy.parameters(), self.spec.lr, eps=self.spec.adam_eps, fused=True)

    def training_step(self, batch: int, batch_idx: int) -> None:
        """One iteration."""
        started = time.perf_counter()
        rollout = self.collector.collect(self.policy)
        samples = self._samples(rollout)
        skipped = self.guard.updates
        measured = self._update(samples)
        self.guard.check_progress(self.guard.updates - skipped, int(measured["ppo/updates"]))
        self.iteration += 1
        self.env_steps += samples.size
        if self.iteration % self.spec.log_every == 0 or self.env_steps >= self.spec.total_steps:
            self.write_metrics(measured | self._metrics(samples, time.perf_counter() - started))

    def _samples(self, rollout: Rollout) -> Samples:
        """Values, advantages and returns of what was played, flat."""
        spec = self.spec
        values, final_values = rollout.evaluate(self.policy, self._micro_batch_size(rollout.obs))
        values, last_value = values[:-1], values[-1]
        following = next_values(values, last_value, rollout.truncated, final_values)
        advantages = gae(
            rollout.reward,
            values,
            following,
            rollout.terminated,
            rollout.truncated,
            gamma=spec.gamma,
            gae_lambda=spec.gae_lambda,
        )
        returns = advantages + values
        if spec.advantage_norm is AdvantageNorm.rollout:
            advantages = normalise(advantages)
        columns = (rollout.action, rollout.log_prob, rollout.log_probs, values, advantages, returns)
        return Samples(rollout.flat_obs(self._cast()), Minibatch(*(c.flatten(0, 1) for c in columns)))

    def _update(self, samples: Samples) -> dict[str, float]:
        """All passes over the rollout; gives the means of what was measured."""
        torch.clear_autocast_cache()
        self._start_rates()
        means, generator = Means(), self.collector.generator
        for _ in range(self.spec.epochs):
            order = torch.randperm(samples.size, generator=generator, device=generator.device)
            for start in range(0, samples.size, self.spec.minibatch_size):
                if not self._step(samples, order[start : start + self.spec.minibatch_size], means):
                    return means.result() | {"ppo/updates": means.count()}
        return means.result() | {"ppo/updates": means.count()}

    def _step(self, samples: Samples, index: Tensor, means: Means) -> bool:
        """One optimiser step. False, and no step, once the policy has moved further than target_kl."""
        optimizer = self._adam()
        optimizer.zero_grad()
        terms = self._gradients(samples, index)
        if not self._heed_kl(terms):
            return False
        norms = self._clip_gradients()
        if self.guard.accept("loss", terms["loss/total"]) and self.guard.accept("gradient norm", sum(norms.values())):
            optimizer.step()
            if self.average is not None:
                self.average.update(self.policy)
            means.add(terms | norms)
        return True

    def _gradients(self, samples: Samples, index: Tensor) -> dict[str, Tensor]:
        """Add up the minibatch's gradients piece by piece; gives the mean of each term."""
        batch, count = samples.take(index), len(index)
        if self.spec.advantage_norm is AdvantageNorm.minibatch:
            batch = batch._replace(advantage=normalise(batch.advantage))
        sums: dict[str, Tensor] = {}
        for obs, piece in samples.pieces(index, batch, self._micro_batch_size(samples.obs)):
            loss, terms = self._loss(obs, piece)
            self.manual_backward(loss.sum() / count)
            torch.clear_autocast_cache()  # Lightning's autocast spans the iteration: casts of old weights would stay
            for name, term in {"loss/total": loss, **terms}.items():
                share = term.detach().sum() / count
                sums[name] = sums[name] + share if name in sums else share
        return sums

    def _loss(self, obs: Tensors, piece: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The spec's loss, or while the critic warms up its own part alone."""
        if not self._warming_up():
            return self.spec.loss(self.policy(obs), piece, self.entropy_coef)
        error = self.spec.critic_loss(self.policy.value(obs), piece)
        return self.spec.value_coef * error, {"loss/value": error}

    def _heed_kl(self, terms: Mapping[str, Tensor]) -> bool:
        """Let the divergence from the policy that played steer the learning rate; False where it ends the updates."""
        target, adaptive = self.spec.target_kl, self.spec.lr_schedule is RateSchedule.adaptive
        if "ppo/kl" not in terms or (target is None and not adaptive):
            return True
        kl = float(terms["ppo/kl"])
        if target is not None and kl > target:
            return False
        if adaptive:
            self._set_lr(adapted(self._lr(), kl, self.spec.desired_kl))
        return True

    def _clip_gradients(self) -> dict[str, Tensor]:
        """Limit actor and critic apart, so that a large value error takes nothing from the actor; gives the norms.

        One without any gradient has none: torch's 0 for it lies on the CPU, wherever the parameters are.
        """
        limit = math.inf if self.spec.max_grad_norm is None else self.spec.max_grad_norm
        actor, critic = self.policy.actor_parameters(), self.policy.critic_parameters()
        if self._warming_up():  # an encoder that both share must not move the actor
            for parameter in actor:
                parameter.grad = None
        return {
            f"ppo/grad_norm_{name}": nn.utils.clip_grad_norm_(parameters, limit)
            for name, parameters in (("actor", actor), ("critic", critic))
            if any(p.grad is not None for p in parameters)
        }

    def _warming_up(self) -> bool:
        return self.iteration < self.spec.critic_warmup

    def _start_rates(self) -> None:
        """The iteration's entropy coefficient and learning rate; an adaptive one goes on from where it is."""
        spec, done = self.spec, self.env_steps / self.spec.total_steps
        anneal_entropy = spec.entropy_schedule is Schedule.anneal
        self.entropy_coef = annealed(spec.entropy_coef, done) if anneal_entropy else spec.entropy_coef
        if spec.lr_schedule is not RateSchedule.adaptive:
            self._set_lr(annealed(spec.lr, done) if spec.lr_schedule is RateSchedule.anneal else spec.lr)

    def _adam(self) -> LightningOptimizer:
        optimizer = self.optimizers()
        assert isinstance(optimizer, LightningOptimizer)
        return optimizer

    def _lr(self) -> float:
        return float(self._adam().param_groups[0]["lr"])

    def _set_lr(self, lr: float) -> None:
        for group in self._adam().param_groups:
            group["lr"] = lr

    def _micro_batch_size(self, obs: Tensors) -> int:
        """How many samples forward and backward hold at a time."""
        if self.spec.micro_batch_size is not None:
            return self.spec.micro_batch_size
        frames_on_cpu = Part.frame in obs and self.device.type == "cpu"
        return CPU_MICRO_BATCH if frames_on_cpu else self.spec.minibatch_size

    def _cast(self) -> torch.dtype | None:
        """What whole-number observations are cast to once an iteration rather than at every pass; None: not at all."""
        kind = self.device.type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None

    def _metrics(self, samples: Samples, seconds: float) -> dict[str, float]:
        """What an iteration logs beside the update's means. Called after the counters have moved on."""
        frames = self.collector.env.frames_per_step
        metrics = self.collector.metrics() | {
            "env_frames": self.env_steps * frames,
            "ppo/lr": self._lr(),
            "ppo/entropy_coef": self.entropy_coef,
            "ppo/skipped_updates": self.guard.updates,
            "ppo/nonfinite": self.guard.values,
            "time/steps_per_second": samples.size / seconds,
            "time/frames_per_second": samples.size * frames / seconds,
        }
        explained = explained_variance(samples.columns.value, samples.columns.returns)
        return metrics if explained is None else metrics | {"ppo/explained_variance": explained}

    def final_policy(self) -> Policy:
        """The averaged policy where there is one, else the last."""
        return self.policy if self.average is None else self.average.policy

    def progress(self) -> tuple[int, int, str]:
        """Environment steps."""
        return self.env_steps, self.spec.total_steps, "steps"

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Everything beside weights and optimiser that going on exactly needs."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["ppo"] = {
            "iteration": self.iteration,
            "rate": [self.spec.lr, str(self.spec.lr_schedule)],
            "guard": self.guard.get_state(),
            "collector": self.collector.get_state(),
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Inverse of `on_save_checkpoint`; other settings than before are allowed."""
        super().on_load_checkpoint(checkpoint)
        state = checkpoint["ppo"]
        self.iteration = state["iteration"]
        self.guard.set_state(state["guard"])
        self.collector.set_state(state["collector"])
        self._fit_average(checkpoint["state_dict"])
        self._fit_optimizer(checkpoint)
        left = max(0, self.spec.total_steps - self.env_steps)
        per_iteration = self.spec.rollout_steps * self.collector.env.num_envs
        self.max_epochs = self.iteration + math.ceil(left / per_iteration)
        self.trainer.fit_loop.max_epochs = self.max_epochs

    def _fit_average(self, weights: dict[str, Any]) -> None:
        """Let a run go on with ema_decay switched on (the average starts from the weights) or off."""
        if self.average is None:
            for name in [n for n in weights if n.startswith("average.")]:
                del weights[name]
        elif not any(n.startswith("average.") for n in weights):
            weights |= {f"average.{n}": x for n, x in weights.items() if n.startswith("policy.")}

    def _fit_optimizer(self, checkpoint: dict[str, Any]) -> None:
        """Let changed settings hold that the optimiser's state, which Lightning loads after this, would bring back.

        An adaptive learning rate goes on from where it was, unless lr or the schedule is another one: then from lr.
        """
        rate = [self.spec.lr, str(self.spec.lr_schedule)]
        changed = checkpoint["ppo"].get("rate", rate) != rate
        for group in (g for state in checkpoint["optimizer_states"] for g in state["param_groups"]):
            group["eps"] = self.spec.adam_eps
            if changed:
                group["lr"] = self.spec.lr
