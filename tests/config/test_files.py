from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gameagent.config import Change, ConfigError, diff, files, load, save
from gameagent.errors import UserError

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(categories=["L", "N"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_", min_size=1), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abc_", min_size=1), PLAIN, max_size=4))
def test_what_is_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, plain: dict[str, object]) -> None:
    path = tmp_path_factory.getbasetemp() / "round_trip.yaml"
    save(plain, path, comment="about")
    assert load(path) == plain


def test_numbers_typed_by_hand_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("lr: 1e-4\nsteps: 1e6\n")
    assert load(tmp_path) == {"lr": 1e-4, "steps": 1e6}


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save({"a": 1}, tmp_path / "x.yaml")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match="No space left on device"):
        save({"a": 2}, tmp_path / "x.yaml")
    assert [p.name for p in tmp_path.iterdir()] == ["x.yaml"]
    assert load(tmp_path / "x.yaml") == {"a": 1}


@pytest.mark.parametrize(
    ("content", "said"), [(b"a: [1", "is no YAML"), (b"- 1", "holds a list"), (b"\xff\xfe\x00", "is no YAML")]
)
def test_a_broken_file_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        load(tmp_path)


def test_diff_lists_changed_new_and_gone_keys() -> None:
    old = {"learner": {"lr": 1, "clip": 2}, "sizes": [1, 2], "gone": 3, "same": {}}
    new = {"learner": {"lr": 5, "clip": 2}, "sizes": [1], "fresh": None, "same": {}}
    assert diff(old, new) == [
        Change("learner.lr", 1, 5),
        Change("sizes", [1, 2], [1]),
        Change("fresh", files.MISSING, None),
        Change("gone", 3, files.MISSING),
    ]
    assert str(diff(old, new)[0]) == "learner.lr: 1 -> 5"


def test_a_run_folder_can_be_run_again_as_a_new_run(tmp_path: Path) -> None:
    files.save_run({"seed": 1, "out": "somewhere", "job": {"resume": "x", "end": "well"}}, tmp_path, ["seed=1"])
    assert load(tmp_path) == {"seed": 1, "out": None, "job": {"resume": None, "end": "well"}}
    assert files.overrides_of(tmp_path) == ["seed=1"]
    assert files.overrides_of(tmp_path / "nothing") == []
