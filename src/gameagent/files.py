"""Writes files whole or not at all: a full disk or a killed process never leaves half a result under its name.

with replacing("outputs/x/eval.json") as part: part.write_text(text)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, with the same suffix, which takes its name when the block ends well.

    Folders are made; after an error the old file, if any, is still there and the temporary one is gone.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())  # else a power cut could leave the name without the content
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
