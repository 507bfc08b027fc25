"""`job=collect`: plays episodes and records them as `episodes.zarr` in the run folder.

    python run.py job=collect env=catch job.collector=expert job.episodes=20
    python run.py job=collect env=catch job.collector=plain job.source=my_recordings

Every frame of the raw game is recorded, before any skipping, resizing or stacking, so that one recording serves
policies of all kinds. A policy that plays sees the game through its environment's transforms, every `frame_skip`-th
frame, and holds its actions in between. Episode j is the same whatever `num_envs` is. `job.resume=RUN` goes on with a
run that was killed or stopped, and `job.resume=RUN job.episodes=50` adds to one, by another player too if you like.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from gameagent.component import component, to_config
from gameagent.contract import BoolArray, IntArray, Obs, check_spaces
from gameagent.data.episodes import STORE_NAME, EpisodeStore
from gameagent.data.plain import export_plain, import_plain
from gameagent.data.writer import EpisodeWriter
from gameagent.envs.base import Env, VectorEnv
from gameagent.errors import Interrupted, UserError
from gameagent.evaluation.protocol import Step, play
from gameagent.evaluation.stats import mean_interval
from gameagent.experiment import Experiment, Job
from gameagent.jobs.players import find_player
from gameagent.jobs.progress import Bar
from gameagent.jobs.screen import say
from gameagent.policies.actors import Actor, ExpertActor, RandomActor
from gameagent.policies.samplers import Argmax, Sampler

FIRST_SEED, SEEDS, SEEDS_A_RUN = 1_000_000, 1_000_000, 10_000
"""Recorded episodes have seeds in [FIRST_SEED, FIRST_SEED + SEEDS); evaluation plays others. An experiment seed owns a
block of SEEDS_A_RUN of them."""
PLAIN_FOLDER = "plain"


class Collector(StrEnum):
    """Who plays."""

    expert = "expert"
    """The expert built into the game."""
    random = "random"
    """Chance."""
    policy = "policy"
    """The policy of job.policy."""
    plain = "plain"
    """Nobody: recordings in the plain form are read from job.source."""


@component
class Collect(Job):
    """Record episodes."""

    collector: Collector = Collector.expert
    """Who plays: expert, random, policy, or plain (reads recordings from job.source)."""
    episodes: Annotated[int, Field(gt=0)] = 10
    """Episodes that the store shall hold in the end."""
    num_envs: Annotated[int, Field(gt=0)] = 8
    """Games played side by side. Changes speed and memory (up to 16 MB each), never what is recorded."""
    noise: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Chance, each frame, that a random action is played instead of the player's, which stays the label: the recording
    then shows how to recover from mistakes."""
    policy: str | None = None
    """Policy that plays with collector=policy: a file or a run folder."""
    sampler: Sampler = field(default_factory=Argmax)
    """How that policy's actions are chosen."""
    source: str | None = None
    """Folder in the plain form (action.jsonl, labels.json, frames) to read with collector=plain."""
    resume: str | None = None
    """Run folder to go on with: plays the episodes that it lacks, as now configured; null: begin anew."""
    export_plain: bool = False
    """Write the plain form too, into the folder plain/ of the run."""

    def run(self, experiment: Experiment) -> dict[str, Any]:
        """Record. Gives episodes, frames and mean score with its interval.

        Raises:
            UserError: a setting or the store doesn't fit, or the folder can't be written.
            Interrupted: Ctrl-C; complete episodes are kept.
        """
        path = experiment.run_dir / STORE_NAME
        try:
            plain = self.collector is Collector.plain
            store = self._read(path) if plain else self._record(experiment)
            if self.export_plain:
                shutil.rmtree(experiment.run_dir / PLAIN_FOLDER, ignore_errors=True)
                export_plain(store, experiment.run_dir / PLAIN_FOLDER)
        except OSError as e:
            raise UserError(
                f"{path} can't be written ({e.strerror or e}). Complete episodes are kept: make room and go on with "
                f"job.resume={experiment.run_dir}, or give another folder with out=PATH"
            ) from e
        return _report(store)

    def _read(self, path: Path) -> EpisodeStore:
        if self.source is None:
            raise UserError(
                "job.collector=plain reads recordings: job.source=FOLDER (action.jsonl, labels.json, frames)"
            )
        return EpisodeStore.open(path) if self.resume and path.exists() else import_plain(self.source, path)

    def _record(self, experiment: Experiment) -> EpisodeStore:
        """Play the episodes that are missing."""
        env = experiment.env.raw().make(num_envs=min(self.num_envs, self.episodes), seed=experiment.seed)
        player: Player | None = None
        try:
            source = self._source(experiment)
            store = self._store(experiment, env, source)
            todo = self._todo(store)
            player = Player(self._actor(experiment.env), self.noise, env.num_envs)
            if todo:
                seeds = [_seed(experiment.seed, index) for index in todo]
                Recording(store, player, todo, seeds, source).play(env)
        finally:
            env.close()
            if player is not None:
                player.close()
        return store

    def _source(self, experiment: Experiment) -> dict[str, Any]:
        """What decides the recording, in plain form: the same source plays the same episodes."""
        source = {"collector": self.collector.value, "noise": self.noise, "seed": experiment.seed}
        source |= {"episodes": self.episodes}
        if self.collector is Collector.policy:
            source |= {"policy": str(self.policy), "sampler": to_config(self.sampler), "env": to_config(experiment.env)}
        return source

    def _store(self, experiment: Experiment, env: VectorEnv, source: dict[str, Any]) -> EpisodeStore:
        """The store to record into: a new one, or one that was begun before."""
        path = experiment.run_dir / STORE_NAME
        if not path.exists():
            return EpisodeStore.create(
                path,
                obs_space=env.obs_space,
                action_space=env.actions,
                env=to_config(experiment.env.raw()),
                source=source,
                fps=float(env.metadata.get("render_fps", 30)),
            )
        store = EpisodeStore.open(path)
        check_spaces(str(path), (env.obs_space, env.actions), (store.obs_space, store.action_space))
        if self.resume is None and store.source != source:
            raise UserError(
                f"{path} exists already and was recorded otherwise:\n  there {store.source}\n  now   {source}\n"
                f"To add to it type job.resume={experiment.run_dir}; else give another folder with out=PATH"
            )
        store.clear_leftovers()
        return store

    def _todo(self, store: EpisodeStore) -> list[int]:
        """Numbers of the episodes to play."""
        there = {episode.index for episode in store.episodes}
        return [index for index in range(self.episodes) if index not in there]

    def _actor(self, env: Env) -> Actor:
        if self.collector is Collector.expert:
            return ExpertActor()
        if self.collector is Collector.random:
            return RandomActor()
        if self.policy is None:
            raise UserError("job.collector=policy needs to know which: job.policy=PATH")
        return Skipping(find_player(self.policy, self.sampler, seed=0).actor, env)


class Skipping(Actor):
    """Lets an actor that was made for `env` play its raw game.

    It looks every `frame_skip` frames, through `env`'s transforms, and its action is held in between.

    Args:
        actor: plays `env`.
        env: the environment component.
    """

    def __init__(self, actor: Actor, env: Env) -> None:
        super().__init__()
        self._actor, self._env = actor, env
        self._skip = env.frame_skip
        self._facade = env.make(num_envs=1)  # what the actor believes to play; asked for its spaces, never stepped
        self._transforms: Sequence[Any] = ()
        self._fresh = np.zeros(0, bool)
        self._frame = self._held = np.zeros(0, np.int64)
        self._seen: Obs = {}

    def begin(self, rows: BoolArray, seeds: Sequence[int]) -> None:
        """These rows look at their next frame, as at the first of an episode."""
        self._actor.begin(rows, seeds)
        if len(self._frame) != len(rows):
            self._frame, self._held = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
            self._fresh, self._transforms = np.ones(len(rows), bool), ()
        self._frame[rows], self._fresh[rows] = 0, True

    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        """Flat actions (N,)."""
        due = self._frame % self._skip == 0
        self._frame += 1
        if due.any():
            self._look(obs, env, np.flatnonzero(due))
            self._held = np.where(due, self._actor.act(self._seen, self._facade), self._held)
        return self._held.copy()

    def _look(self, obs: Obs, env: VectorEnv, rows: IntArray) -> None:
        """Bring what the actor sees in `rows` up to date."""
        if not self._seen:
            self._transforms = self._env.transforms(env.obs_space)
            self._seen = self._facade.obs_space.empty(env.num_envs)
        now = {name: part[rows] for name, part in obs.items()}
        some = rows if len(rows) < env.num_envs else None
        for transform in self._transforms:
            now = transform(now, self._fresh[rows], some)
        for name, part in self._seen.items():
            part[rows] = now[name]
        self._fresh[rows] = False

    def close(self) -> None:
        """Free the environment that stood for its spaces."""
        self._facade.close()


class Player(Actor):
    """Plays what another actor wants, now and then something else, and remembers what was wanted.

    Args:
        actor: whose wishes are the labels.
        noise: chance of a random action instead.
        num_envs: rows of the batch.
    """

    def __init__(self, actor: Actor, noise: float, num_envs: int) -> None:
        super().__init__()
        self._actor, self._noise = actor, noise
        self.wanted: IntArray = np.zeros(num_envs, np.int64)
        """(N,) what the actor wanted at the last step."""
        self.seen: Obs = {}
        """What it looked at then, a copy: an environment may write the next observation over it."""

    def begin(self, rows: BoolArray, seeds: Sequence[int]) -> None:
        """Random numbers of the noise are the episode's own, too."""
        super().begin(rows, seeds)
        self._actor.begin(rows, seeds)

    def act(self, obs: Obs, env: VectorEnv) -> IntArray:
        """Flat actions (N,)."""
        self.seen = {name: part.copy() for name, part in obs.items()}
        self.wanted = self._actor.act(obs, env)
        if self._noise == 0:
            return self.wanted
        played = self.wanted.copy()
        for i, rng in enumerate(self.streams):
            if rng.random() < self._noise:
                played[i] = rng.integers(env.actions.n)
        return played

    def close(self) -> None:
        """Free what the actor holds."""
        if isinstance(self._actor, Skipping):
            self._actor.close()


class Recording:
    """Writes what is played into a store, one writer for each episode under way.

    Args:
        store: where to.
        player: who plays.
        todo: numbers of the episodes in the store.
        seeds: of each.
        source: who plays, in plain form.
    """

    def __init__(
        self, store: EpisodeStore, player: Player, todo: Sequence[int], seeds: Sequence[int], source: dict[str, Any]
    ) -> None:
        self._store, self._player, self._source = store, player, source
        self._todo, self._seeds = todo, seeds
        self._writers: dict[int, EpisodeWriter] = {}
        self._scores: list[float] = []

    def play(self, env: VectorEnv) -> None:
        """Play and write all of them.

        Raises:
            Interrupted: Ctrl-C; complete episodes are kept, the others given up.
        """
        try:
            with Bar(len(self._todo), "episodes") as self._bar:
                play(env, self._player, self._seeds, on_step=self._step)
        except KeyboardInterrupt:
            done = len(self._scores)
            raise Interrupted(
                signal.SIGINT,
                f"stopped; {done} of {len(self._todo)} episodes were recorded; "
                f"to go on: python run.py job.resume={self._store.path.parent}",
            ) from None
        finally:
            for writer in self._writers.values():
                writer.discard()

    def _step(self, step: Step) -> None:
        for i, number in enumerate(step.episode.tolist()):
            if number < 0:
                continue
            if number not in self._writers:
                self._writers[number] = self._begin(number)
            writer = self._writers[number]
            seen = {name: part[i] for name, part in self._player.seen.items()}
            terms = {name: float(term[i]) for name, term in step.terms.items()}
            writer.add(seen, int(step.actions[i]), float(step.reward[i]), terms, int(self._player.wanted[i]))
            if number in step.finished:
                result = step.finished[number]
                writer.finish(score=result.score, terminated=result.terminated, truncated=not result.terminated)
                del self._writers[number]
                self._scores.append(result.score)
        self._bar.update(len(self._scores), f"mean score {np.mean(self._scores):.1f}" if self._scores else "")

    def _begin(self, number: int) -> EpisodeWriter:
        return self._store.writer(seed=self._seeds[number], index=self._todo[number], source=self._source)


def _seed(experiment_seed: int, index: int) -> int:
    """Of episode `index` of a store."""
    return FIRST_SEED + (experiment_seed * SEEDS_A_RUN + index) % SEEDS


def _report(store: EpisodeStore) -> dict[str, Any]:
    """Print what the store holds, and give it."""
    score = mean_interval([episode.score for episode in store.episodes])
    frames = sum(len(episode) for episode in store.episodes)
    say(f"{len(store)} episode{'s' * (len(store) != 1)}, {frames:,} frames, mean score {score} in {store.path}")
    return {
        "episodes": len(store),
        "frames": frames,
        "score": score.value,
        "score_low": score.low,
        "score_high": score.high,
    }
