"""`job=report`: makes report.html, one self-contained page, from what another run left in its folder.

python run.py job=report job.source=outputs/catch_demo/2026-01-31_12-00-00
"""

from __future__ import annotations

from gameagent.component import component
from gameagent.errors import UserError
from gameagent.evaluation.report import write_report
from gameagent.experiment import Experiment, Job
from gameagent.jobs.screen import say


@component
class Report(Job):
    """Make a report of a run, or of a pipeline with its stages."""

    source: str | None = None
    """Run folder to report on; the page goes into it."""

    def run(self, experiment: Experiment) -> dict[str, str]:
        """Write it. Gives its path.

        Raises:
            UserError: no such run, a damaged file in it, or nothing to report.
        """
        if self.source is None:
            raise UserError("job=report needs a run folder to report on; type job.source=outputs/NAME/TIME")
        try:
            path = write_report(self.source)
        except (FileNotFoundError, ValueError) as e:
            raise UserError(str(e)) from e
        say(f"written: {path}")
        return {"report": str(path)}
