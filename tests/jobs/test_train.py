"""`job=train`: what it writes, what it starts from, what it refuses to resume, and how it says so."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch
from tests.learn.fakes import CountingEnv, FakeEnv, Frames, experiment, weights

from gameagent.component import component
from gameagent.contract import ContractError
from gameagent.errors import Interrupted, UserError
from gameagent.experiment import Experiment
from gameagent.jobs.train import Train, read_checkpoint
from gameagent.learn.base import Learner
from gameagent.learn.ppo import PPO
from gameagent.nets.encoders import Mlp
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.base import Policy
from gameagent.policies.bundle import load_policy, read_card

SPEC = {"rollout_steps": 8, "minibatch_size": 16, "epochs": 2}


def ppo(total_steps: int = 96, **fields: object) -> PPO:
    return PPO(total_steps=total_steps, **{**SPEC, **fields})  # type: ignore[arg-type]


def loaded(path: Path) -> Policy:
    policy = load_policy(path)
    assert isinstance(policy, Policy)
    return policy


def test_writes_policy_metrics_and_checkpoint_and_gives_the_last_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = experiment(tmp_path, learner=ppo()).run()
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("trained on 96 steps, return ")
    assert last.endswith(f"; written: {tmp_path / 'policy.safetensors'}")
    assert result["env_steps"] == 96
    assert result["train/return"] >= 5.0
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"checkpoints", "metrics.csv", "policy.safetensors"}
    origin = read_card(tmp_path)["provenance"]
    assert (origin["experiment"], origin["env_steps"], origin["seed"]) == ("fake", 96, 0)
    assert origin["config"]["learner"]["total_steps"] == 96
    assert torch.__version__.startswith(origin["versions"]["torch"])


def test_the_averaged_policy_is_the_one_saved(tmp_path: Path) -> None:
    experiment(tmp_path / "plain", learner=ppo()).run()
    experiment(tmp_path / "average", learner=ppo(ema_decay=0.99)).run()
    plain, average = (weights(loaded(tmp_path / name)) for name in ("plain", "average"))
    assert not torch.equal(plain, average)


def test_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    def train(folder: str, seed: int) -> torch.Tensor:
        made = experiment(tmp_path / folder, learner=ppo())
        parts = {f: getattr(made, f) for f in ("name", "env", "policy", "learner", "job", "trainer")}
        Experiment(out=str(tmp_path / folder), seed=seed, **parts).run()
        return weights(loaded(tmp_path / folder))

    assert torch.equal(train("a", 1), train("b", 1))
    assert not torch.equal(train("c", 2), train("d", 1))


def test_a_longer_run_resumed_equals_one_left_alone_and_the_change_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = {"lr_schedule": "fixed"}
    experiment(tmp_path / "alone", learner=ppo(192, **fixed)).run()
    experiment(tmp_path / "run", learner=ppo(96, **fixed)).run()
    experiment(tmp_path / "run", learner=ppo(192, **fixed), resume=str(tmp_path / "run")).run()
    assert torch.equal(weights(loaded(tmp_path / "alone")), weights(loaded(tmp_path / "run")))
    told = capsys.readouterr().err
    assert "changed: learner.total_steps: 96 -> 192" in told
    assert "at 96 steps" in told


def test_a_changed_learning_rate_holds_and_so_does_other_geometry(tmp_path: Path) -> None:
    experiment(tmp_path, learner=ppo(96)).run()
    changed = ppo(200, lr=1e-2, lr_schedule="fixed", rollout_steps=4, ema_decay=0.5)
    result = experiment(tmp_path, learner=changed, resume=str(tmp_path)).run()
    assert result["ppo/lr"] == 1e-2
    assert result["env_steps"] == 208  # 96 and seven iterations of 16


@component
class OtherLearner(PPO):
    """Another kind."""


@pytest.mark.parametrize(
    ("env", "learner", "told"),
    [
        (FakeEnv(bonus=1.0, limit=6), ppo(), r"env\.limit: was 5, now 6"),
        (FakeEnv(bonus=1.0, num_envs=2), ppo(), r"env\.num_envs: was 4, now 2"),
        (FakeEnv(bonus=1.0), OtherLearner(), r"learner\._target_: was .*PPO, now .*OtherLearner"),
    ],
)
def test_a_changed_environment_or_learner_is_refused_by_name(
    tmp_path: Path, env: FakeEnv, learner: Learner, told: str
) -> None:
    experiment(tmp_path, learner=ppo()).run()
    with pytest.raises(UserError, match=told):
        experiment(tmp_path, learner=learner, env=env, resume=str(tmp_path)).run()


def test_a_changed_network_is_refused_by_name(tmp_path: Path) -> None:
    experiment(tmp_path, learner=ppo()).run()
    made = experiment(tmp_path, learner=ppo(), resume=str(tmp_path))
    parts = {f: getattr(made, f) for f in ("name", "out", "env", "learner", "job", "trainer")}
    with pytest.raises(UserError, match=r"policy\.encoder\.hidden: was \[16\], now \[32\]"):
        Experiment(policy=ActorCritic(encoder=Mlp(hidden=(32,))), **parts).run()


def test_without_a_checkpoint_resuming_begins_anew_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiment(tmp_path, learner=ppo(), resume=str(tmp_path)).run()["env_steps"] == 96
    assert "no checkpoint yet: starting from the beginning" in capsys.readouterr().err


def test_resuming_from_nowhere_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        experiment(tmp_path, learner=ppo(), resume=str(tmp_path / "typo")).run()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


def test_where_the_last_checkpoint_is_broken_the_one_before_it_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment(tmp_path, learner=ppo()).run()
    trained = weights(loaded(tmp_path))
    cut_short(tmp_path / "checkpoints" / "last.ckpt")
    assert experiment(tmp_path, learner=ppo(), resume=str(tmp_path)).run()["env_steps"] == 96
    assert torch.equal(weights(loaded(tmp_path)), trained)
    told = capsys.readouterr().err.splitlines()
    assert any("last.ckpt is no checkpoint" in x and "going on from the one before it" in x for x in told)
    assert any("previous.ckpt at 64 steps" in x for x in told)
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert kept == {"last.ckpt", "previous.ckpt", "broken.ckpt"}
    assert read_checkpoint(tmp_path / "checkpoints" / "previous.ckpt")["env_steps"] == 64  # not replaced by the broken


@pytest.mark.parametrize("older", ["broken", "missing"])
def test_without_a_readable_checkpoint_resuming_is_an_error(tmp_path: Path, older: str) -> None:
    experiment(tmp_path, learner=ppo()).run()
    last, previous = (tmp_path / "checkpoints" / name for name in ("last.ckpt", "previous.ckpt"))
    cut_short(last)
    cut_short(previous) if older == "broken" else previous.unlink()
    told = "previous.*cut short.*" if older == "broken" else ""
    with pytest.raises(UserError, match=rf"last\.ckpt .*cut short.*{told}train anew"):
        experiment(tmp_path, learner=ppo(), resume=str(tmp_path)).run()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_stopped_run_names_job_resume_only_where_it_kept_a_checkpoint(tmp_path: Path, keeps: bool) -> None:
    @component
    class Stops(FakeEnv):
        def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> CountingEnv:
            env = super().make(num_envs, seed)
            whole = env.step
            env.step = lambda a: (env.steps_taken == 3 and signal.raise_signal(signal.SIGINT), whole(a))[1]  # type: ignore[assignment, method-assign]
            return env

    made = experiment(tmp_path, learner=ppo(), env=Stops())
    parts = {f: getattr(made, f) for f in ("name", "out", "env", "policy", "learner", "job", "trainer")}
    callbacks = made.callbacks if keeps else {"stop": made.callbacks["stop"]}
    with pytest.raises(Interrupted) as stop:
        Experiment(callbacks=callbacks, **parts).run()
    assert "stopped at 32 steps by SIGINT" in str(stop.value)
    assert ("job.resume=" in str(stop.value)) is keeps
    assert ("kept no checkpoint" in str(stop.value)) is not keeps


def test_starts_from_the_weights_of_another_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment(tmp_path / "first", learner=ppo()).run()
    second = ppo(32, init_from=str(tmp_path / "first"), critic_warmup=1)
    experiment(tmp_path / "second", learner=second).run()
    first, after = loaded(tmp_path / "first"), loaded(tmp_path / "second")
    pairs = zip(first.actor_parameters(), after.actor_parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)  # the critic alone learned
    assert not torch.equal(weights(first), weights(after))
    assert "actor and critic weights loaded" in capsys.readouterr().err


@component
class FrameEnv(FakeEnv):
    """The same game in pixels."""

    def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> Frames:
        return Frames(self, num_envs or self.num_envs)


def test_starting_from_a_policy_of_another_game_names_both_spaces(tmp_path: Path) -> None:
    experiment(tmp_path / "first", learner=ppo()).run()
    made = experiment(tmp_path / "second", learner=ppo(init_from=str(tmp_path / "first")), env=FrameEnv())
    parts = {f: getattr(made, f) for f in ("name", "out", "env", "learner", "job", "trainer")}
    with pytest.raises(ContractError, match=r"init_from=.*frame=\(36, 36, 3\).*features=\(2,\)"):
        Experiment(policy=ActorCritic(), **parts).run()


def test_starting_from_another_network_names_what_differs(tmp_path: Path) -> None:
    experiment(tmp_path / "first", learner=ppo()).run()
    made = experiment(tmp_path / "second", learner=ppo(init_from=str(tmp_path / "first")))
    parts = {f: getattr(made, f) for f in ("name", "out", "env", "learner", "job", "trainer")}
    with pytest.raises(UserError, match=r"policy\.encoder\.hidden: \[16\] in the file, \[8\] here"):
        Experiment(policy=ActorCritic(encoder=Mlp(hidden=(8,))), **parts).run()


def test_starting_from_nowhere_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"learner\.init_from=nowhere"):
        experiment(tmp_path, learner=ppo(init_from="nowhere")).run()


def test_needs_a_learner(tmp_path: Path) -> None:
    made = experiment(tmp_path, learner=ppo())
    with pytest.raises(UserError, match="learner=ppo or learner=sft"):
        Experiment(out=str(tmp_path), env=made.env, policy=made.policy, job=Train(), trainer=made.trainer).run()


def test_closes_the_environment_when_training_fails(tmp_path: Path) -> None:
    closed: list[int] = []

    @component
    class Failing(FakeEnv):
        def make(self, num_envs: int | None = None, seed: int = 0, render_mode: str | None = None) -> Frames:
            env = super().make(num_envs, seed)
            whole = env.close
            env.close = lambda **_: (closed.append(env.num_envs), whole())  # type: ignore[assignment, func-returns-value]
            return env  # type: ignore[return-value]

    made = experiment(tmp_path, learner=ppo(strict=True), env=Failing(poison=3))
    with pytest.raises(FloatingPointError):
        made.run()
    assert closed == [1, 4]
