"""Keeping the memory of freed tensors in the process: `keep_memory()`, once, before training.

Given back to the kernel after every minibatch, it is paged in again at the next: a fifth of PPO's time on frames, on a
CPU (benchmarks/ppo_speed.py).
"""

from __future__ import annotations

import ctypes
import os

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
"""Names of /usr/include/malloc.h."""


def keep_memory() -> bool:
    """Tell malloc to keep large blocks. False where the C library isn't glibc, or the environment says otherwise.

    The process then stays as large as it ever was. Variables MALLOC_… of the environment are left as they are.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # macOS, Windows, musl
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**28))
    return all(mallopt(parameter, value) == 1 for parameter, value in settings)
