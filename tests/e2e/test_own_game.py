"""docs/my-own-game.md, run as it stands: its files are written into an empty folder and its commands typed one by one.

The commands run in subprocesses from that folder, as a user outside the repository would run them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gameagent.policies.bundle import load_policy

PAGE = Path(__file__).parents[2] / "docs" / "my-own-game.md"
BLOCK = re.compile(r'```(\w+)(?: title="([^"]+)")?\n(.*?)```', re.S)


def blocks() -> list[tuple[str, str | None, str]]:
    """(language, file name or None, text) of every fenced block."""
    return [(language, title or None, text) for language, title, text in BLOCK.findall(PAGE.read_text())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the repository with the page's files in it, after all of its commands ran."""
    folder = tmp_path_factory.mktemp("own_game")
    for _, title, text in blocks():
        if title is not None:
            (folder / title).write_text(text)
    commands = [line for language, _, text in blocks() if language == "bash" for line in text.splitlines() if line]
    for command in commands:
        name, *words = shlex.split(command)
        assert name == "gameagent", command
        done = subprocess.run(
            [sys.executable, "-m", "gameagent.config", *words],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return folder


def test_page_has_the_files_and_commands_it_promises() -> None:
    titles = {title for _, title, _ in blocks() if title}
    assert titles == {"my_game.py", "my_reward.py", "my_learner.py"}


def test_every_step_leaves_its_result(folder: Path) -> None:
    for result in (
        "demos/episodes.zarr",
        "clone/policy.safetensors",
        "ppo/policy.safetensors",
        "eval/eval.json",
        "onnx/policy.onnx",
        "eval_onnx/eval.json",
        "mine/policy.safetensors",
        "mine_eval/eval.json",
        "mine_demos/episodes.zarr",
        "mine_onnx/policy.onnx",
    ):
        assert (folder / "runs" / result).exists(), result


def test_policy_and_its_export_play_the_same_episodes(folder: Path) -> None:
    evaluations = [(folder / "runs" / name / "eval.json").read_text() for name in ("eval", "eval_onnx")]
    scores = [re.findall(r'"score": ([-\d.]+)', text) for text in evaluations]
    assert scores[0] == scores[1]


def test_outside_reward_and_learner_are_logged_by_name(folder: Path) -> None:
    header = (folder / "runs" / "mine" / "metrics.csv").read_text().splitlines()[0]
    assert "loss/humility" in header
    assert "train/reward/points" in header


def test_policy_of_an_outside_game_loads_in_another_process(folder: Path) -> None:
    policy = load_policy(folder / "runs" / "mine")
    assert policy.action_space.sizes == (3,)
