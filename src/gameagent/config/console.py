"""What the command line says of itself: how it was called, and errors in words.

except Exception as error:
    report(error)
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path

from gameagent.errors import Interrupted, UserError


def program() -> str:
    """How this process was called, for texts that say what to type."""
    name = Path(sys.argv[0]).name
    return "gameagent" if name in ("", "-c", "__main__.py") else f"python {name}" if name.endswith(".py") else name


def stopped(stop: KeyboardInterrupt) -> int:
    """Say in one line that a signal ended it. Gives the exit code."""
    print(str(stop) or "stopped by Ctrl-C", file=sys.stderr)
    return 128 + (stop.signum if isinstance(stop, Interrupted) else signal.SIGINT)


def report(error: BaseException) -> None:
    """Print an error: a message where that is enough, else (and always with HYDRA_FULL_ERROR=1) the traceback."""
    from gameagent.contract import ContractError

    readable = isinstance(error, UserError | ContractError | OSError)
    if os.environ.get("HYDRA_FULL_ERROR") == "1" or not readable:
        traceback.print_exception(error)
    else:
        print(message(error), file=sys.stderr)


def message(error: BaseException) -> str:
    """An error in words."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    files = " -> ".join(str(name) for name in (error.filename, error.filename2) if name)
    text = f"{files}: {error.strerror}" if files else error.strerror
    return f"{text}; free some space or choose another folder: out=PATH" if error.errno in _FULL else text


_FULL = {28, 30, 122}
"""ENOSPC, EROFS, EDQUOT: numbers, as `errno` lacks some of them on some systems."""
