"""Exceptions whose message is all that a user needs: the command line prints it without a traceback.

raise UserError("what was given; what is allowed; what to type")
"""

from __future__ import annotations

from collections.abc import Sequence


class UserError(Exception):
    """Something outside the code is wrong (a file, a setting, a missing program). The message says what to do."""


class ConfigError(UserError, ValueError):
    """The configuration is wrong; `problems` holds every mistake found, one text each."""

    def __init__(self, problems: Sequence[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        count = len(self.problems)
        head = "The configuration has a mistake:" if count == 1 else f"The configuration has {count} mistakes:"
        super().__init__("\n".join([head, *("  " + text.replace("\n", "\n    ") for text in self.problems)]))


class EnvError(UserError, ValueError):
    """An environment can't be used as it was asked for, or a saved state doesn't fit it."""


class Interrupted(KeyboardInterrupt):
    """A job stopped early because of a signal, after saving what it had. The process then exits with 128 + `signum`.

    It is a `KeyboardInterrupt`, so that it also ends a sweep instead of starting its next run.
    """

    def __init__(self, signum: int, message: str = "") -> None:
        self.signum = signum
        super().__init__(message or f"stopped by signal {signum}")
