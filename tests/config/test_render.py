from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gameagent.catalog import Entry
from gameagent.config import render

from .conftest import CATALOG, FAKES, fake


def test_a_file_has_target_fields_defaults_and_docs(rendered: dict[str, str]) -> None:
    assert rendered["learner/ppo.yaml"] == (
        "# Learns from play.\n"
        f"# Written by `make conf` from {FAKES}:FakePPO; change it there.\n"
        f"_target_: {FAKES}:FakePPO\n"
        "# Step size, more than 0.\n"
        "lr: 0.0003\n"
        "# Of the ratio.\n"
        "clip: 0.2\n"
        "# How lr moves. One of: fixed, adaptive.\n"
        "schedule: fixed\n"
        "# Upper limit; null: none.\n"
        "target_kl: null\n"
        "# Environment steps.\n"
        "total_steps: 1000\n"
        "# Policy to start from.\n"
        "init_from: null\n"
    )


def test_a_component_field_becomes_a_choice_of_its_own_group(rendered: dict[str, str]) -> None:
    plain = yaml.safe_load(rendered["env/game.yaml"])
    assert plain["defaults"] == [{"reward": "simple"}, "_self_"]
    assert "reward" not in plain
    assert "  # What is rewarded.\n  - reward: simple\n" in rendered["env/game.yaml"]


def test_a_preset_overrides_values_and_choices(rendered: dict[str, str]) -> None:
    plain = yaml.safe_load(rendered["env/kda_game.yaml"])
    assert (plain["defaults"][0], plain["num_envs"]) == ({"reward": "kda"}, 16)


def test_a_part_that_differs_from_its_option_says_how(rendered: dict[str, str]) -> None:
    plain = yaml.safe_load(rendered["job/score.yaml"])
    assert plain["defaults"][0] == {"sampler": "temperature"}
    assert (plain["sampler"], plain["policy"]) == ({"temperature": 0.5}, "???")


def test_a_nullable_component_gets_the_option_none(rendered: dict[str, str]) -> None:
    assert yaml.safe_load(rendered["policy/two_heads.yaml"])["defaults"][1] == {"critic_encoder": "none"}
    assert rendered["policy/critic_encoder/none.yaml"].startswith("# @package policy\n")
    assert rendered["learner/none.yaml"].startswith("# @package _global_\n")
    assert "job/none.yaml" not in rendered


def test_loggers_fill_a_key_of_their_own_name(rendered: dict[str, str]) -> None:
    assert rendered["logger/csv.yaml"].startswith("# @package logger.csv\n")


def test_differences_name_changed_missing_and_stale_files(rendered: dict[str, str], tmp_path: Path) -> None:
    render.write(tmp_path, rendered)
    assert render.differences(tmp_path, rendered) == []
    (tmp_path / "config.yaml").write_text("by: hand")
    (tmp_path / "learner/old.yaml").write_text("a: 1")
    (tmp_path / "learner/sft.yaml").write_text("a: 1")
    (tmp_path / "learner/ppo.yaml").unlink()
    assert sorted(render.differences(tmp_path, rendered)) == [
        "learner/old.yaml: no component makes this file",
        "learner/ppo.yaml: missing",
        "learner/sft.yaml: differs from its class",
    ]
    render.write(tmp_path, rendered)
    assert render.differences(tmp_path, rendered) == []
    assert (tmp_path / "config.yaml").is_file()


def test_a_preset_of_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown to FakePPO"):
        render.render([*CATALOG, Entry("learner", "typo", fake("FakePPO"), {"lrr": 1})])


def test_numbers_are_read_back_as_they_are() -> None:
    values = [1e-5, 3e-4, 1e20, 0.1, 5, float("inf"), "1e-5", "null", True]
    assert yaml.safe_load("\n".join(render._yaml("x", values)))["x"] == values
    nested = {"a": {"b": 1, "c": {}}, "d": [{"e": 1, "f": [2]}]}
    assert yaml.safe_load("\n".join(render._yaml("x", nested)))["x"] == nested
