"""`job=export`: a verified file in the run folder, which then plays exactly as the policy does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gameagent.contract import ContractError
from gameagent.envs.base import Env
from gameagent.envs.mini.env import MiniEnv
from gameagent.evaluation.protocol import Step, play
from gameagent.experiment import Experiment
from gameagent.jobs.export import Export, observations
from gameagent.learn.trainer import Trainer
from gameagent.nets.encoders import Tiny
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.actors import PolicyActor
from gameagent.policies.base import Infers, Policy
from gameagent.policies.bundle import load_policy, read_card, save_policy
from gameagent.policies.card import PolicyFileError, PolicyNotFoundError
from gameagent.policies.onnx import OnnxPolicy, verify_onnx
from gameagent.policies.samplers import Argmax

ENV = MiniEnv(game="catch", frame_skip=4, frame_size=56)
ARCHITECTURE = ActorCritic(encoder=Tiny(width=64))


def experiment(env: Env = ENV, **fields: object) -> Experiment:
    job = Export(steps=8, **fields)
    return Experiment(env=env, policy=ARCHITECTURE, job=job, trainer=Trainer(), out="run")


@pytest.fixture
def policy() -> Policy:
    """One whose choices depend on what it sees."""
    torch.manual_seed(0)
    env = ENV.make(1)
    made = ARCHITECTURE.build(env.obs_space, env.actions)
    with torch.no_grad():
        made.actor_head.weight.mul_(300)
    return made.eval()


def test_a_run_folders_policy_is_exported_beside_it(policy: Policy, capsys: pytest.CaptureFixture[str]) -> None:
    save_policy("run/policy.safetensors", policy, provenance={"seed": 3}, evaluation={"argmax": {"score": 5.0}})
    result = experiment().run()
    assert result["onnx"] == str(Path("run/policy.onnx"))
    assert result["max_logit_difference"] <= 1e-4
    card = read_card("run/policy.onnx")
    assert (card["provenance"], card["evaluation"]) == ({"seed": 3}, {"argmax": {"score": 5.0}})
    assert "equal to policy.safetensors on 64 observations" in capsys.readouterr().err


def test_the_export_equals_torch_on_frames_of_the_game_and_plays_the_same_episodes(policy: Policy) -> None:
    save_policy("other.safetensors", policy)
    experiment(policy="other.safetensors").run()
    exported = load_policy("run/policy.onnx")
    assert isinstance(exported, OnnxPolicy)
    obs = observations(ENV, policy, steps=10, seed=7)
    assert obs["frame"].shape == (80, 56, 56, 3)
    assert verify_onnx(policy, "run/policy.onnx", obs) <= 1e-4

    expected, found = actions_of(policy), actions_of(exported)
    assert len(np.unique(np.concatenate(expected))) > 1
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)


def actions_of(policy: Infers) -> list[np.ndarray]:
    """Actions of 5 whole episodes, step by step."""
    taken: list[np.ndarray] = []

    def note(step: Step) -> None:
        taken.append(np.where(step.episode >= 0, step.actions, -1))

    env = ENV.make(num_envs=2)
    assert len(play(env, PolicyActor(policy, Argmax()), range(100, 105), note)) == 5
    return taken


def test_another_games_policy_is_refused_by_naming_both_sides(policy: Policy) -> None:
    save_policy("run/policy.safetensors", policy)
    with pytest.raises(ContractError, match=r"expected ObsSpace\(frame=\(56, 56, 3\)\), found ObsSpace\(features="):
        experiment(MiniEnv(game="catch", obs="features")).run()
    assert not Path("run/policy.onnx").exists()


def test_without_a_usable_policy_the_error_says_what_to_give(policy: Policy) -> None:
    with pytest.raises(PolicyNotFoundError, match="no policy at run"):
        experiment().run()
    save_policy("run/policy.safetensors", policy)
    experiment().run()
    with pytest.raises(PolicyFileError, match=r"is an ONNX file already; give the \.safetensors"):
        experiment(policy="run/policy.onnx").run()
