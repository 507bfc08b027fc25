"""Saved policies: nothing is lost on the way, and every file that can't be used says why and what to do."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gameagent.contract import CONTRACT_VERSION, ActionSpace, ContractError, ObsSpace, check_spaces
from gameagent.nets.encoders import Mlp
from gameagent.policies import bundle
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.base import Policy
from gameagent.policies.bundle import add_evaluation, load_policy, read_card, save_policy
from gameagent.policies.card import PolicyFileError, PolicyNotFoundError, describe
from gameagent.policies.onnx import random_obs

SPACE = ObsSpace(features=(5,))
ACTIONS = ActionSpace(move_labels=("left", "stay", "right"), act_labels=("wait", "dash"))
PROVENANCE = {"experiment": "catch", "env_steps": 1000, "seed": 3, "overrides": ["env.num_envs=8"]}
FILE = Path("policy.safetensors")


@pytest.fixture
def policy() -> Policy:
    return ActorCritic(encoder=Mlp(hidden=(8,))).build(SPACE, ACTIONS)


def checkpoint(policy: Policy, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {"policy": describe(policy), "policy_state": policy.state_dict(), "optimizer_states": [{"lr": 0.1}]}
    torch.save(stored, path)
    return path


def assert_same(found: object, policy: Policy) -> None:
    assert isinstance(found, Policy)
    assert (found.architecture, found.obs_space, found.action_space) == (policy.architecture, SPACE, ACTIONS)
    assert found.state_dict().keys() == policy.state_dict().keys()
    for name, tensor in policy.state_dict().items():
        assert torch.equal(found.state_dict()[name], tensor), name


def test_a_saved_policy_comes_back_whole_and_ready_to_evaluate(policy: Policy) -> None:
    assert save_policy(FILE, policy, provenance=PROVENANCE) == FILE
    found = load_policy(FILE)
    assert_same(found, policy)
    assert not found.training


def test_the_card_says_all_about_a_policy(policy: Policy) -> None:
    save_policy(FILE, policy, provenance=PROVENANCE, evaluation={"score": 7.5})
    card = read_card(FILE)
    assert card == {
        "contract": CONTRACT_VERSION,
        "obs_space": SPACE.to_dict(),
        "action_space": ACTIONS.to_dict(),
        "architecture": describe(policy)["architecture"],
        "provenance": PROVENANCE,
        "evaluation": {"score": 7.5},
    }


def test_a_policy_without_history_has_an_empty_card(policy: Policy) -> None:
    save_policy(FILE, policy)
    assert (read_card(FILE)["provenance"], read_card(FILE)["evaluation"]) == ({}, None)


def test_evaluations_are_added_and_the_weights_stay(policy: Policy) -> None:
    save_policy(FILE, policy, provenance=PROVENANCE)
    add_evaluation(FILE, {"argmax": {"score": 1.0}, "temperature": {"score": 2.0}})
    add_evaluation(FILE, {"argmax": {"score": 3.0}})
    assert read_card(FILE)["evaluation"] == {"argmax": {"score": 3.0}, "temperature": {"score": 2.0}}
    assert read_card(FILE)["provenance"] == PROVENANCE
    assert_same(load_policy(FILE), policy)


def test_a_learners_checkpoint_is_a_policy_too(policy: Policy) -> None:
    path = checkpoint(policy, Path("checkpoints/last.ckpt"))
    assert_same(load_policy(path), policy)
    assert read_card(path)["architecture"] == describe(policy)["architecture"]


def test_a_run_folder_gives_its_finished_policy_first(policy: Policy) -> None:
    Path("run").mkdir()
    Path("run/policy.onnx").touch()
    assert bundle.find_policy("run") == Path("run/policy.onnx")
    checkpoint(policy, Path("run/checkpoints/last.ckpt"))
    assert bundle.find_policy("run") == Path("run/checkpoints/last.ckpt")
    save_policy("run/policy.safetensors", policy)
    assert_same(load_policy("run"), policy)
    assert bundle.find_policy("run") == Path("run/policy.safetensors")


def test_a_half_precision_policy_comes_back_in_float32(policy: Policy) -> None:
    save_policy(FILE, policy.bfloat16())
    found = load_policy(FILE)
    assert {p.dtype for p in found.parameters()} == {torch.float32}
    assert_same(found.bfloat16(), policy)


def test_an_interrupted_save_leaves_the_old_file(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    save_policy(FILE, policy)
    before = FILE.read_bytes()

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_policy(FILE, policy, provenance=PROVENANCE)
    assert FILE.read_bytes() == before
    assert list(Path().iterdir()) == [FILE]


@pytest.mark.parametrize("kept", [0, 4, 100, 0.5, 0.99])
def test_a_truncated_file_is_called_damaged(policy: Policy, kept: float) -> None:
    data = save_policy(FILE, policy).read_bytes()
    FILE.write_bytes(data[: int(kept if kept > 1 else kept * len(data))])
    for read in (load_policy, read_card):
        with pytest.raises(PolicyFileError, match=r"policy\.safetensors is damaged or cut short"):
            read(FILE)


@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.99])
def test_a_truncated_checkpoint_is_called_damaged(policy: Policy, kept: float) -> None:
    path = checkpoint(policy, Path("last.ckpt"))
    data = path.read_bytes()
    path.write_bytes(data[: int(kept if kept > 1 else kept * len(data))])
    with pytest.raises(PolicyFileError, match=r"last\.ckpt is damaged"):
        load_policy(path)


class Attack:
    """Unpickling it would make a file."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("owned"),)


@pytest.mark.parametrize("write", [torch.save, lambda thing, path: Path(path).write_bytes(pickle.dumps(thing))])
def test_a_checkpoint_with_python_objects_is_refused_and_runs_nothing(write: object) -> None:
    write({"policy": Attack(), "policy_state": {}}, "last.ckpt")
    with pytest.raises(PolicyFileError, match="which gameagent never loads"):
        load_policy("last.ckpt")
    assert not Path("owned").exists()


def test_somebody_elses_files_are_called_foreign(policy: Policy) -> None:
    save_file(dict(policy.state_dict()), FILE)
    with pytest.raises(PolicyFileError, match=r"not written by gameagent .* give a policy\.safetensors"):
        load_policy(FILE)
    torch.save({"state_dict": policy.state_dict()}, "last.ckpt")
    with pytest.raises(PolicyFileError, match="no checkpoint of a gameagent learner"):
        load_policy("last.ckpt")


def edit(policy: Policy, **changes: object) -> None:
    """Write a bundle whose card was changed by hand."""
    save_policy(FILE, policy)
    card = bundle.pack_card(read_card(FILE)) | {key: json.dumps(value) for key, value in changes.items()}
    save_file(load_file(FILE), FILE, card)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contract": 99}, "contract version 99; this gameagent reads version 1"),
        ({"architecture": {"_target_": "nowhere.Net"}}, r"can't be imported .*Python path"),
        ({"architecture": {"_target_": "os.system"}}, "is no component"),
        ({"architecture": {"_target_": "gameagent.nets.encoders.Mlp"}}, "Mlp is no policy architecture"),
        ({"architecture": {"_target_": "gameagent.policies.actor_critic.ActorCritic", "typo": 1}}, "typo"),
        ({"obs_space": {"contract": 1}}, "can't be built: not an observation space"),
        ({"obs_space": ObsSpace(features=(6,)).to_dict()}, r"weights don't fit.*size mismatch"),
    ],
)
def test_a_card_that_can_not_be_built_says_why(policy: Policy, changes: dict[str, object], message: str) -> None:
    edit(policy, **changes)
    with pytest.raises(PolicyFileError, match=rf"(?s)policy\.safetensors.*{message}"):
        load_policy(FILE)


@pytest.mark.parametrize("kind", ["safetensors", "ckpt"])
@pytest.mark.parametrize("place", ["policy", "encoder"])
def test_a_file_that_came_with_a_policy_is_not_run(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: str
) -> None:
    downloaded, here = tmp_path / "downloaded", tmp_path / "here"
    downloaded.mkdir()
    here.mkdir()
    (downloaded / "net.py").write_text(f"import pathlib; pathlib.Path({str(tmp_path / 'owned')!r}).touch()")
    monkeypatch.chdir(here)
    target = {"_target_": "../downloaded/net.py:Net"}
    description = describe(policy)
    description["architecture"] = target if place == "policy" else description["architecture"] | {"encoder": target}
    if kind == "ckpt":
        torch.save({"policy": description, "policy_state": {}}, "last.ckpt")
    else:
        edit(policy, architecture=description["architecture"])
    file = "last.ckpt" if kind == "ckpt" else FILE
    with pytest.raises(
        PolicyFileError, match=rf"would run {downloaded}/net\.py.* cd {downloaded} or .*GAMEAGENT_TRUST="
    ):
        load_policy(file)
    assert not (tmp_path / "owned").exists()
    monkeypatch.setenv("GAMEAGENT_TRUST", str(downloaded))
    with pytest.raises(PolicyFileError, match=r"has no 'Net'; correct that file"):
        load_policy(file)
    assert (tmp_path / "owned").exists()


def test_a_missing_component_file_is_to_be_put_back(policy: Policy) -> None:
    edit(policy, architecture={"_target_": "./gone.py:Net"})
    with pytest.raises(PolicyFileError, match=r"the file .*gone\.py is not there; put it back, or") as told:
        load_policy(FILE)
    assert "Python path" not in str(told.value)


def test_missing_files_say_what_to_give() -> None:
    with pytest.raises(PolicyNotFoundError, match=r"no policy at nowhere; give a \.safetensors"):
        load_policy("nowhere")
    Path("empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"empty holds no policy: none of policy\.safetensors"):
        load_policy("empty")
    Path("policy.pt").touch()
    with pytest.raises(PolicyFileError, match=r"policy\.pt is no policy file"):
        load_policy("policy.pt")


def test_only_safetensors_files_are_saved_and_annotated(policy: Policy) -> None:
    with pytest.raises(PolicyFileError, match=r"\.safetensors files, got policy\.pt"):
        save_policy("policy.pt", policy)
    path = checkpoint(policy, Path("last.ckpt"))
    with pytest.raises(PolicyFileError, match=r"kept in \.safetensors files"):
        add_evaluation(path, {"score": 1})


def test_another_games_bundle_is_refused_by_naming_both_sides(policy: Policy) -> None:
    save_policy(FILE, policy)
    found = load_policy(FILE)
    other = (ObsSpace(features=(7,)), ACTIONS)
    with pytest.raises(ContractError, match=r"expected ObsSpace\(features=\(7,\)\), found ObsSpace\(features=\(5,\)\)"):
        check_spaces("policy.safetensors", other, (found.obs_space, found.action_space))


def test_loading_changes_nothing_that_the_policy_computes(policy: Policy) -> None:
    save_policy(FILE, policy)
    obs = random_obs(SPACE, 4, seed=0)
    expected, found = policy.infer(obs), load_policy(FILE).infer(obs)
    for a, b in zip(expected.logits, found.logits, strict=True):
        np.testing.assert_array_equal(a, b)
