"""The plain form: what is exported comes back, own recordings come in, and every mistake names its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gameagent.contract import ActionSpace, ObsPart, ObsSpace, Part
from gameagent.data.episodes import EpisodeError, EpisodeStore
from gameagent.data.plain import export_plain, import_plain

MakeStore = Callable[..., EpisodeStore]


def same(a: EpisodeStore, b: EpisodeStore) -> None:
    assert (a.obs_space, a.action_space, a.env, a.source, a.fps) == (
        b.obs_space,
        b.action_space,
        b.env,
        b.source,
        b.fps,
    )
    assert len(a) == len(b)
    for x, y in zip(a.episodes, b.episodes, strict=True):
        for name in ("index", "seed", "score", "length", "terminated", "truncated", "source", "has_labels"):
            assert getattr(x, name) == getattr(y, name), name
        for left, right in ((x.obs(), y.obs()), (x.terms, y.terms)):
            assert left.keys() == right.keys()
            for name in left:
                np.testing.assert_array_equal(left[name], right[name])
        for name in ("actions", "labels", "rewards"):
            np.testing.assert_array_equal(getattr(x, name), getattr(y, name))


def test_round_trip(make_store: MakeStore, tmp_path: Path) -> None:
    store = make_store()
    folder = export_plain(store, tmp_path / "plain")
    same(import_plain(folder, tmp_path / "again.zarr"), store)


def test_round_trip_with_features_labels_and_grey_frames(tmp_path: Path) -> None:
    space = ObsSpace(
        {"frame": ObsPart(Part.frame, (5, 7, 1)), "features": ObsPart(Part.features, (2,), names=("x", "y"))}
    )
    store = EpisodeStore.create(
        tmp_path / "s", obs_space=space, action_space=ActionSpace(move_labels="abc"), env={}, source={}, fps=60.0
    )
    rng = np.random.default_rng(0)
    writer = store.writer(seed=3, index=4, source={"collector": "policy"})
    for _ in range(3):
        parts = {"frame": rng.integers(0, 256, (5, 7, 1), np.uint8), "features": rng.normal(size=2).astype(np.float32)}
        writer.add(parts, 1, 0.1, label=2)
    writer.finish(score=1.5, terminated=False, truncated=True)
    same(import_plain(export_plain(store, tmp_path / "plain"), tmp_path / "again.zarr"), store)


def test_lines_are_one_json_a_frame(make_store: MakeStore, tmp_path: Path) -> None:
    folder = export_plain(make_store(), tmp_path / "plain")
    lines = [json.loads(line) for line in (folder / "action.jsonl").read_text().splitlines()]
    assert len(lines) == 8
    assert lines[5] == {
        "frame": "frames/000001/000000.png",
        "action": 1,
        "episode": 1,
        "step": 0,
        "reward": 0.0,
        "terms": {"apples": 0.0},
    }
    assert json.loads((folder / "labels.json").read_text())["heads"]["move"] == ["left", "stay", "right"]
    with Image.open(folder / lines[5]["frame"]) as picture:
        assert (picture.size, picture.mode) == ((6, 4), "RGB")


def recording(folder: Path, *lines: str, labels: str = '{"heads": {"move": ["left", "right"]}}') -> Path:
    """The least that a recording of one's own needs."""
    (folder / "frames").mkdir(parents=True)
    for t in range(3):
        Image.fromarray(np.full((4, 6, 3), t, np.uint8)).save(folder / "frames" / f"{t}.png")
    (folder / "labels.json").write_text(labels)
    (folder / "action.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def line(t: int, **more: object) -> str:
    return json.dumps({"frame": f"frames/{t}.png", "action": t % 2} | more)


def test_own_recordings_need_frame_and_action_only(tmp_path: Path) -> None:
    folder = recording(tmp_path / "own", line(0), line(1), "", line(2, episode=1, reward=2.5))
    store = import_plain(folder, tmp_path / "s")
    assert store.source == {"collector": "plain"}
    first, second = store.episodes
    np.testing.assert_array_equal(first.actions, [0, 1])
    np.testing.assert_array_equal(first.obs()["frame"][:, 0, 0, 0], [0, 1])
    assert (second.index, second.score, second.terminated) == (1, 2.5, True)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "is empty"),
        (["nonsense"], "line 1: no JSON"),
        ([line(0), '{"frame": "frames/0.png"}'], 'line 2: needs "frame"'),
        (['{"frame": "frames/0.png", "action": "left"}'], 'line 1: needs "frame".*an integer'),
        ([line(0), line(1, frame="frames/9.png")], "line 2: its frame .*9.png can't be read"),
        ([line(0), line(1, frame="labels.json")], "line 2: its frame .*labels.json can't be read"),
        ([line(0), line(1, action=2)], "line 2: flat action ids go from 0 to 1, got 2"),
        ([line(0), line(1, step=5)], "line 2: step 5 where 1 of episode 0 should follow"),
        ([line(0), line(1, episode=1), line(2)], "lines of episode 0 must follow one another"),
        ([line(0), line(1, features=[1.0])], "line 2: the store records"),
    ],
)
def test_a_bad_line_is_named_and_leaves_no_half_store(tmp_path: Path, lines: list[str], message: str) -> None:
    folder = recording(tmp_path / "own", *lines)
    with pytest.raises(EpisodeError, match=message):
        import_plain(folder, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("labels", ["{", "[]", "{}", '{"heads": {"move": ["left", "left"]}}'])
def test_bad_labels_are_named(tmp_path: Path, labels: str) -> None:
    with pytest.raises(EpisodeError, match=r"labels\.json"):
        import_plain(recording(tmp_path / "own", line(0), labels=labels), tmp_path / "s")


@pytest.mark.parametrize("name", ["labels.json", "action.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = recording(tmp_path / "own", line(0))
    (folder / name).unlink()
    with pytest.raises(EpisodeError, match=rf"holds no {name}"):
        import_plain(folder, tmp_path / "s")


def test_nothing_is_overwritten(make_store: MakeStore, tmp_path: Path) -> None:
    store = make_store()
    folder = export_plain(store, tmp_path / "plain")
    with pytest.raises(EpisodeError, match="exists already"):
        export_plain(store, folder)
    with pytest.raises(EpisodeError, match="exists already"):
        import_plain(folder, store.path)


def test_a_store_without_frames_has_no_plain_form(tmp_path: Path) -> None:
    store = EpisodeStore.create(
        tmp_path / "s",
        obs_space=ObsSpace(features=(1,)),
        action_space=ActionSpace(move_labels="ab"),
        env={},
        source={},
    )
    with pytest.raises(EpisodeError, match="holds no frames"):
        export_plain(store, tmp_path / "plain")
