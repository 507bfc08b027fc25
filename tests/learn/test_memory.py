"""Memory that stays: counted in page faults of a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

CHILD = """
import resource, sys
import torch
from gameagent.learn.memory import keep_memory
told = keep_memory() if sys.argv[1] == "keep" else None
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def minibatch():
    return len([torch.ones(2**22) for _ in range(6)])  # all there at once, then all freed
for _ in range(5):  # malloc takes some calls to settle
    minibatch()
before = faults()
minibatch()
print(told, faults() - before)
"""
PAGES = 2**22 * 4 // 4096
"""Of one tensor."""


def child(*words: str, **variables: str) -> tuple[str, int]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | variables
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *words], env=environment, capture_output=True, text=True, check=True
    )
    told, faults = done.stdout.split()
    return told, int(faults)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc can be told; nothing to type")
def test_freed_tensors_are_used_again_without_the_kernel() -> None:
    told, kept = child("keep")
    assert told == "True"
    assert kept < PAGES / 10
    assert child("don't")[1] > PAGES / 2, "the kernel keeps memory by itself here: the function has nothing to do"


def test_what_the_environment_says_is_left_alone() -> None:
    assert child("keep", MALLOC_TOP_PAD_="131072")[0] == "False"
