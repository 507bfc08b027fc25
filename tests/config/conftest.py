"""A small project of its own for every test: fake components, their generated conf/, experiments, a sweep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from gameagent.catalog import Entry
from gameagent.config import main, render, sources

FAKES = Path(__file__).with_name("fakes.py")


def fake(name: str) -> str:
    """`_target_` of a fake component."""
    return f"{FAKES}:{name}"


CATALOG = (
    Entry("env", "game", fake("FakeEnv")),
    Entry("env", "kda_game", fake("FakeEnv"), {"reward": "kda", "num_envs": 16}),
    Entry("env", "plain", fake("Plain")),
    Entry("env/reward", "simple", fake("Simple")),
    Entry("env/reward", "kda", fake("Kda")),
    Entry("policy", "two_heads", fake("TwoHeads")),
    Entry("policy", "blind", fake("Blind")),
    Entry("policy/encoder", "tiny", fake("Tiny")),
    Entry("policy/encoder", "mlp", fake("Mlp")),
    Entry("policy/critic_encoder", "tiny", fake("Tiny")),
    Entry("learner", "ppo", fake("FakePPO")),
    Entry("learner", "sft", fake("FakeSFT")),
    Entry("job", "train", fake("FakeTrain")),
    Entry("job", "score", fake("FakeScore")),
    Entry("job/sampler", "temperature", fake("Sampler")),
    Entry("trainer", "default", fake("FakeTrainer")),
    Entry("logger", "csv", fake("Csv")),
    Entry("logger", "wandb", fake("Wandb")),
)

CONFIG = """\
defaults:
  - env: game
  - policy: two_heads
  - learner: ppo
  - job: train
  - trainer: default
  - logger: [csv]
  - _self_
_target_: gameagent.experiment.Experiment
name: default
seed: 0
out: null
hydra:
  output_subdir: null
  job: {chdir: false}
  job_logging: {root: null}
  run: {dir: "outputs/${name}/${now:%Y-%m-%d_%H-%M-%S}"}
  sweep:
    dir: outputs/${name}/multirun-${now:%Y-%m-%d_%H-%M-%S}
    subdir: ${slug:${hydra.job.num},${hydra.job.override_dirname}}
"""

QUICK = """\
# @package _global_
# The game by PPO, in a minute
defaults:
  - override /env: kda_game
  - override /policy/encoder: mlp
  - override /logger: [csv, wandb]
name: quick
env: {num_envs: 4, reward: {kill: 7.0}}
policy: {encoder: {hidden: [16]}}
learner: {lr: 1e-4, clip: 0.1}
logger: {wandb: {project: games}}
"""

SWEEP = """\
# @package _global_
# Step sizes
hydra:
  sweeper:
    params:
      learner.lr: 1e-4,1e-3
      seed: range(0,2)
"""


class Project(NamedTuple):
    """Where the test's files are."""

    home: Path
    """Holds conf/ and sweeps/."""
    work: Path
    """Current folder: outputs go here."""


@pytest.fixture(scope="session")
def rendered() -> dict[str, str]:
    """The fakes' conf/ files."""
    return render.render(CATALOG)


@pytest.fixture
def project(rendered: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """conf/ with the fakes in place of gameagent's own."""
    made = Project(tmp_path / "home", tmp_path / "work")
    made.work.mkdir()
    render.write(made.home / "conf", rendered)
    for name, text in {
        "conf/config.yaml": CONFIG,
        "conf/experiment/quick.yaml": QUICK,
        "sweeps/lr.yaml": SWEEP,
    }.items():
        path = made.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sources, "home", lambda: made.home)
    monkeypatch.chdir(made.work)
    return made


@pytest.fixture
def cli(project: Project, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`code, out, err = cli("learner.lr=1")`: the command line in this process."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        captured = capfd.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call
