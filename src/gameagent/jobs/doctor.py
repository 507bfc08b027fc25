"""`job=doctor`: what works on this machine, what is missing and what to type; checks an environment's contract too.

python run.py job=doctor env=catch
"""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from gameagent.component import component
from gameagent.errors import UserError
from gameagent.experiment import Experiment, Job
from gameagent.jobs.checks import Finding, Status, env_finding, machine_findings
from gameagent.jobs.screen import console, say

_SIGNS = {Status.works: "[green]✓[/]", Status.missing: "[yellow]–[/]", Status.broken: "[bold red]✗[/]"}


@component
class Doctor(Job):
    """Look at this machine, and at the experiment's environment."""

    check_env: bool = True
    """Whether to play the environment and test every promise of the contract: seconds for a mini-game."""

    def run(self, experiment: Experiment) -> dict[str, int]:
        """Print the table. Gives how many subjects work, are missing and are broken.

        Raises:
            UserError: something that every run needs is broken, or the environment breaks the contract.
        """
        findings = list(machine_findings())
        if self.check_env:
            findings.append(env_finding(experiment.env))
        show_findings(findings)
        broken = [f for f in findings if f.status is Status.broken]
        if broken:
            told = "\n".join(f"  {f.subject}: {f.detail}" + (f"\n    {f.fix}" if f.fix else "") for f in broken)
            raise UserError(f"{len(broken)} of {len(findings)} subjects are broken:\n{told}")
        say("Everything that gameagent needs works; what is missing is optional.")
        return {status.value: sum(f.status is status for f in findings) for status in Status}


def show_findings(findings: list[Finding]) -> None:
    """Print findings as a table, what to type below each that needs something."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for column in ("sign", "subject", "detail"):
        table.add_column(column, overflow="fold", no_wrap=column != "detail")
    for f in findings:
        fix = f"\n[dim]{escape(f.fix)}[/]" if f.fix else ""
        table.add_row(_SIGNS[f.status], f"[bold]{escape(f.subject)}[/]", escape(f.detail) + fix)
    console().print(table)
