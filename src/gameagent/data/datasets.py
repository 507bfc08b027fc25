"""Recorded episodes as training samples: what the policy would have seen at each step, and what the player did.

    data = FrameDataset.load(EpisodeStore.open(path), env); train, val = data.split(0.1)

The environment's own transforms run over the stored frames, so a sample is made by the same code as in play: with frame
skip k, the stored frames of an episode are read as k interleaved sequences (frames 0, k, 2k, …; 1, k+1, …; …), each
beginning afresh. Every stored frame is a sample; a stack looks back k frames at a time and repeats the first one at the
beginning, as a live environment does after its reset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor

from gameagent.contract import ActionSpace, BoolArray, IntArray, Obs, ObsSpace
from gameagent.data.episodes import EpisodeError, EpisodeStore
from gameagent.envs.base import Env, Transform


class Split(StrEnum):
    """How samples are held out. Never at random: neighbouring frames are nearly equal."""

    auto = "auto"
    """By episode; by tail where there is only one."""
    episode = "episode"
    """Whole episodes, spread evenly over the store."""
    tail = "tail"
    """The end of every episode."""


TAIL_GAP = 32
"""Samples left out, at least, between an episode's training part and its held-out tail: neighbours are nearly equal."""


@dataclass(frozen=True)
class FrameDataset:
    """Samples in memory, in the order of play."""

    obs_space: ObsSpace
    """Of one sample: what the policy sees."""
    action_space: ActionSpace
    parts: dict[str, Tensor]
    """Observation parts (n, *part shape), in their own dtypes."""
    labels: Tensor
    """Flat actions (n,) int64."""
    episode: IntArray
    """(n,) which episode each sample is from: its place in `store.episodes`."""
    look_back: int = 0
    """How many stored frames before its own a sample may hold; a tail's gap is at least as wide."""

    @classmethod
    def load(cls, store: EpisodeStore, env: Env) -> FrameDataset:
        """Read a whole store and see it through the environment's transforms.

        Args:
            store: where from.
            env: the environment that the policy plays; its `transforms` and `frame_skip` are used, it isn't made.

        Raises:
            EpisodeError: the store holds no complete episode, or one is damaged.
            ContractError: the transforms don't suit what was recorded.
        """
        episodes = store.episodes
        if not episodes:
            raise EpisodeError(f"{store.path} holds no complete episode. Collect some: python run.py job=collect env=…")
        space = _space_after(env.transforms(store.obs_space), store.obs_space)
        if "text" in space:
            raise EpisodeError(f"{store.path}: text observations don't go into frame batches; learn from other parts")
        bounds = np.cumsum([0, *(len(e) for e in episodes)])
        # Filled in place: the whole data set is held once, plus one raw episode.
        samples = space.empty(int(bounds[-1]))
        for start, end, episode in zip(bounds, bounds[1:], episodes, strict=False):
            seen = as_played(episode.obs(), env.transforms(store.obs_space), env.frame_skip)
            for name in space:
                samples[name][start:end] = seen[name]
        return cls(
            obs_space=space,
            action_space=store.action_space,
            parts={name: torch.from_numpy(samples[name]) for name in space},
            labels=torch.from_numpy(np.concatenate([e.labels for e in episodes])),
            episode=np.repeat(np.arange(len(episodes)), [len(e) for e in episodes]),
            look_back=(env.frame_stack - 1) * env.frame_skip,
        )

    def __len__(self) -> int:
        return len(self.labels)

    def split(self, val_fraction: float, how: Split = Split.auto) -> tuple[IntArray, IntArray]:
        """Numbers of the training samples and of the held-out ones.

        Args:
            val_fraction: share to hold out, in [0, 1); at least one episode (or one sample a tail) where above 0.
            how: see `Split`.

        Raises:
            EpisodeError: nothing would be left to train on.
        """
        everything = np.arange(len(self))
        if val_fraction == 0:
            return everything, everything[:0]
        count = int(self.episode.max()) + 1
        by_episode = count > 1 if how is Split.auto else how is Split.episode
        held, dropped = self._episodes(val_fraction, count) if by_episode else self._tails(val_fraction, count)
        train = everything[~held & ~dropped]
        if not len(train):
            raise EpisodeError(
                f"{len(self)} samples of {count} episode(s) leave nothing to train on with learner.split={how.value} "
                f"and learner.val_fraction={val_fraction}. Collect more, or type learner.val_fraction=0"
            )
        return train, everything[held]

    def _episodes(self, val_fraction: float, count: int) -> tuple[BoolArray, BoolArray]:
        chosen = min(max(1, round(val_fraction * count)), max(1, count - 1))
        # Spread over the store: later episodes may come from another player.
        numbers = np.round(np.linspace(0, count, chosen + 1)[1:]).astype(np.int64) - 1
        held: BoolArray = np.isin(self.episode, numbers)
        return held, np.zeros_like(held)

    def _tails(self, val_fraction: float, count: int) -> tuple[BoolArray, BoolArray]:
        held, dropped = np.zeros(len(self), bool), np.zeros(len(self), bool)
        gap = max(TAIL_GAP, self.look_back)
        for number in range(count):
            rows = np.flatnonzero(self.episode == number)
            begin = len(rows) - max(1, round(val_fraction * len(rows)))
            held[rows[begin:]] = True
            dropped[rows[max(0, begin - gap) : begin]] = True
        return held, dropped


def as_played(parts: Obs, transforms: Sequence[Transform], stride: int) -> Obs:
    """An episode's raw observations (T, …) -> what a policy sees at each of them (T, …).

    Args:
        parts: raw observation parts, one row a frame.
        transforms: fresh ones; they are used up.
        stride: frames between two looks of the policy (frame skip).
    """
    if not transforms:
        return parts
    length = len(next(iter(parts.values())))
    rows = min(stride, length)
    seen: list[Obs] = []
    for start in range(0, length, rows):
        # The last block is filled up with the last frame: a transform wants the same rows every time.
        frames = np.minimum(np.arange(start, start + rows), length - 1)
        now = {name: part[frames] for name, part in parts.items()}
        for transform in transforms:
            now = transform(now, np.full(rows, start == 0))
        seen.append(now)
    return {name: np.concatenate([block[name] for block in seen])[:length] for name in seen[0]}


def _space_after(transforms: Sequence[Transform], raw: ObsSpace) -> ObsSpace:
    return transforms[-1].space if transforms else raw


def majority_accuracy(labels: Tensor, train: IntArray, val: IntArray) -> float:
    """Accuracy on `val` of always answering the most frequent label of `train`; NaN where `val` is empty."""
    if not len(val):
        return float("nan")
    most = torch.bincount(labels[torch.from_numpy(train)]).argmax()
    return float((labels[torch.from_numpy(val)] == most).float().mean())
