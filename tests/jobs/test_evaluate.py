"""`job=evaluate` scores anybody who can play, and says how."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evaluation.fakes import Lottery, length_of

from gameagent.contract import ContractError
from gameagent.errors import UserError
from gameagent.evaluation.summary import read_json
from gameagent.jobs.evaluate import Evaluate
from gameagent.jobs.export import Export
from gameagent.jobs.players import label_of, mode_of
from gameagent.policies.bundle import read_card
from gameagent.policies.samplers import Argmax, Temperature


def test_the_expert_is_scored_over_held_out_seeds(experiment, tmp_path: Path) -> None:
    outcome = experiment(Evaluate(episodes=10)).run()
    summary = read_json(tmp_path / "run" / "eval.json", "evaluation")
    assert summary["seeds"] == list(range(2_000_000, 2_000_010))
    assert [r["score"] for r in summary["rows"]] == [length_of(s) for s in summary["seeds"]]
    assert outcome["score"] == summary["score"]["value"]
    assert outcome["score_low"] <= outcome["score"] <= outcome["score_high"]
    assert set(outcome) >= {"win_rate", "length"}
    assert (tmp_path / "run" / "eval.png").is_file()


@pytest.mark.parametrize("num_envs", [1, 3, None])
@pytest.mark.parametrize("sampler", [Argmax(), Temperature(temperature=0.7)])
def test_how_many_play_at_once_changes_nothing(
    experiment, policy_file: Path, num_envs: int | None, sampler: object
) -> None:
    common = {"policy": str(policy_file), "episodes": 7, "sampler": sampler}
    first = experiment(Evaluate(**common, num_envs=5), "a").run()
    assert experiment(Evaluate(**common, num_envs=num_envs), "b").run() == first


def test_the_mode_and_the_env_are_part_of_the_result(experiment, policy_file: Path, tmp_path: Path) -> None:
    experiment(Evaluate(policy=str(policy_file), episodes=3, sampler=Temperature(temperature=0.5))).run()
    summary = read_json(tmp_path / "run" / "eval.json", "evaluation")
    assert summary["mode"] == "temperature(temperature=0.5)"
    assert summary["player"] == "sft"
    assert summary["path"] == str(policy_file)
    assert summary["env"]["frame_skip"] == 1


def test_a_result_can_be_kept_in_the_policys_own_file(experiment, policy_file: Path) -> None:
    experiment(Evaluate(policy=str(policy_file), episodes=3, add_to_policy=True)).run()
    kept = read_card(policy_file)["evaluation"]["argmax"]
    assert kept["episodes"] == 3
    assert kept["seeds"] == {"first": 2_000_000, "last": 2_000_002}
    assert "rows" not in kept
    assert read_card(policy_file)["provenance"]["experiment"] == "test"


def test_a_result_cannot_be_kept_in_the_expert(experiment) -> None:
    with pytest.raises(UserError, match=r"needs a \.safetensors file to write into, got job\.policy=expert"):
        experiment(Evaluate(add_to_policy=True)).run()


def test_a_missing_policy_is_named_with_what_is_allowed(experiment, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no policy at nowhere[\s\S]*'expert'[\s\S]*'random'"):
        experiment(Evaluate(policy="nowhere")).run()
    (tmp_path / "cut.safetensors").write_bytes(b"\x10\0\0")
    with pytest.raises(UserError, match="damaged or cut short"):
        experiment(Evaluate(policy=str(tmp_path / "cut.safetensors"))).run()


def test_a_policy_of_another_game_is_refused(experiment, tmp_path: Path) -> None:
    from gameagent.contract import ActionSpace, ObsSpace
    from gameagent.nets.encoders import Mlp
    from gameagent.policies.actor_critic import ActorCritic
    from gameagent.policies.bundle import save_policy

    other = ActorCritic(encoder=Mlp()).build(ObsSpace(features=(9,)), ActionSpace(move_labels=("a", "b")))
    save_policy(tmp_path / "other.safetensors", other)
    with pytest.raises(ContractError, match="made for another environment"):
        experiment(Evaluate(policy=str(tmp_path / "other.safetensors"), episodes=2)).run()


def test_an_onnx_file_is_played_and_scores_what_its_policy_scores(
    experiment, policy_file: Path, tmp_path: Path
) -> None:
    experiment(Export(policy=str(policy_file), steps=8), "export").run()
    torch_ = experiment(Evaluate(policy=str(policy_file), episodes=6), "torch").run()
    assert experiment(Evaluate(policy=str(tmp_path / "export"), episodes=6), "onnx").run() == torch_
    assert read_json(tmp_path / "onnx" / "eval.json", "evaluation")["path"].endswith("policy.onnx")


def test_a_sampling_player_is_repeatable_and_follows_the_experiments_seed(experiment) -> None:
    def scores(name: str, seed: int) -> list[float]:
        e = experiment(Evaluate(policy="random", episodes=12), name, seed=seed, env=Lottery(num_envs=2))
        e.run()
        return [r["score"] for r in read_json(e.run_dir / "eval.json", "evaluation")["rows"]]

    assert scores("a", 0) == scores("b", 0) != scores("c", 1)


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("outputs/catch_demo/2026-01-31_12-00-00/03_ppo/policy.safetensors", "ppo"),
        ("outputs/catch_ppo/2026-01-31_12-00-00/policy.safetensors", "catch_ppo"),
        ("outputs/catch_ppo/2026-01-31_12-00-00/checkpoints/last.ckpt", "catch_ppo"),
        ("outputs/x/2026-01-31_12-00-00/04_export/policy.onnx", "export (onnx)"),
        ("weights/lane.safetensors", "lane"),
        ("own/policy.safetensors", "own"),
    ],
)
def test_a_policy_is_called_after_its_stage_experiment_or_file(path: str, label: str) -> None:
    assert label_of(Path(path)) == label


def test_a_sampler_in_words() -> None:
    assert mode_of(Argmax()) == "argmax"
    assert mode_of(Temperature(temperature=2.0)) == "temperature(temperature=2.0)"
