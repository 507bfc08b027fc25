"""Files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from gameagent.files import replacing


def test_the_file_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.json"
    with replacing(target) as part:
        part.write_text("x")
        assert not target.exists()
        assert part.suffix == ".json", "writers that look at the suffix see the right one"
    assert target.read_text() == "x"
    assert [p.name for p in target.parent.iterdir()] == ["a.json"]


def test_after_an_error_the_old_file_is_there_and_no_scraps(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_text("old")

    def fail() -> None:
        with replacing(target) as part:
            part.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]
