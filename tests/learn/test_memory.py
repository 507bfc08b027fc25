"""Memory that stays: what malloc says of itself (not every kernel counts page faults), in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

CHILD = """
import ctypes, sys
import torch
from gameagent.learn.memory import keep_memory
class Mallinfo2(ctypes.Structure):  # mallinfo2(3)
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]
info = ctypes.CDLL(None).mallinfo2
info.restype = Mallinfo2
told = keep_memory() if sys.argv[1] == "keep" else None
before = info().hblks
tensors = [torch.ones(2**24) for _ in range(3)]
mapped = info().hblks - before
free = info().fordblks
del tensors
print(told, mapped, info().fordblks - free)
"""
TENSOR = 4 * 2**24
"""Bytes: more than malloc ever takes from its heap by itself (32 MB)."""


def child(*words: str, **variables: str) -> tuple[str, int, int]:
    """What keep_memory said, tensors of three that the kernel mapped, and bytes still held when they are freed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | variables
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *words], env=environment, capture_output=True, text=True, check=True
    )
    told, mapped, free = done.stdout.split()
    return told, int(mapped), int(free)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc can be told; nothing to type")
def test_freed_tensors_stay_in_the_process() -> None:
    assert child("keep") == ("True", 0, pytest.approx(3 * TENSOR, rel=0.01))
    assert child("don't") == ("None", 3, pytest.approx(0, abs=0.01 * TENSOR)), (
        "malloc keeps memory by itself here: the function has nothing to do"
    )


def test_what_the_environment_says_is_left_alone() -> None:
    assert child("keep", MALLOC_TOP_PAD_="131072")[0] == "False"
