"""The Lightning trainer that a configuration asks for, or one line about why there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gameagent.errors import UserError
from gameagent.learn.trainer import Accelerator, Trainer


@pytest.mark.skipif(sys.platform == "darwin", reason="Apple's machines have what is asked for here")
def test_an_accelerator_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"trainer\.accelerator=mps: .*type trainer\.accelerator=auto"):
        Trainer(accelerator=Accelerator.mps).build(run_dir=tmp_path, max_epochs=1, loggers=[], callbacks=[])
