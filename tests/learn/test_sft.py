"""Cloning: the loss by hand, what is trained and what isn't, which epoch is kept, and going on exactly."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from tests.learn.demonstrations import Untouched, cloned, demonstrations, policy
from tests.learn.fakes import Rows, fit, weights

from gameagent.contract import ActionSpace, ContractError, ObsSpace
from gameagent.data.episodes import EpisodeStore
from gameagent.errors import UserError
from gameagent.learn.guard import NonFiniteError
from gameagent.learn.metrics import METRICS
from gameagent.learn.sft import SFT, Keep, SFTModule
from gameagent.nets.distributions import FactoredCategorical
from gameagent.policies.bundle import load_policy


@pytest.fixture
def store(tmp_path: Path) -> EpisodeStore:
    return demonstrations(tmp_path)


class TestLoss:
    def test_is_the_sum_of_the_heads_cross_entropies(self) -> None:
        logits = torch.tensor([[0.0, math.log(3.0), 0.0, 0.0]])  # P = (1/4, 3/4) and (1/2, 1/2)
        loss = SFT().loss(FactoredCategorical(logits, (2, 2)), torch.tensor([3]))
        assert loss.tolist() == pytest.approx([-math.log(3 / 4) - math.log(1 / 2)])

    def test_label_smoothing_spreads_its_share_within_each_head(self) -> None:
        logits = torch.tensor([[0.0, math.log(3.0), 0.0, 0.0]])
        loss = SFT(label_smoothing=0.2).loss(FactoredCategorical(logits, (2, 2)), torch.tensor([3]))
        first = 0.9 * -math.log(3 / 4) + 0.1 * -math.log(
            1 / 4
        )  # 1 - 0.2 + 0.2 / 2 for the label, 0.2 / 2 for the other
        assert loss.tolist() == pytest.approx([first + math.log(2)])

    def test_smoothing_equals_torchs_own(self) -> None:
        logits, labels = torch.randn(7, 5), torch.randint(5, (7,))
        mine = SFT(label_smoothing=0.3).loss(FactoredCategorical(logits, (5,)), labels)
        theirs = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=0.3, reduction="none")
        torch.testing.assert_close(mine, theirs)


def test_learns_the_rule_and_beats_the_majority_baseline(store: EpisodeStore) -> None:
    rows = Rows()
    module = cloned(store, epochs=30, lr=1e-2, trainer={"logger": rows})
    last = rows.rows[-1][1]
    assert last["sft/val_accuracy"] > 0.9
    assert last["sft/majority_accuracy"] < 0.5
    x = torch.tensor([[-2.0, 2.0], [2.0, -2.0]])
    assert module.final_policy().distribution({"features": x}).mode().tolist() == [1, 2]


def test_metrics_are_logged_once_an_epoch_at_the_samples_seen(store: EpisodeStore) -> None:
    rows = Rows()
    cloned(store, epochs=3, batch_size=32, chunk=2, trainer={"logger": rows})
    assert [step for step, _ in rows.rows] == [270, 540, 810]
    names = {"sft/loss", "sft/val_loss", "sft/val_accuracy", "sft/val_accuracy/move", "sft/val_accuracy/act"}
    assert set(rows.rows[0][1]) == names | {"sft/majority_accuracy", "time/steps_per_second"}
    assert {n if n in METRICS else n.rpartition("/")[0] + "/<head>" for n in rows.rows[0][1]} <= set(METRICS)


def test_the_first_epochs_loss_is_the_mean_over_its_samples(store: EpisodeStore) -> None:
    rows = Rows()
    cloned(store, epochs=1, batch_size=1000, trainer={"logger": rows})
    module = SFT(data=str(store.path)).module(env=Untouched(), policy=policy(), seed=0)
    features, labels = module._prepared["features"][module._train], module._labels[module._train]
    expected = module.spec.loss(policy().distribution({"features": features}), labels).mean()
    assert rows.rows[0][1]["sft/loss"] == pytest.approx(float(expected.detach()), rel=1e-5)


def test_only_the_actor_learns(store: EpisodeStore) -> None:
    module, fresh = cloned(store, epochs=2), policy()
    for before, after in zip(fresh.critic_parameters(), module.final_policy().critic_parameters(), strict=True):
        torch.testing.assert_close(before, after, rtol=0, atol=0)
    assert not any(
        torch.equal(a, b) for a, b in zip(fresh.actor_parameters(), module.policy.actor_parameters(), strict=True)
    )


class Watch(pl.Callback):
    """Keeps each epoch's metrics and weights."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float, torch.Tensor]] = []

    def on_train_batch_end(self, trainer: pl.Trainer, module: Any, *rest: Any) -> None:
        if module.sampler.position == 0:
            metrics = module.last_metrics
            self.seen.append((metrics["sft/val_accuracy"], metrics["sft/val_loss"], weights(module.policy).clone()))


@pytest.mark.parametrize("keep", list(Keep))
def test_the_kept_epoch_is_the_result(store: EpisodeStore, keep: Keep) -> None:
    watch = Watch()
    module = cloned(store, epochs=12, lr=0.1, batch_size=16, keep=keep, trainer={"callbacks": [watch]})
    ranks = {Keep.accuracy: lambda e: (e[0], -e[1]), Keep.loss: lambda e: -e[1]}
    best = max(watch.seen, key=ranks[keep]) if keep in ranks else watch.seen[-1]
    assert best is not watch.seen[-1] or keep is Keep.last  # the learning rate is high enough to spoil the end
    torch.testing.assert_close(weights(module.final_policy()), best[2], rtol=0, atol=0)


def test_without_a_held_out_share_the_last_epoch_is_kept(store: EpisodeStore) -> None:
    rows = Rows()
    module = cloned(store, epochs=2, val_fraction=0, trainer={"logger": rows})
    assert set(rows.rows[-1][1]) == {"sft/loss", "time/steps_per_second"}
    torch.testing.assert_close(weights(module.final_policy()), weights(module.policy), rtol=0, atol=0)


def test_samples_stay_in_the_dtype_of_the_observation(store: EpisodeStore) -> None:
    module = cloned(store, epochs=1)
    assert module._prepared["features"].dtype == torch.float32
    assert module._labels.dtype == torch.int64


def test_chunks_change_nothing_but_when_a_run_can_stop(store: EpisodeStore) -> None:
    one, many = cloned(store, epochs=3, chunk=1), cloned(store, epochs=3, chunk=1000)
    assert (one.max_epochs, many.max_epochs) == (15, 3)
    torch.testing.assert_close(weights(one.policy), weights(many.policy), rtol=0, atol=0)


def test_equals_a_bare_loop_bit_for_bit(store: EpisodeStore) -> None:
    module = cloned(store, epochs=2, weight_decay=0.01)
    bare = SFT(data=str(store.path), weight_decay=0.01).module(env=Untouched(), policy=policy(), seed=0)
    net, features, labels = bare.policy, bare._prepared["features"], bare._labels
    optimizer = torch.optim.AdamW(net.actor_parameters(), 1e-3, weight_decay=0.01, fused=True)
    for epoch in range(2):
        order = np.random.default_rng((0, epoch)).permutation(len(bare._train))
        for rows in bare._train[torch.from_numpy(order)].split(64):
            optimizer.zero_grad()
            (-net.distribution({"features": features[rows]}).log_prob(labels[rows])).mean().backward()
            optimizer.step()
    torch.testing.assert_close(weights(module.policy), weights(net), rtol=0, atol=0)


def test_progress_counts_samples(store: EpisodeStore) -> None:
    module = cloned(store, epochs=2)
    assert module.progress() == (540, 540, "samples")


class TestMistakes:
    def make(self, learner: SFT) -> SFTModule:
        return learner.module(env=Untouched(), policy=policy(), seed=0)

    def test_no_data(self) -> None:
        with pytest.raises(UserError, match=r"learner\.data=PATH.*job=collect"):
            self.make(SFT())

    def test_a_missing_folder(self) -> None:
        with pytest.raises(UserError, match="no such folder"):
            self.make(SFT(data="nothing/here"))

    def test_another_games_recording(self, tmp_path: Path) -> None:
        store = EpisodeStore.create(
            tmp_path / "other.zarr",
            obs_space=ObsSpace(features=(2,)),
            action_space=ActionSpace(move_labels=("up", "down")),
            env={},
            source={},
        )
        writer = store.writer(seed=0)
        writer.add({"features": np.zeros(2, np.float32)}, 0, 0.0)
        writer.finish(score=0)
        with pytest.raises(ContractError, match=r"learner\.data=.*actions don't fit: expected .*found"):
            self.make(SFT(data=str(store.path)))

    def test_a_loss_that_is_no_number(self, store: EpisodeStore) -> None:
        class Broken(SFT):
            def loss(self, distribution: Any, labels: Any) -> Any:
                return super().loss(distribution, labels) * float("nan")

        module = Broken(data=str(store.path), epochs=1).module(env=Untouched(), policy=policy(), seed=0)
        with pytest.raises(NonFiniteError, match=r"no number.*learner\.lr=0\.001"):
            fit(module)


class StopAfter(pl.Callback):
    """Saves a checkpoint and stops after some chunks."""

    def __init__(self, chunks: int, path: Path) -> None:
        self.left, self.path = chunks, path

    def on_train_epoch_end(self, trainer: pl.Trainer, module: Any) -> None:
        self.left -= 1
        if self.left == 0:
            trainer.save_checkpoint(self.path)
            trainer.should_stop = True


class TestResume:
    def resumed(self, store: EpisodeStore, after: int, before: dict[str, Any], now: dict[str, Any]) -> SFTModule:
        """Train with `before`, stop after some chunks, go on with `now` in a new module."""
        path = store.path.parent / "stopped.ckpt"
        first = SFT(data=str(store.path), **before).module(env=Untouched(), policy=policy(), seed=0)
        fit(first, callbacks=[StopAfter(after, path)], enable_checkpointing=True)
        module = SFT(data=str(store.path), **now).module(env=Untouched(), policy=policy(seed=99), seed=0)
        fit(module, ckpt=str(path))
        return module

    @pytest.mark.parametrize("after", [1, 2, 3, 7, 8])
    def test_in_the_middle_of_a_pass_ends_with_the_same_weights(self, store: EpisodeStore, after: int) -> None:
        fields = {"epochs": 4, "batch_size": 16, "chunk": 7, "lr": 0.05}
        whole = cloned(store, **fields)
        module = self.resumed(store, after, fields, fields)
        assert module.env_steps == whole.env_steps == 4 * 270
        assert module.best["epoch"] == whole.best["epoch"]
        assert module.last_metrics["sft/loss"] == whole.last_metrics["sft/loss"]
        torch.testing.assert_close(weights(module.policy), weights(whole.policy), rtol=0, atol=0)
        torch.testing.assert_close(weights(module.final_policy()), weights(whole.final_policy()), rtol=0, atol=0)

    def test_the_checkpoint_is_a_policy_of_the_best_epoch(self, store: EpisodeStore) -> None:
        module = self.resumed(store, 3, {"epochs": 3, "chunk": 2}, {"epochs": 3, "chunk": 2})
        path = store.path.parent / "stopped.ckpt"
        loaded = load_policy(path)
        assert weights(loaded).shape == weights(module.policy).shape  # type: ignore[arg-type]
        assert torch.load(path, weights_only=True)["env_steps"] == 270

    def test_another_batch_size_still_sees_every_sample(self, store: EpisodeStore) -> None:
        before = {"epochs": 3, "batch_size": 16, "chunk": 5}
        module = self.resumed(store, 2, before, before | {"batch_size": 50, "chunk": 3})
        assert (module.env_steps, module.sampler.epoch, module.sampler.position) == (3 * 270, 3, 0)

    @pytest.mark.parametrize(("epochs", "seen"), [(5, 5 * 270), (1, 270)])
    def test_more_and_fewer_epochs(self, store: EpisodeStore, epochs: int, seen: int) -> None:
        before = {"epochs": 3, "batch_size": 16, "chunk": 5}
        assert self.resumed(store, 4, before, before | {"epochs": epochs}).env_steps == seen

    def test_a_changed_learning_rate_holds(self, store: EpisodeStore) -> None:
        before = {"epochs": 3, "batch_size": 16, "chunk": 5}
        module = self.resumed(store, 2, before, before | {"lr": 1e-12, "weight_decay": 0.0})
        stopped = torch.load(store.path.parent / "stopped.ckpt", weights_only=True)["state_dict"]
        for name, value in module.policy.state_dict().items():
            torch.testing.assert_close(value, stopped[f"policy.{name}"], rtol=0, atol=1e-9)

    def test_another_rule_of_keeping_forgets_the_best_epoch(self, store: EpisodeStore) -> None:
        before = {"epochs": 2, "batch_size": 16, "chunk": 17}
        module = self.resumed(store, 1, before, before | {"keep": "loss"})
        assert (module.best["epoch"], len(module.best["score"])) == (2, 1)

    def test_other_samples_are_refused(self, store: EpisodeStore) -> None:
        with pytest.raises(UserError, match="size was 270 and is 150 now"):
            self.resumed(store, 2, {"chunk": 2}, {"chunk": 2, "val_fraction": 0.5})
