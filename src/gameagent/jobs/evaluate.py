"""`job=evaluate`: scores a player over held-out seeds, with intervals; writes eval.json and eval.png.

python run.py job=evaluate env=catch job.policy=outputs/catch_ppo/2026-01-31_12-00-00 job.episodes=100
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from gameagent.component import component
from gameagent.errors import UserError
from gameagent.evaluation.plots import score_picture
from gameagent.evaluation.summary import Summary, estimate, write_json
from gameagent.experiment import Experiment, Job
from gameagent.jobs.players import Player, evaluate, find_player, held_out
from gameagent.jobs.screen import say, show_table
from gameagent.policies.bundle import add_evaluation
from gameagent.policies.samplers import Argmax, Sampler

EVALUATION, PICTURE = "eval.json", "eval.png"
"""Of a run folder."""


@component
class Evaluate(Job):
    """Score a policy, the built-in expert or a random player."""

    policy: str = "expert"
    """Who plays: a policy file (.safetensors, .onnx, .ckpt), a run folder that holds one, `expert` or `random`."""
    episodes: Annotated[int, Field(gt=0)] = 100
    """Episodes, one a seed."""
    seed: Annotated[int, Field(ge=0)] = 2_000_000
    """Seed of the first episode; the others follow. Far from those of training and collecting."""
    sampler: Sampler = Argmax()
    """How actions are chosen from the policy's distribution."""
    num_envs: Annotated[int, Field(gt=0)] | None = None
    """Episodes played at once; null for the env's own number. Changes the speed, not the result."""
    label: str | None = None
    """What tables and pictures call the player; null for a name from the path."""
    add_to_policy: bool = False
    """Whether the result is also written into the policy's own .safetensors file."""

    def run(self, experiment: Experiment) -> dict[str, float]:
        """Evaluate. Gives the mean score with its interval, the mean length, and the win rate where there is one.

        Raises:
            UserError: no such player, or nothing that a result can be added to.
            ContractError: the policy was made for another environment.
        """
        player = find_player(self.policy, self.sampler, seed=experiment.seed, label=self.label)
        if self.add_to_policy and (player.path is None or player.path.suffix != ".safetensors"):
            raise UserError(
                f"job.add_to_policy=true needs a .safetensors file to write into, got job.policy={self.policy}"
            )
        summary = evaluate(experiment.env, player, held_out(self.seed, self.episodes), num_envs=self.num_envs)
        write_json(experiment.run_dir / EVALUATION, summary)
        score_picture(experiment.run_dir / PICTURE, [summary])
        self._add(player, summary)
        show_summary(summary)
        say(f"written: {experiment.run_dir / EVALUATION}, {PICTURE}")
        return outcome(summary)

    def _add(self, player: Player, summary: Summary) -> None:
        """Into the policy's card: everything but the single episodes."""
        if self.add_to_policy and player.path is not None:
            kept = {k: v for k, v in summary.items() if k not in ("rows", "seeds", "env")}
            kept["seeds"] = {"first": summary["seeds"][0], "last": summary["seeds"][-1]}
            add_evaluation(player.path, {summary["mode"]: kept})


def outcome(summary: Mapping[str, Any]) -> dict[str, float]:
    """The numbers that a sweep compares."""
    score = estimate(summary["score"])
    numbers = {"score": score.value, "length": float(summary["length"]["value"])}
    if score.low == score.low:
        numbers |= {"score_low": score.low, "score_high": score.high}
    if summary["win_rate"] is not None:
        numbers["win_rate"] = float(summary["win_rate"]["value"])
    return numbers


def show_summary(summary: Mapping[str, Any]) -> None:
    """Print an evaluation's table."""
    rows = [("score", summary["score"]), ("middle half", summary["score"]["interquartile_mean"])]
    rows += [("return", summary["return"]), *((f"  {name}", term) for name, term in summary["terms"].items())]
    rows.append(("steps", summary["length"]))
    shown = [(name, *_ends(plain)) for name, plain in rows]
    rates = [("wins", summary["win_rate"]), ("ended by the game", summary["terminated"])]
    shown += [(name, *_ends(plain, 100, " %")) for name, plain in rates if plain is not None]
    title = f"{summary['player']}: {summary['episodes']} episodes, {summary['mode']}"
    level = f"{100 * summary['score']['level']:g} % interval"
    show_table(title, ("", "mean", level), shown, numbers=(1, 2))


def _ends(plain: Mapping[str, Any], times: float = 1.0, unit: str = "") -> tuple[str, str]:
    e = estimate(plain)
    interval = f"{times * e.low:.2f} to {times * e.high:.2f}{unit}" if e.low == e.low else "one episode: none"
    return f"{times * e.value:.2f}{unit}", interval
