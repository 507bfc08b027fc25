"""eval.json and compare.json: what they hold, and what they refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.evaluation.fakes import normal_results, results

from gameagent.evaluation.stats import Estimate, mean_interval, wilson
from gameagent.evaluation.summary import (
    compare,
    estimate,
    headline,
    read_json,
    results_of,
    summarise,
    verdict,
    write_json,
)


def test_a_summary_holds_mode_seeds_rows_and_an_interval_on_every_mean() -> None:
    got = normal_results(10)
    s = summarise(got, player="PPO", mode="argmax", env={"game": "catch"})
    assert (s["player"], s["mode"], s["episodes"], s["env"]) == ("PPO", "argmax", 40, {"game": "catch"})
    assert s["seeds"] == [r.seed for r in got]
    assert estimate(s["score"]) == mean_interval([r.score for r in got])
    for name in ("return", "length"):
        assert s[name]["low"] <= s[name]["value"] <= s[name]["high"]
    assert s["terms"]["points"]["value"] == pytest.approx(2 * s["score"]["value"])
    assert results_of(s) == got


def test_win_rate_has_a_wilson_interval_and_counts_wins_only() -> None:
    s = summarise(results([3, -1, 0, 5], win=True), player="a", mode="argmax")
    assert estimate(s["win_rate"]) == wilson(2, 4)
    assert summarise(results([3, -1, 0, 5]), player="a", mode="argmax")["win_rate"] is None


def test_a_reward_term_that_an_episode_lacks_counts_as_zero() -> None:
    first, second = results([2, 4])
    second.terms.clear()
    assert summarise([first, second], player="a", mode="argmax")["terms"]["points"]["value"] == 2


def test_one_episode_has_no_interval_and_is_still_json(tmp_path: Path) -> None:
    s = summarise(results([3.0]), player="a", mode="argmax")
    write_json(tmp_path / "eval.json", s)
    e = estimate(read_json(tmp_path / "eval.json", "evaluation")["score"])
    assert e.value == 3 and math.isnan(e.low)  # noqa: PT018 - one fact


def test_a_summary_survives_its_file(tmp_path: Path) -> None:
    s = summarise(normal_results(10), player="PPO", mode="argmax")
    write_json(tmp_path / "deep" / "eval.json", s)
    assert read_json(tmp_path / "deep" / "eval.json", "evaluation") == s
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["eval.json"]


@pytest.mark.parametrize(
    ("text", "words"), [("{cut", "is no evaluation"), ('{"version": 99}', "found version 99"), ("[]", "None")]
)
def test_a_file_that_is_no_evaluation_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "eval.json").write_text(text)
    with pytest.raises(ValueError, match=words) as raised:
        read_json(tmp_path / "eval.json", "evaluation")
    assert str(tmp_path / "eval.json") in str(raised.value)


def test_a_number_that_json_lacks_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": math.nan})
    assert not list(tmp_path.iterdir())


def test_a_comparison_is_of_b_against_a_on_the_same_seeds() -> None:
    a = summarise(results([1, 2, 3, 4]), player="SFT", mode="argmax")
    b = summarise(results([2, 2, 5, 8]), player="PPO", mode="argmax")
    c = compare(a, b)
    assert c["difference"]["value"] == pytest.approx(7 / 4)
    assert (c["wins"], c["ties"], c["losses"]) == (3, 1, 0)
    assert c["rows"][2] == {"seed": 2_000_002, "a": 3, "b": 5}
    assert c["intervals_overlap"] is True
    assert json.loads(json.dumps(c)) == c


def test_other_seeds_are_refused_with_both_sides_named() -> None:
    a, b = (summarise(results([1, 2], first=f), player=p, mode="argmax") for f, p in ((0, "SFT"), (7, "PPO")))
    with pytest.raises(ValueError, match="SFT played 2 seeds from 0 to 1, PPO 2 seeds from 7 to 8"):
        compare(a, b)


def test_another_difficulty_is_told_and_another_batch_size_is_not() -> None:
    envs = [{"num_envs": 4, "knobs": {"speed": 1.0}}, {"num_envs": 64, "knobs": {"speed": 2.0}}]
    a, b = (summarise(results([1, 2]), player="x", mode="argmax", env=e) for e in envs)
    assert compare(a, b)["env_differences"] == ["env.knobs.speed: 1.0 and 2.0"]


def test_the_verdict_says_more_less_or_not_shown() -> None:
    low, high = (summarise(normal_results(m), player=p, mode="argmax") for m, p in ((10, "SFT"), (30, "PPO")))
    assert verdict(compare(low, high)).startswith("PPO scores 20.00 more than SFT")
    assert verdict(compare(high, low)).startswith("SFT scores 20.00 less than PPO")
    other = summarise(normal_results(10, seed=1), player="other", mode="argmax")
    assert verdict(compare(low, other)).startswith("no difference between other and SFT is shown")


def test_the_headline_names_score_wins_episodes_and_mode() -> None:
    s = summarise(results([3, -1, 0, 5], win=True), player="a", mode="temperature(temperature=0.5)")
    assert headline(s).startswith("score 1.75 [")
    assert "wins 50 % [15, 85], 4 episodes, temperature(temperature=0.5)" in headline(s)


def test_an_estimate_survives_its_plain_form() -> None:
    e = Estimate(1.5, 1.0, 2.0, 7, 0.9)
    assert estimate(e.to_dict()) == e
