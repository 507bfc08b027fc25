"""PPO under Lightning: exact pieces, steps, schedules, warm-up, averaging, guards, counters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tests.learn.fakes import FakeEnv, Rows, fit, small_policy, train, weights
from torch import Tensor

from gameagent.component import component
from gameagent.learn.guard import NonFiniteError
from gameagent.learn.losses import value_loss
from gameagent.learn.ppo import PPO, AdvantageNorm, PPOModule
from gameagent.learn.samples import Minibatch
from gameagent.learn.schedules import RateSchedule, Schedule
from gameagent.policies.base import PolicyOutput

SMALL: dict[str, Any] = {"total_steps": 160, "rollout_steps": 8, "minibatch_size": 16, "epochs": 2, "lr": 1e-3}


def test_runs_whole_iterations_and_counts_steps_updates_and_episodes() -> None:
    rows = Rows()
    module = train(PPO(**{**SMALL, "total_steps": 150}), FakeEnv(frame_skip=3), logger=rows)
    assert module.max_epochs == 5
    assert module.env_steps == 160
    assert [step for step, _ in rows.rows] == [32, 64, 96, 128, 160]
    last = rows.rows[-1][1]
    assert last["ppo/updates"] == 4
    assert last["env_frames"] == 480
    assert last["train/episodes"] == 32  # 4 envs, 40 steps each, episodes of 5
    assert (last["train/return"], last["train/score"], last["train/length"]) == (5.0, 50.0, 5.0)
    assert last["train/reward/step"] == 5.0
    assert last["time/frames_per_second"] == pytest.approx(3 * last["time/steps_per_second"])


def test_closes_its_environments() -> None:
    module = train(PPO(**SMALL), FakeEnv())
    assert module.collector.env.closed_times == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("norm", list(AdvantageNorm))
@pytest.mark.parametrize("size", [1, 5, 16])
def test_micro_batches_add_up_to_the_whole_minibatch(size: int, norm: AdvantageNorm) -> None:
    spec = {**SMALL, "advantage_norm": norm, "total_steps": 64, "value_clip": 0.2}
    whole = train(PPO(**spec, micro_batch_size=16), FakeEnv(bonus=1.0))
    pieces = train(PPO(**spec, micro_batch_size=size), FakeEnv(bonus=1.0))
    torch.testing.assert_close(weights(pieces.policy), weights(whole.policy), rtol=0, atol=2e-6)
    for name, number in whole.last_metrics.items():
        if not name.startswith("time/"):
            assert pieces.last_metrics[name] == pytest.approx(number, rel=1e-4, abs=1e-5), name


def test_a_leftover_minibatch_is_used() -> None:
    module = train(PPO(**{**SMALL, "minibatch_size": 31, "total_steps": 32, "epochs": 1}), FakeEnv())
    assert module.last_metrics["ppo/updates"] == 2


def test_learns_to_take_the_action_that_pays() -> None:
    spec = PPO(total_steps=4000, rollout_steps=25, minibatch_size=50, lr=3e-3, entropy_coef=0.0)
    module = train(spec, FakeEnv(reward=0.0, bonus=1.0, scale=10.0))
    assert module.last_metrics["train/return"] > 4.5


class Watched(PPOModule):
    """Notes the learning rate and the actor's weights after each iteration."""

    def training_step(self, batch: int, batch_idx: int) -> None:
        super().training_step(batch, batch_idx)
        self.rates = [*getattr(self, "rates", []), self._lr()]
        actor = torch.cat([p.detach().flatten() for p in self.policy.actor_parameters()]).clone()
        self.actors = [*getattr(self, "actors", []), actor]


def watch(**fields: Any) -> Watched:
    env = FakeEnv(bonus=1.0)
    torch.manual_seed(0)
    module = Watched(PPO(**{**SMALL, **fields}), env=env, policy=small_policy(env), seed=0)
    fit(module)
    return module


def test_learning_rate_is_annealed_to_0_at_total_steps() -> None:
    assert watch(lr_schedule=RateSchedule.anneal).rates == pytest.approx([1e-3, 8e-4, 6e-4, 4e-4, 2e-4])


def test_learning_rate_stays_fixed() -> None:
    assert watch(lr_schedule=RateSchedule.fixed).rates == [1e-3] * 5


def test_adaptive_learning_rate_grows_while_the_policy_hardly_moves() -> None:
    rates = watch(lr_schedule=RateSchedule.adaptive, desired_kl=0.5).rates
    assert rates == sorted(rates)
    assert rates[-1] == 1e-2


def test_entropy_coefficient_is_annealed() -> None:
    module = watch(entropy_schedule=Schedule.anneal, entropy_coef=0.5)
    assert module.last_metrics["ppo/entropy_coef"] == pytest.approx(0.1)


def test_actor_stays_while_the_critic_warms_up() -> None:
    env = FakeEnv(bonus=1.0)
    torch.manual_seed(0)
    start = torch.cat([p.detach().flatten() for p in small_policy(env).actor_parameters()])
    module = watch(critic_warmup=2)
    assert torch.equal(module.actors[1], start)
    assert not torch.equal(module.actors[2], start)
    assert module.last_metrics["loss/value"] > 0


def test_a_part_without_gradients_has_no_gradient_norm() -> None:
    """clip_grad_norm_ gives a 0 on the CPU for it, which cannot be stacked with numbers of a GPU."""
    names = watch(critic_warmup=10**6).last_metrics.keys()
    assert "ppo/grad_norm_critic" in names
    assert "ppo/grad_norm_actor" not in names
    assert "ppo/grad_norm_actor" in watch(critic_warmup=2).last_metrics


def resumed(tmp_path: Path, **changed: Any) -> tuple[float, float, float]:
    """Learning rate at the end of an adaptive run; then, resumed with changes, the first step's rate and Adam's ε."""
    fields: dict[str, Any] = {**SMALL, "lr_schedule": RateSchedule.adaptive, "desired_kl": 0.5}
    first = train(PPO(**fields), FakeEnv(bonus=1.0))
    first.trainer.save_checkpoint(tmp_path / "a.ckpt")
    env = FakeEnv(bonus=1.0)
    module = PPO(**{**fields, "total_steps": 192, **changed}).module(env=env, policy=small_policy(env), seed=0)
    began: list[float] = []
    module.on_train_epoch_start = lambda: began.append(module._lr())  # type: ignore[method-assign]
    fit(module, str(tmp_path / "a.ckpt"))
    return first._lr(), began[0], module._adam().param_groups[0]["eps"]


def test_resumed_adaptive_learning_rate_goes_on_from_where_it_was(tmp_path: Path) -> None:
    ended, began, eps = resumed(tmp_path)
    assert (ended, began, eps) == (1e-2, 1e-2, 1e-5)


def test_resumed_run_takes_changed_settings_of_the_optimiser(tmp_path: Path) -> None:
    assert resumed(tmp_path, lr=2e-4, adam_eps=1e-3)[1:] == (2e-4, 1e-3)


def test_target_kl_ends_an_iteration_before_the_step_that_passes_it() -> None:
    module = watch(target_kl=1e-7, epochs=4)
    assert module.last_metrics["ppo/updates"] == 1  # the first minibatch's KL is 0, the second's is not


def test_average_moves_once_an_optimiser_step() -> None:
    env = FakeEnv(bonus=1.0)
    torch.manual_seed(0)
    module = PPO(**SMALL, ema_decay=0.5).module(env=env, policy=small_policy(env), seed=0)
    assert module.average is not None
    expected, updates = weights(module.policy), 0
    original = module.average.update

    def update(policy: Any) -> None:
        nonlocal expected, updates
        expected, updates = 0.5 * expected + 0.5 * weights(policy), updates + 1
        original(policy)

    module.average.update = update  # type: ignore[method-assign]
    fit(module)
    assert updates == 5 * 4
    torch.testing.assert_close(weights(module.final_policy()), expected)
    assert not torch.equal(weights(module.final_policy()), weights(module.policy))


def test_nan_rewards_are_counted_and_training_goes_on() -> None:
    module = train(PPO(**SMALL), FakeEnv(poison=10))
    assert module.last_metrics["ppo/nonfinite"] == 4
    assert torch.isfinite(weights(module.policy)).all()


def test_nan_rewards_raise_in_strict_mode() -> None:
    with pytest.raises(NonFiniteError, match="the rewards"):
        train(PPO(**SMALL, strict=True), FakeEnv(poison=10))


@component
class Explosive(PPO):
    """A loss of one's own, which is NaN for some samples."""

    def loss(self, new: PolicyOutput, batch: Minibatch, entropy_coef: float) -> tuple[Tensor, dict[str, Tensor]]:
        loss, terms = super().loss(new, batch, entropy_coef)
        first = torch.arange(len(loss)) == 0
        return loss * torch.where(first & (batch.action == 3), float("nan"), 1.0), terms


def test_updates_with_nan_gradients_are_left_out_and_counted() -> None:
    module = train(Explosive(**SMALL), FakeEnv())
    assert module.last_metrics["ppo/skipped_updates"] > 0
    assert torch.isfinite(weights(module.policy)).all()
    with pytest.raises(NonFiniteError, match="the loss is nan"):
        train(Explosive(**SMALL, strict=True), FakeEnv())


@component
class Critic(PPO):
    """A loss of one's own that leaves the actor alone."""

    def loss(self, new: PolicyOutput, batch: Minibatch, entropy_coef: float) -> tuple[Tensor, dict[str, Tensor]]:
        error = value_loss(new.value, batch.returns)
        return error, {"loss/mine": error}


def test_a_subclass_may_bring_its_own_loss_and_metrics() -> None:
    module = train(Critic(**SMALL), FakeEnv())
    assert module.last_metrics["loss/mine"] > 0
    assert "loss/policy" not in module.last_metrics


def test_gradients_of_actor_and_critic_are_clipped_apart() -> None:
    env = FakeEnv(reward=1000.0)
    torch.manual_seed(0)
    module = PPO(**SMALL, max_grad_norm=0.5).module(env=env, policy=small_policy(env), seed=0)
    for p in module.policy.actor_parameters():
        p.grad = torch.full_like(p, 1e-4)
    for p in module.policy.critic_parameters():
        p.grad = torch.full_like(p, 1e4)
    norms = module._clip_gradients()
    assert norms["ppo/grad_norm_critic"] > 1e4
    assert all(
        torch.allclose(p.grad, torch.tensor(1e-4)) for p in module.policy.actor_parameters() if p.grad is not None
    )
    clipped = torch.cat([p.grad.flatten() for p in module.policy.critic_parameters() if p.grad is not None])
    assert float(clipped.norm()) == pytest.approx(0.5, rel=1e-4)


def test_bf16_weights_move_as_in_float32() -> None:
    full = train(PPO(**SMALL), FakeEnv(bonus=1.0))
    mixed = train(PPO(**SMALL), FakeEnv(bonus=1.0), precision="bf16-mixed")
    torch.manual_seed(0)
    start = weights(small_policy(FakeEnv()))
    moved, expected = weights(mixed.policy) - start, weights(full.policy) - start
    assert weights(mixed.policy).dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(moved, expected, dim=0) > 0.8


@pytest.mark.parametrize("field", [{"clip": 0}, {"gamma": 1.1}, {"lr": "fast"}, {"ema_decay": 1.0}, {"epoch": 3}])
def test_settings_out_of_range_are_refused(field: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PPO(**field)


def test_training_whose_every_update_fails_ends_with_advice() -> None:
    with pytest.raises(NonFiniteError, match=r"lower learner\.lr"):
        train(PPO(**{**SMALL, "lr": 1e30}), FakeEnv())


def test_broken_weights_are_named_where_they_play() -> None:
    env = FakeEnv()
    policy = small_policy(env)
    with torch.no_grad():
        policy.actor_parameters()[0].fill_(float("nan"))
    module = PPO(**SMALL).module(env=env, policy=policy, seed=0)
    with pytest.raises(NonFiniteError, match="weights are broken"):
        fit(module)


def test_a_warm_up_that_takes_the_whole_run_is_told(caplog: pytest.LogCaptureFixture) -> None:
    env = FakeEnv()
    PPO(**SMALL, critic_warmup=100).module(env=env, policy=small_policy(env), seed=0)
    assert "the actor will not learn" in caplog.text
