"""`job=doctor` tells what works, what is missing and what to type, and tests an environment's promises."""

from __future__ import annotations

import pytest
from tests.evaluation.fakes import Lottery

from gameagent.envs.base import VectorEnv
from gameagent.envs.check import check_vector_env
from gameagent.errors import EnvError, UserError
from gameagent.jobs import checks
from gameagent.jobs.checks import Finding, Status, env_finding, machine_findings
from gameagent.jobs.doctor import Doctor, show_findings


def test_every_subject_that_is_missing_comes_with_what_to_do() -> None:
    findings = list(machine_findings())
    assert {"python", "torch", "kernel cache", "outputs", "video", "display", "wandb", "chromium"} <= {
        f.subject for f in findings
    }
    assert all(f.fix for f in findings if f.status is not Status.works)


def test_a_sound_environment_keeps_the_contract(experiment, capfd) -> None:
    counts = experiment(Doctor()).run()
    assert counts["broken"] == 0
    assert counts["works"] >= 6
    told = capfd.readouterr().err
    assert "keeps the contract" in told
    assert "an expert" in told


def test_an_environment_that_breaks_the_contract_is_an_error_that_says_how(experiment, capfd) -> None:
    with pytest.raises(UserError, match=r"1 of \d+ subjects are broken:\n  Lottery: breaks the contract:\n- "):
        experiment(Doctor(), env=Lottery(jitter=1.0)).run()
    assert "✗" in capfd.readouterr().err


def test_an_environment_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Lottery, *args: object, **kwargs: object) -> None:
        raise OSError("no such ROM")

    monkeypatch.setattr(Lottery, "make", refuse)
    assert "no such ROM" in env_finding(Lottery()).detail


def test_a_look_that_fails_is_a_finding_and_does_not_end_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def _disk() -> None:
        raise RuntimeError("odd file system")

    monkeypatch.setattr(checks, "_disk", _disk)
    findings = {f.subject: f for f in machine_findings()}
    assert findings["disk"].status is Status.broken
    assert "odd file system" in findings["disk"].detail
    assert findings["video"].status is Status.works


def test_the_environment_need_not_be_played(experiment) -> None:
    assert experiment(Doctor(check_env=False), env=Lottery(jitter=1.0)).run()["broken"] == 0


def test_what_to_type_is_shown_to_the_letter(capfd) -> None:
    show_findings([Finding("extra nes", Status.missing, "a [b] c", "pip install -e '.[nes]'")])
    told = capfd.readouterr().err
    assert "pip install -e '.[nes]'" in told
    assert "a [b] c" in told


def test_an_error_that_says_all_is_told_once() -> None:
    def make(num_envs: int, seed: int) -> VectorEnv:
        raise EnvError("no such ROM")

    assert check_vector_env(make) == ["no such ROM"]
