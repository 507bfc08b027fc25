"""A progress bar for jobs that count things: in a terminal, once they take longer than five seconds; else nothing.

Use: `with Bar(total=100, unit="episodes") as bar: bar.update(done=3, note="score 12.5")`.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

PATIENCE = 5.0
"""Seconds before a bar appears."""


class Bar:
    """How far a job has come, with the time left.

    Args:
        total: what it counts up to.
        unit: of the count, plural.
        console: where to; default: standard error.
        patience: seconds before it appears.
    """

    def __init__(self, total: int, unit: str, console: Console | None = None, patience: float = PATIENCE) -> None:
        self._console = console or Console(stderr=True)
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
        self._progress = Progress(*columns, TextColumn("{task.fields[note]}"), console=self._console)
        self._task: TaskID = self._progress.add_task("", total=total, note="")
        self._due = time.monotonic() + patience
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def update(self, done: int, note: str = "") -> None:
        """Show that `done` are done. Cheap enough for every step."""
        self._progress.update(self._task, completed=done, note=note)
        if not self._shown and self._console.is_terminal and time.monotonic() >= self._due:
            self._progress.start()
            self._shown = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._progress.stop()
