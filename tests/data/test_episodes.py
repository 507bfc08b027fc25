"""Stores of episodes: what is written comes back, what is damaged is named, what was never completed doesn't count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gameagent.contract import ActionSpace, ObsPart, ObsSpace, Part
from gameagent.data import writer as writing
from gameagent.data.episodes import EpisodeError, EpisodeStore

MakeStore = Callable[..., EpisodeStore]


def test_everything_written_comes_back(make_store: MakeStore) -> None:
    made = make_store()
    store = EpisodeStore.open(made.path)
    assert (store.obs_space, store.action_space) == (made.obs_space, made.action_space)
    assert (store.env, store.source, store.fps, store.frames_per_step) == (
        {"game": "fake"},
        {"collector": "expert"},
        30.0,
        1,
    )
    first, second = store.episodes
    assert (len(first), len(second), len(store)) == (5, 3, 2)
    assert (second.index, second.seed, second.score, second.terminated, second.truncated) == (1, 101, 10.0, False, True)
    np.testing.assert_array_equal(second.obs()["frame"][:, 0, 0, 0], [40, 41, 42])
    np.testing.assert_array_equal(second.actions, [1, 2, 3])
    np.testing.assert_array_equal(second.rewards, [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(second.terms["apples"], [0.0, 1.0, 2.0])
    assert (second.actions.dtype, second.rewards.dtype, second.obs()["frame"].dtype) == (np.int64, np.float64, np.uint8)


def test_long_episodes_span_chunks_and_read_by_slice(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHUNK_ROWS", 4)
    episode = EpisodeStore.open(make_store(lengths=(11,)).path).episodes[0]
    np.testing.assert_array_equal(episode.obs()["frame"][:, 0, 0, 0], np.arange(11))
    np.testing.assert_array_equal(episode.obs(slice(3, 9))["frame"][:, 0, 0, 0], np.arange(3, 9))


def test_a_writer_never_holds_more_than_its_chunk(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHUNK_BYTES", 4 * 6 * 3 * 2)
    episode = EpisodeStore.open(make_store(lengths=(5,)).path).episodes[0]
    assert len(list((episode.folder / "obs" / "frame" / "c").iterdir())) == 3
    np.testing.assert_array_equal(episode.obs()["frame"][:, 0, 0, 0], np.arange(5))


def test_labels_are_kept_apart_only_where_noise_changed_the_action(tmp_path: Path) -> None:
    store = EpisodeStore.create(
        tmp_path / "s",
        obs_space=ObsSpace(features=(2,)),
        action_space=ActionSpace(move_labels="abc"),
        env={},
        source={},
    )
    for noisy in (False, True):
        writer = store.writer(seed=0)
        writer.add({"features": np.zeros(2, np.float32)}, action=1, reward=0.0, label=2 if noisy else 1)
        writer.finish(score=0)
    clean, noisy_one = EpisodeStore.open(store.path).episodes
    assert (clean.has_labels, clean.labels.tolist(), clean.actions.tolist()) == (False, [1], [1])
    assert (noisy_one.has_labels, noisy_one.labels.tolist(), noisy_one.actions.tolist()) == (True, [2], [1])


def test_features_and_text_round_trip(tmp_path: Path) -> None:
    space = ObsSpace({"features": ObsPart(Part.features, (2,), names=("x", "y")), "text": ObsPart(Part.text, (), 12)})
    store = EpisodeStore.create(
        tmp_path / "s", obs_space=space, action_space=ActionSpace(move_labels="ab"), env={}, source={}
    )
    writer = store.writer(seed=0)
    texts = ["Ball at 3,4", "", "é→猫"]
    for i, text in enumerate(texts):
        writer.add({"features": np.array([i, i / 3], np.float32), "text": text}, action=0, reward=0.0)
    writer.finish(score=0)
    obs = EpisodeStore.open(store.path).episodes[0].obs()
    assert obs["text"].tolist() == texts
    np.testing.assert_array_equal(obs["features"], np.array([[i, i / 3] for i in range(3)], np.float32))


def test_an_unfinished_episode_does_not_count(make_store: MakeStore) -> None:
    store = make_store()
    writer = store.writer(seed=5)
    writer.add({"frame": np.zeros((4, 6, 3), np.uint8)}, 0, 0.0)
    assert len(EpisodeStore.open(store.path)) == 2
    writer.discard()
    assert not list(store.path.glob("unfinished-*"))


def test_kill_mid_write_leaves_earlier_episodes_and_an_appendable_store(make_store: MakeStore) -> None:
    store = make_store()
    script = textwrap.dedent("""
        import os, sys
        import numpy as np
        from gameagent.data import writer as writing
        from gameagent.data.episodes import EpisodeStore
        writing.CHUNK_ROWS = 4
        store = EpisodeStore.open(sys.argv[1])
        for length in (6, 1000):
            writer = store.writer(seed=7)
            for t in range(length):
                if t == 500:
                    os.kill(os.getpid(), 9)
                writer.add({"frame": np.full((4, 6, 3), t % 256, np.uint8)}, 0, 0.0)
            writer.finish(score=1.0)
    """)
    done = subprocess.run([sys.executable, "-c", script, str(store.path)], timeout=60, env=os.environ)
    assert done.returncode == -9
    assert list(store.path.glob("unfinished-*"))
    again = EpisodeStore.open(store.path)
    assert [len(e) for e in again.episodes] == [5, 3, 6]
    assert again.next_index == 3
    again.clear_leftovers()
    writer = again.writer(seed=8)
    writer.add({"frame": np.zeros((4, 6, 3), np.uint8)}, 0, 0.0)
    writer.finish(score=2.0)
    assert [e.seed for e in EpisodeStore.open(store.path).episodes] == [100, 101, 7, 8]
    assert not list(store.path.glob("unfinished-*"))


@pytest.mark.parametrize("step", ["missing part", "unknown part", "shape", "dtype", "action", "label"])
def test_a_step_that_does_not_fit_is_refused(make_store: MakeStore, step: str) -> None:
    writer = make_store().writer(seed=0)
    frame = np.zeros((4, 6, 3), np.uint8)
    given = {
        "missing part": ({}, 0, None, "records"),
        "unknown part": ({"frame": frame, "features": np.zeros(1, np.float32)}, 0, None, "records"),
        "shape": ({"frame": frame[:2]}, 0, None, r"frame as uint8 \(4, 6, 3\), got uint8 \(2, 6, 3\)"),
        "dtype": ({"frame": frame.astype(np.float32)}, 0, None, "got float32"),
        "action": ({"frame": frame}, 6, None, "from 0 to 5, got 6"),
        "label": ({"frame": frame}, 0, -1, "from 0 to 5, got -1"),
    }
    parts, action, label, message = given[step]
    with pytest.raises(ValueError, match=message):
        writer.add(parts, action, 0.0, label=label)


def test_an_episode_without_steps_is_refused(make_store: MakeStore) -> None:
    with pytest.raises(ValueError, match="at least one step"):
        make_store().writer(seed=0).finish(score=0)


def test_a_store_is_never_overwritten(make_store: MakeStore) -> None:
    make_store()
    with pytest.raises(EpisodeError, match=r"exists already.*job\.resume="):
        make_store()


def test_a_number_that_is_taken_is_refused(make_store: MakeStore) -> None:
    with pytest.raises(ValueError, match="next free number is 2"):
        make_store().writer(seed=0, index=1)


def test_episodes_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    space = ObsSpace(features=(1,))
    store = EpisodeStore.create(
        tmp_path / "s", obs_space=space, action_space=ActionSpace(move_labels="ab"), env={}, source={}
    )
    for index in (4, 0, 2):
        writer = store.writer(seed=index, index=index)
        writer.add({"features": np.zeros(1, np.float32)}, 0, 0.0)
        writer.finish(score=0)
    for opened in (store, EpisodeStore.open(store.path)):
        assert [e.seed for e in opened.episodes] == [0, 2, 4]
        assert opened.next_index == 5


def test_a_run_folder_means_the_store_inside_it(make_store: MakeStore) -> None:
    store = make_store(name="run/episodes.zarr")
    assert EpisodeStore.open(store.path.parent).path == store.path


class TestDamage:
    """Each kind of damage names the episode, what is wrong, and what to type."""

    def refuses(self, path: Path, *messages: str) -> None:
        with pytest.raises(EpisodeError) as caught:
            EpisodeStore.open(path)
        for message in messages:
            assert message in str(caught.value)

    def test_missing_folder(self, tmp_path: Path) -> None:
        self.refuses(tmp_path / "nothing", "no such folder", "job=collect")

    def test_not_a_zarr(self, tmp_path: Path) -> None:
        (tmp_path / "plain").mkdir()
        self.refuses(tmp_path / "plain", "is no Zarr store", "job=collect")

    def test_a_file_instead_of_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "episodes.zarr").write_text("no folder")
        self.refuses(tmp_path / "episodes.zarr", "is no Zarr store")

    def test_another_kind_of_zarr(self, tmp_path: Path) -> None:
        (tmp_path / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
        self.refuses(tmp_path, "holds no gameagent episodes")

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"zarr_format": 2}'])
    def test_broken_metadata(self, make_store: MakeStore, text: str) -> None:
        store = make_store()
        (store.path / "zarr.json").write_text(text)
        self.refuses(store.path, "zarr.json")

    def edit(self, folder: Path, **changes: object) -> None:
        plain = json.loads((folder / "zarr.json").read_text())
        for key, value in changes.items():
            owner = plain if key in plain else plain["attributes"]
            owner[key] = value
        (folder / "zarr.json").write_text(json.dumps(plain))

    def test_another_format_version(self, make_store: MakeStore) -> None:
        store = make_store()
        self.edit(store.path, format_version=99)
        self.refuses(store.path, "format version 99", "reads version 1")

    def test_another_contract_version(self, make_store: MakeStore) -> None:
        store = make_store()
        self.edit(store.path, action_space=store.action_space.to_dict() | {"contract": 99})
        self.refuses(store.path, str(store.path), "contract version 99", "reads version 1", "job=collect")

    def test_missing_attributes(self, make_store: MakeStore) -> None:
        store = make_store()
        self.edit(store.path, fps=None)
        self.refuses(store.path, "attributes are incomplete")

    def test_chunk_cut_short(self, make_store: MakeStore) -> None:
        folder = make_store().episodes[1].folder
        chunk = next(f for f in (folder / "obs").rglob("*") if f.is_file() and f.name != "zarr.json")
        os.truncate(chunk, chunk.stat().st_size // 2)
        self.refuses(folder.parent, "episode 000001", "bytes where", f"rm -r {folder}")

    def test_missing_chunk_is_not_read_as_zeros(self, make_store: MakeStore) -> None:
        folder = make_store().episodes[1].folder
        (folder / "rewards" / "c" / "0").unlink()
        self.refuses(folder.parent, "episode 000001", "rewards/c/0 is missing")

    def test_missing_array(self, make_store: MakeStore) -> None:
        folder = make_store().episodes[0].folder
        for file in sorted((folder / "actions").rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        self.refuses(folder.parent, "episode 000000", "actions", "is missing", "rm -r")

    def test_array_of_another_length(self, make_store: MakeStore) -> None:
        folder = make_store().episodes[0].folder
        self.edit(folder, length=6)
        self.refuses(folder.parent, "episode 000000", "actions is int64 (5,), but must be int64 (6,)")

    def test_array_of_another_dtype(self, make_store: MakeStore) -> None:
        folder = make_store().episodes[0].folder
        text = (folder / "rewards" / "zarr.json").read_text()
        (folder / "rewards" / "zarr.json").write_text(text.replace('"float64"', '"float32"'))  # of the same size
        self.refuses(folder.parent, "rewards is float32 (5,), but must be float64 (5,)")

    def test_incomplete_flag(self, make_store: MakeStore) -> None:
        folder = make_store().episodes[0].folder
        self.edit(folder, complete=False)
        self.refuses(folder.parent, "episode 000000", "never completed")

    @pytest.mark.parametrize("name", ["seed", "score", "length", "files", "source", "terms"])
    def test_missing_episode_attribute(self, make_store: MakeStore, name: str) -> None:
        folder = make_store().episodes[0].folder
        self.edit(folder, **{name: None})
        self.refuses(folder.parent, "episode 000000", "attributes are incomplete")

    def test_flipped_bit_is_found_on_reading(self, make_store: MakeStore) -> None:
        folder = make_store().episodes[0].folder
        chunk = next(f for f in (folder / "obs").rglob("*") if f.is_file() and f.name != "zarr.json")
        raw = bytearray(chunk.read_bytes())
        raw[-1] ^= 1
        chunk.write_bytes(raw)
        episode = EpisodeStore.open(folder.parent).episodes[0]
        with pytest.raises(EpisodeError, match=r"episode 000000 .*obs/frame can't be read[\s\S]*rm -r"):
            episode.obs()

    def test_removing_the_damaged_episode_as_told_repairs_the_store(self, make_store: MakeStore) -> None:
        store = make_store(lengths=(5, 3, 4))
        for file in sorted(store.episodes[1].folder.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        store.episodes[1].folder.rmdir()
        assert [len(e) for e in EpisodeStore.open(store.path).episodes] == [5, 4]
