"""Seconds until the command line answers: `--help`, `--cfg job`, a mistyped key; medians after a warm-up.

    python benchmarks/startup.py --repeats 5

Wall-clock and CPU seconds of the whole process. Keep the machine idle for the former.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUN = Path(__file__).parents[1] / "run.py"
COMMANDS = {"--help": ["--help"], "--cfg job": ["--cfg", "job"], "a mistyped key": ["learner.lrr=1"]}


def timed(arguments: list[str]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of one call."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, str(RUN), *arguments], capture_output=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, Python {sys.version.split()[0]}\n")
    print("| `python run.py …` | seconds (median) | CPU seconds |\n|---|---|---|")
    for name, arguments in COMMANDS.items():
        timed(arguments)
        runs = [timed(arguments) for _ in range(options.repeats)]
        wall, cpu = (statistics.median(values) for values in zip(*runs, strict=True))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} |", flush=True)


if __name__ == "__main__":
    main()
