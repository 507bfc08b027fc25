"""`job.policy=PATH` brings the environment that the policy was trained in, unless one is chosen by hand."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from gameagent.config.files import save
from gameagent.config.origin import trained_with
from gameagent.errors import ConfigError

PLAIN = {"_target_": "gameagent.experiment.Experiment", "env": {"_target_": "gameagent.envs.gym:GymEnv"}, "out": "x"}


def bundle(path: Path, config: object) -> Path:
    """A file with a .safetensors header whose card holds `config`."""
    header = json.dumps({"__metadata__": {"provenance": json.dumps({"config": config})}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    return path


def test_configuration_comes_from_the_card_of_a_file(tmp_path: Path) -> None:
    file = bundle(tmp_path / "p.safetensors", PLAIN)
    assert trained_with(["job=evaluate", f"job.policy={file}"]) == (file, {**PLAIN, "out": None})


@pytest.mark.parametrize("name", ["", "policy.onnx", "checkpoints/last.ckpt"])
def test_configuration_comes_from_the_run_folder(tmp_path: Path, name: str) -> None:
    save(PLAIN, tmp_path / "config.yaml")
    found = trained_with([f"job.a={tmp_path / name}"])
    assert found == (tmp_path, {**PLAIN, "out": None})


@pytest.mark.parametrize("typed", ["env=catch", "env.frame_skip=2", "+experiment=catch_ppo"])
def test_what_is_typed_counts(tmp_path: Path, typed: str) -> None:
    save(PLAIN, tmp_path / "config.yaml")
    assert trained_with([f"job.policy={tmp_path}", typed]) is None


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\xff" * 64, struct.pack("<Q", 2) + b"{}"])
def test_unreadable_files_are_left_to_the_job(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.safetensors").write_bytes(content)
    assert trained_with([f"job.policy={tmp_path / 'p.safetensors'}"]) is None


def test_players_without_a_file_bring_nothing() -> None:
    assert trained_with(["job=evaluate", "job.policy=expert"]) is None
    assert trained_with(["learner.lr=1"]) is None


@pytest.mark.parametrize("env", [{"_target_": "evil.py:Env"}, {"_target_": "gameagent.envs.x:Y", "game": "evil.py"}])
def test_a_file_may_not_bring_code_from_elsewhere(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text("raise AssertionError('ran')")
    for key, value in env.items():
        env[key] = value.replace("evil", str(tmp_path / "evil"))
    file = bundle(tmp_path / "p.safetensors", {**PLAIN, "env": env})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="would run"):
        trained_with([f"job.policy={file}"])
