"""`job=compare`: two players on the same seeds, seed by seed; writes compare.json and compare.png.

python run.py job=compare env=catch job.a=outputs/catch_sft/… job.b=outputs/catch_ppo/… job.episodes=100
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from gameagent.component import component
from gameagent.errors import UserError
from gameagent.evaluation.plots import paired_picture
from gameagent.evaluation.summary import Summary, compare, estimate, read_json, verdict, write_json
from gameagent.experiment import Experiment, Job
from gameagent.jobs.evaluate import EVALUATION
from gameagent.jobs.players import evaluate, find_player, held_out
from gameagent.jobs.screen import say, show_table
from gameagent.policies.samplers import Argmax, Sampler

COMPARISON, PICTURE = "compare.json", "compare.png"
"""Of a run folder."""


@component
class Compare(Job):
    """Compare two players on the same seeds: a paired test sees differences that two separate intervals hide."""

    a: str = "expert"
    """The first: a policy file, a run folder, `expert`, `random`, or the eval.json (or run folder) of an evaluation,
    whose episodes are then not played again."""
    b: str = "random"
    """The second, likewise."""
    label_a: str | None = None
    """What tables and pictures call the first; null for a name from the path."""
    label_b: str | None = None
    """What they call the second."""
    episodes: Annotated[int, Field(gt=0)] = 100
    """Episodes, one a seed; what an eval.json says goes first."""
    seed: Annotated[int, Field(ge=0)] = 2_000_000
    """Seed of the first episode; the others follow."""
    sampler: Sampler = Argmax()
    """How actions are chosen from each policy's distribution."""
    num_envs: Annotated[int, Field(gt=0)] | None = None
    """Episodes played at once; null for the env's own number."""

    def run(self, experiment: Experiment) -> dict[str, float]:
        """Compare. Gives the mean difference b - a with its interval, and the permutation test's p-value.

        Raises:
            UserError: a side is unusable, or two evaluations don't share their seeds.
        """
        a = self._side(experiment, self.a, self.label_a)
        b = self._side(experiment, self.b, self.label_b)
        try:
            comparison = compare(a, b)
        except ValueError as e:
            raise UserError(str(e)) from e
        write_json(experiment.run_dir / COMPARISON, comparison)
        paired_picture(experiment.run_dir / PICTURE, comparison)
        rows = [(s["player"], s["mode"], str(estimate(s["score"]))) for s in (a, b)]
        show_table(f"{comparison['episodes']} seeds", ("player", "mode", "mean score"), rows)
        say(verdict(comparison))
        for line in comparison["env_differences"]:
            say(f"note: they played in different environments: {line}")
        say(f"written: {experiment.run_dir / COMPARISON}, {PICTURE}")
        d = estimate(comparison["difference"])
        return {"difference": d.value, "low": d.low, "high": d.high, "p_value": float(comparison["p_value"])}

    def _side(self, experiment: Experiment, spec: str, label: str | None) -> Summary:
        """One side's episodes: read where an evaluation holds them, else played."""
        found = evaluation_at(spec)
        if found is not None:
            try:
                summary = read_json(found, "evaluation")
            except ValueError as e:
                raise UserError(str(e)) from e
            return summary if label is None else {**summary, "player": label}
        player = find_player(spec, self.sampler, seed=experiment.seed, label=label)
        return evaluate(experiment.env, player, held_out(self.seed, self.episodes), num_envs=self.num_envs)


def evaluation_at(spec: str) -> Path | None:
    """The eval.json that `spec` means: itself, or the one in that run folder; None for anything else."""
    path = Path(spec)
    if path.is_dir() and (path / EVALUATION).is_file():
        return path / EVALUATION
    return path if path.suffix == ".json" and path.is_file() else None
