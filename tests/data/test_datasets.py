"""Samples are what the policy would have seen in play, and nothing of the held-out episodes is trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.data.echo import ACTIONS, RAW, EchoEnv

from gameagent.contract import ActionSpace, ObsPart, ObsSpace, Part
from gameagent.data.datasets import TAIL_GAP, FrameDataset, Split, as_played, majority_accuracy
from gameagent.data.episodes import EpisodeError, EpisodeStore
from gameagent.envs.wrappers import frame_transforms

MakeStore = Callable[..., EpisodeStore]


def recorded(folder: Path, lengths: Sequence[int]) -> EpisodeStore:
    """Episode e shows 50·e + t in step t."""
    store = EpisodeStore.create(folder / "e.zarr", obs_space=RAW, action_space=ACTIONS, env={}, source={})
    for e, length in enumerate(lengths):
        writer = store.writer(seed=e)
        for t in range(length):
            writer.add({"frame": np.full((8, 8, 3), 50 * e + t, np.uint8)}, t % 4, 0.0, label=(t + 1) % 4)
        writer.finish(score=0)
    return store


def shown(data: FrameDataset) -> list[list[int]]:
    """The numbers that each sample's stacked frames show, oldest first."""
    return data.parts["frame"][:, 0, 0, ::3].tolist()


def test_without_transforms_samples_are_the_raw_frames_and_the_labels(tmp_path: Path) -> None:
    data = FrameDataset.load(recorded(tmp_path, (3, 2)), EchoEnv())
    assert shown(data) == [[0], [1], [2], [50], [51]]
    assert data.labels.tolist() == [1, 2, 3, 1, 2]
    assert data.episode.tolist() == [0, 0, 0, 1, 1]
    assert (data.obs_space, data.action_space, data.parts["frame"].dtype) == (RAW, ACTIONS, torch.uint8)


def test_a_stack_looks_back_by_the_frame_skip_and_repeats_the_first_frame(tmp_path: Path) -> None:
    data = FrameDataset.load(recorded(tmp_path, (6, 2)), EchoEnv(frame_skip=2, frame_stack=3))
    assert shown(data) == [
        [0, 0, 0],
        [1, 1, 1],
        [0, 0, 2],
        [1, 1, 3],
        [0, 2, 4],
        [1, 3, 5],
        [50, 50, 50],  # nothing of the episode before
        [51, 51, 51],
    ]


@given(
    length=st.integers(1, 23),
    skip=st.integers(1, 5),
    stack=st.integers(1, 4),
    size=st.sampled_from([None, 4]),
    seed=st.integers(0, 99),
)
def test_every_frame_skip_th_sample_is_what_the_live_env_shows(
    length: int, skip: int, stack: int, size: int | None, seed: int
) -> None:
    frames = np.random.default_rng(seed).integers(0, 256, (length, 8, 8, 3), np.uint8)
    seen = as_played({"frame": frames}, frame_transforms(RAW, size=size, grey=False, stack=stack), skip)["frame"]
    assert len(seen) == length
    live = frame_transforms(RAW, size=size, grey=False, stack=stack)
    for start in range(0, length, skip):
        now = {"frame": frames[start : start + 1]}
        for transform in live:
            now = transform(now, np.array([start == 0]))
        np.testing.assert_array_equal(seen[start], now["frame"][0])


def test_features_go_along(tmp_path: Path) -> None:
    space = ObsSpace({"frame": ObsPart(Part.frame, (8, 8, 3)), "features": ObsPart(Part.features, (1,))})
    store = EpisodeStore.create(
        tmp_path / "s", obs_space=space, action_space=ActionSpace(move_labels="ab"), env={}, source={}
    )
    writer = store.writer(seed=0)
    for t in range(3):
        parts = {"frame": np.full((8, 8, 3), t, np.uint8), "features": np.array([t / 2], np.float32)}
        writer.add(parts, 0, 0.0)
    writer.finish(score=0)
    data = FrameDataset.load(store, EchoEnv(frame_size=4, frame_stack=2))
    assert data.obs_space["frame"].shape == (4, 4, 6)
    assert data.parts["features"].tolist() == [[0.0, 0.0], [0.0, 0.5], [0.5, 1.0]]
    assert data.parts["features"].dtype == torch.float32


def test_an_empty_store_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match=r"no complete episode[\s\S]*job=collect"):
        FrameDataset.load(recorded(tmp_path, ()), EchoEnv())


class TestSplit:
    """Leakage: nothing of what is held out, nor its neighbours, may be trained on."""

    @given(lengths=st.lists(st.integers(1, 6), min_size=2, max_size=12), fraction=st.floats(0.01, 0.95))
    def test_by_episode_shares_no_episode(self, lengths: list[int], fraction: float) -> None:
        data = fake(lengths)
        train, val = data.split(fraction)
        assert not set(data.episode[train]) & set(data.episode[val])
        assert sorted([*train, *val]) == list(range(len(data)))
        wanted = min(max(1, round(fraction * len(lengths))), len(lengths) - 1)
        assert len(set(data.episode[val])) == wanted

    @given(lengths=st.lists(st.integers(60, 90), min_size=1, max_size=3), fraction=st.floats(0.01, 0.3))
    def test_by_tail_keeps_a_gap_in_every_episode(self, lengths: list[int], fraction: float) -> None:
        data = fake(lengths)
        train, val = data.split(fraction, Split.tail)
        for number, length in enumerate(lengths):
            mine, theirs = train[data.episode[train] == number], val[data.episode[val] == number]
            assert len(theirs) == max(1, round(fraction * length))
            assert mine.max() + TAIL_GAP < theirs.min()
            assert theirs.max() == np.flatnonzero(data.episode == number).max()

    def test_auto_takes_the_tail_of_a_single_episode(self) -> None:
        train, val = fake([100]).split(0.1)
        assert (train[-1], val[0], len(val)) == (100 - 10 - TAIL_GAP - 1, 90, 10)

    def test_a_tail_never_looks_back_into_the_training_part(self, tmp_path: Path) -> None:
        data = FrameDataset.load(recorded(tmp_path, (200,)), EchoEnv(frame_stack=4, frame_skip=16))
        train, val = data.split(0.1, Split.tail)
        assert train.max() < val.min() - 3 * 16 == 200 - 20 - 3 * 16

    def test_held_out_episodes_are_spread_over_the_store(self) -> None:
        data = fake([1] * 10)
        assert data.episode[data.split(0.2)[1]].tolist() == [4, 9]

    def test_nothing_is_held_out_where_nothing_is_wanted(self) -> None:
        train, val = fake([3, 4]).split(0.0)
        assert (len(train), len(val)) == (7, 0)

    @pytest.mark.parametrize(("lengths", "how"), [([5], Split.episode), ([20], Split.auto)])
    def test_too_little_data_says_what_to_type(self, lengths: list[int], how: Split) -> None:
        with pytest.raises(EpisodeError, match=r"nothing to train on[\s\S]*val_fraction=0"):
            fake(lengths).split(0.1, how)


def fake(lengths: Sequence[int]) -> FrameDataset:
    """Samples without pictures."""
    episode = np.repeat(np.arange(len(lengths)), lengths)
    return FrameDataset(RAW, ACTIONS, {}, torch.zeros(len(episode), dtype=torch.int64), episode)


def test_majority_baseline() -> None:
    labels = torch.tensor([2, 2, 1, 2, 1, 1, 1])
    assert majority_accuracy(labels, np.arange(4), np.arange(4, 7)) == 0.0
    assert majority_accuracy(labels, np.arange(4), np.arange(3, 7)) == 0.25
    assert np.isnan(majority_accuracy(labels, np.arange(7), np.arange(0)))
