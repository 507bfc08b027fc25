"""The command line: `python run.py …` and `gameagent …`.

    main(["+experiment=catch_ppo", "seed=3"])

Composes and checks first, makes the run folder, and only then lets Hydra start the job or the sweep.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from gameagent.errors import ConfigError, Interrupted, UserError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, then exit: 0 done, 1 failed, 2 wrong configuration, 128+n stopped by signal n."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    # Read when torch starts: threads that wait for each other sleep. Spinning, two of them on two cores make almost no
    # headway as soon as the machine has anything else to do.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - sys.path holds texts
        sys.path.append(here)
    sys.exit(_code(args))


def _code(args: list[str]) -> int:
    try:
        if "--help" in args or "-h" in args:
            from gameagent.config import helptext

            directory = args[args.index("--config-dir") + 1] if "--config-dir" in args[:-1] else None
            print(helptext.text(program(), directory), end="")
            return 0
        from gameagent.config.running import run

        return run(args)
    except KeyboardInterrupt as stop:
        return stopped(stop)
    except Exception as error:
        report(error)
        return 2 if isinstance(error, ConfigError) else 1


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
