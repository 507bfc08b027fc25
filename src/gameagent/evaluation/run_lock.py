"""Who works in a run folder: a lock that any process on any machine can judge, without a server.

with Lock(folder) as lock: ...        # raises TakenError where another one works there

The lock is a file that its owner touches every few seconds. On the owner's machine its process tells whether it lives;
elsewhere the age of the file does, so that a shared file system is enough.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from gameagent.errors import UserError

LOCK = "running.lock"
"""Of a run folder."""
BEAT = 10.0
"""Seconds between two touches."""
SILENCE = 90.0
"""Seconds without a touch after which an owner on another machine is taken for dead."""


@dataclass(frozen=True)
class Owner:
    """A process."""

    host: str
    pid: int
    started: str
    """When the process began, as the system counts: a pid alone is used again. Empty where the system doesn't tell."""
    job: str = ""
    """Id of the cluster's job; it stays when the job is put back into the queue."""

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        number = os.environ.get("SLURM_ARRAY_JOB_ID", "")
        job = f"{number}_{os.environ.get('SLURM_ARRAY_TASK_ID')}" if number else os.environ.get("SLURM_JOB_ID", "")
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()), job)

    def to_dict(self) -> dict[str, str | int]:
        """Plain form."""
        return asdict(self)


class TakenError(UserError):
    """Another process works in the folder."""


class Lock:
    """Holds a run folder as long as the block runs, whatever ends it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        self.owner = Owner.here()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        while not self._create():
            other = _owner(self.path)
            same_job = other is not None and bool(other.job) and other.job == self.owner.job
            if alive(self.path.parent) and not same_job:
                raise TakenError(f"{self.path.parent} is in use by {_told(other)}; choose another folder, or wait")
            # Renamed first: of two that find the same dead lock, one succeeds.
            grave = self.path.with_name(f"{LOCK}.{self.owner.host}.{self.owner.pid}")
            with contextlib.suppress(FileNotFoundError):
                self.path.rename(grave)
            grave.unlink(missing_ok=True)
        threading.Thread(target=self._touch, name="run folder's lock", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self.path.unlink(missing_ok=True)

    def _create(self) -> bool:
        try:
            with self.path.open("x", encoding="utf-8") as file:
                json.dump(self.owner.to_dict(), file)
        except FileExistsError:
            return False
        return True

    def _touch(self) -> None:
        while not self._over.wait(BEAT):
            with contextlib.suppress(OSError):
                os.utime(self.path)


def alive(folder: Path) -> bool:
    """Whether a process works in a run folder."""
    file = folder / LOCK
    try:
        age = time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return False
    owner = _owner(file)
    if owner is None:
        return age < 5.0  # it is being written
    if owner.host != socket.gethostname():
        return age < SILENCE
    return _started(owner.pid) == owner.started and _exists(owner.pid)


def _owner(file: Path) -> Owner | None:
    try:
        return Owner(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _told(owner: Owner | None) -> str:
    return "another process" if owner is None else f"process {owner.pid} on {owner.host}"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _started(pid: int) -> str:
    """Start time from /proc, in clock ticks since boot; also empty for a process that is dead but not yet reaped."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if words[0] in "ZX" else words[19]
