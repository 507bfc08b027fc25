from __future__ import annotations

import os
import sys
from dataclasses import FrozenInstanceError
from dataclasses import field as dataclass_field
from enum import StrEnum, auto
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from gameagent.component import (
    UntrustedError,
    check_trusted,
    component,
    from_config,
    is_component,
    locate,
    target_of,
    to_config,
)


class Mode(StrEnum):
    """Choices."""

    fixed = auto()
    adaptive = auto()


class Part:
    """Base of parts."""


@component
class Small(Part):
    """A part."""

    width: int = 8
    """Wide."""


@component
class Whole:
    """Has parts."""

    part: Part = dataclass_field(default_factory=Small)
    """Its part."""
    lr: Annotated[float, Field(gt=0)] = 1e-3
    """Step size."""
    on: bool = False
    """Switch."""
    sizes: tuple[int, ...] = (1, 2)
    """Sizes."""
    mode: Mode = Mode.fixed
    """Mode."""
    folder: Path | None = None
    """Where."""
    name: str = "x"
    """Its name."""
    extra: dict[str, Any] = dataclass_field(default_factory=dict)
    """Anything."""


@component
class Sub(Whole):
    """More of it."""

    count: int = 1
    """How many."""


def test_a_component_is_frozen_keyword_only_and_hashable_by_value() -> None:
    small = Small(width=3)
    assert small == Small(width=3)
    assert hash(small) == hash(Small(width=3))
    with pytest.raises(FrozenInstanceError):
        small.width = 4  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Small(3)  # type: ignore[misc]


def test_values_are_converted_to_their_types() -> None:
    whole = Whole(lr=1, sizes=[3, 4], mode="adaptive", folder="a/b", name=5)  # type: ignore[arg-type]
    assert (whole.lr, whole.sizes, whole.mode, whole.folder, whole.name) == (
        1.0,
        (3, 4),
        Mode.adaptive,
        Path("a/b"),
        "5",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"lr": "abc"},
        {"lr": 0},
        {"lr": True},
        {"sizes": [1, True]},
        {"count": False},
        {"mode": "other"},
        {"unknown": 1},
        {"part": Mode.fixed},
        {"on": 2},
        {"name": True},
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Sub(**wrong)


def test_true_is_fine_where_it_is_meant() -> None:
    assert Sub(on=True, extra={"deep": [True]}).on is True


def test_plain_form_round_trips() -> None:
    whole = Sub(part=Small(width=5), lr=0.5, sizes=(7,), mode=Mode.adaptive, folder=Path("x"), extra={"a": [1]})
    plain = to_config(whole)
    assert plain["part"] == {"_target_": f"{__name__}.Small", "width": 5}
    assert (plain["mode"], plain["folder"], plain["sizes"]) == ("adaptive", "x", [7])
    assert from_config(plain) == whole


def test_what_has_no_plain_form_is_refused() -> None:
    with pytest.raises(TypeError, match="has no plain form"):
        to_config({"a": object()})


@pytest.mark.parametrize("target", ["os.system", "builtins.eval", "pathlib.Path"])
def test_only_components_are_located(target: str) -> None:
    with pytest.raises(TypeError, match="is no component"):
        from_config({"_target_": target})


FILE = """
from __future__ import annotations
from gameagent.component import component

@component
class Mine:
    bonus: float = 1.0
"""


def test_a_class_of_a_file_is_located_saved_and_located_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    cls = locate("./mine.py:Mine")
    assert is_component(cls)
    assert cls is locate(str(tmp_path / "mine.py") + ":Mine"), "one file is one module"
    assert target_of(cls) == f"{tmp_path}/mine.py:Mine"
    plain = to_config(cls(bonus=2))
    del sys.modules[cls.__module__]
    monkeypatch.chdir("/")
    assert from_config(plain).bonus == 2.0


@pytest.mark.parametrize(
    ("text", "said"),
    [("import nothing_of_this_name", "No module named"), ("x = ", "SyntaxError"), ("", "has no 'Mine'")],
)
def test_a_broken_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ImportError, match=said):
        locate(f"{tmp_path}/mine.py:Mine")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="there is no file"):
        locate(f"{tmp_path}/mine.py:Mine")


def test_a_saved_files_dotted_targets_are_gameagents_imported_or_of_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stranger.py").write_text("raise SystemExit('ran')")
    monkeypatch.syspath_prepend(tmp_path)
    for fine in ("gameagent.nets.encoders.Mlp", f"{__name__}.Small", "nowhere_at_all.Net"):
        check_trusted(fine)
    with pytest.raises(UntrustedError, match=r"would run the module stranger,.* type import stranger"):
        from_config({"part": [{"_target_": "stranger.Net"}]}, saved=True)
    (tmp_path / "stranger-1.dist-info").mkdir()
    (tmp_path / "stranger-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    (tmp_path / "stranger-1.dist-info/entry_points.txt").write_text("[gameagent.plugins]\nx = stranger.conf\n")
    check_trusted("stranger.Net")


def test_a_saved_files_file_targets_are_loaded_below_here_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "deep/er").mkdir(parents=True)
    file = tmp_path / "deep/er/mine.py"
    file.write_text(FILE)
    target = f"{file}:Mine"
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("GAMEAGENT_TRUST", os.pathsep)
    for spelling in (target, "../deep/er/mine.py:Mine"):
        with pytest.raises(UntrustedError, match=rf"would run {file},.* type cd {file.parent} or .*GAMEAGENT_TRUST="):
            check_trusted(spelling)
    monkeypatch.setenv("GAMEAGENT_TRUST", f"/nowhere{os.pathsep}{tmp_path / 'deep'}")
    check_trusted(target)
    monkeypatch.delenv("GAMEAGENT_TRUST")
    monkeypatch.chdir(tmp_path / "deep")
    check_trusted(target)
    locate(target)
    monkeypatch.chdir(tmp_path / "work")
    check_trusted(target)
