"""What jobs tell a person: a line, or a table, on standard error, so that standard output stays free for results.

say("written: outputs/x/eval.json"); show_table("scores", ("player", "mean"), [("PPO", "27.1")])
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def console() -> Console:
    """Where jobs talk to people."""
    return Console(stderr=True, highlight=False)


def say(line: str) -> None:
    """One line for the user, never wrapped: paths stay whole."""
    console().print(line, markup=False, soft_wrap=True)


def show_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> None:
    """Print a table; the columns in `numbers` are set to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for i, name in enumerate(head):
        table.add_column(escape(name), justify="right" if i in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console().print(table)
