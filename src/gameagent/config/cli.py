"""The command line: `python run.py …` and `gameagent …`.

    main(["+experiment=catch_ppo", "seed=3"])

Composes and checks first, makes the run folder, and only then lets Hydra start the job or the sweep.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from gameagent.config.console import program, report, stopped
from gameagent.errors import ConfigError


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
