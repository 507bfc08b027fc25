"""Recording: what was seen goes with what was played, whoever plays and however often it was interrupted."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.echo import ACTIONS, EchoEnv, EchoVectorEnv

from gameagent.contract import Array, IntArray
from gameagent.data.datasets import FrameDataset
from gameagent.data.episodes import EpisodeError, EpisodeStore
from gameagent.data.writer import EpisodeWriter
from gameagent.errors import Interrupted, UserError
from gameagent.evaluation.protocol import play
from gameagent.experiment import Experiment
from gameagent.jobs.collect import FIRST_SEED, Collect, Player
from gameagent.jobs.players import find_player
from gameagent.learn.trainer import Trainer
from gameagent.nets.encoders import Tiny
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.actors import ExpertActor
from gameagent.policies.bundle import save_policy
from gameagent.policies.samplers import Argmax


def experiment(folder: Path, env: EchoEnv | None = None, *, seed: int = 0, **job: Any) -> Experiment:
    """An experiment that records."""
    return Experiment(
        seed=seed,
        out=str(folder / "run"),
        env=env or EchoEnv(),
        policy=ActorCritic(encoder=Tiny()),
        job=Collect(**job),
        trainer=Trainer(),
    )


def record(folder: Path, env: EchoEnv | None = None, **job: Any) -> EpisodeStore:
    """What a run recorded."""
    experiment(folder, env, **job).run()
    return EpisodeStore.open(folder / "run")


def contents(store: EpisodeStore) -> list[tuple[Any, ...]]:
    """Everything in a store, comparable."""
    return [
        (
            *(e.index, e.seed, e.score, e.terminated, e.truncated, e.actions.tolist(), e.labels.tolist()),
            *(e.rewards.tolist(), e.obs()["frame"].tolist(), {k: v.tolist() for k, v in e.terms.items()}),
        )
        for e in store.episodes
    ]


def shown(frames: Array) -> list[int]:
    return [int(f[0, 0, 0]) for f in frames]


@pytest.mark.parametrize("job", [{}, {"collector": "random"}, {"noise": 0.5}])
def test_an_action_shows_in_the_next_frame_and_never_in_its_own(tmp_path: Path, job: dict[str, Any]) -> None:
    for episode in record(tmp_path, episodes=6, num_envs=4, **job).episodes:
        expected = [0, *(10 * (t + 1) + a + 1 for t, a in enumerate(episode.actions[:-1]))]
        assert shown(episode.obs()["frame"]) == expected
        np.testing.assert_array_equal(episode.rewards, episode.actions)
        np.testing.assert_array_equal(episode.terms["action"], episode.actions)


def test_episodes_carry_seed_length_score_and_ending(tmp_path: Path) -> None:
    result = experiment(tmp_path, seed=7, episodes=5).run()
    store = EpisodeStore.open(tmp_path / "run")
    for j, episode in enumerate(store.episodes):
        seed = FIRST_SEED + 70_000 + j
        length = 4 + seed % 5
        assert (episode.index, episode.seed, len(episode), episode.score) == (j, seed, length, length)
        assert (episode.terminated, episode.truncated) == (seed % 2 == 0, seed % 2 == 1)
        np.testing.assert_array_equal(episode.actions, (seed + np.arange(length)) % 4)
    assert store.env["_target_"].endswith("EchoEnv")
    assert store.source["collector"] == "expert"
    assert (result["episodes"], result["frames"], result["score"]) == (5, 30, 6.0)
    assert result["score_low"] < 6 < result["score_high"]


@pytest.mark.parametrize("job", [{}, {"collector": "random"}, {"noise": 0.5}])
def test_what_is_recorded_depends_on_the_seed_alone(tmp_path: Path, job: dict[str, Any]) -> None:
    stores = [record(tmp_path / str(n), episodes=7, num_envs=n, **job) for n in (1, 3, 16)]
    assert contents(stores[0]) == contents(stores[1]) == contents(stores[2])
    assert contents(record(tmp_path / "other", episodes=7, seed=1, **job)) != contents(stores[0])


def test_seeds_never_reach_those_of_evaluation(tmp_path: Path) -> None:
    for seed in (0, 99, 100, 12_345):
        assert 1_000_000 <= record(tmp_path / str(seed), seed=seed, episodes=1).episodes[0].seed < 2_000_000


def test_noise_plays_other_actions_but_keeps_the_experts_label(tmp_path: Path) -> None:
    store = record(tmp_path, episodes=30, noise=0.5)
    labels = np.concatenate([e.labels for e in store.episodes])
    actions = np.concatenate([e.actions for e in store.episodes])
    for e in store.episodes:
        np.testing.assert_array_equal(e.labels, (e.seed + np.arange(len(e))) % 4)
    assert (labels != actions).mean() == pytest.approx(0.5 * 3 / 4, abs=0.12)
    assert FrameDataset.load(store, EchoEnv()).labels.tolist() == labels.tolist()


class TestPolicy:
    """A policy sees every frame_skip-th frame through its env's transforms, and holds its actions in between."""

    env = EchoEnv(frame_skip=3, frame_stack=2)

    def saved(self, folder: Path) -> Path:
        torch.manual_seed(0)
        vector = self.env.make(1)
        made = ActorCritic(encoder=Tiny(patch=2, channels=(8,), width=16)).build(vector.obs_space, vector.actions)
        with torch.no_grad():  # so that its answers differ from frame to frame
            for parameter in made.actor_parameters():
                parameter.mul_(3)
        return save_policy(folder / "policy.safetensors", made)

    def test_plays_as_it_does_in_its_own_environment(self, tmp_path: Path) -> None:
        path = self.saved(tmp_path)
        store = record(tmp_path, self.env, episodes=5, num_envs=2, collector="policy", policy=str(path))
        for episode in store.episodes:
            chosen: list[int] = []
            actor = find_player(str(path), Argmax(), seed=0).actor
            play(
                self.env.make(1), actor, [episode.seed], on_step=lambda step, to=chosen: to.append(int(step.actions[0]))
            )
            assert episode.actions.tolist() == np.repeat(chosen, 3)[: len(episode)].tolist()
        assert len({tuple(e.actions) for e in store.episodes}) > 1

    def test_another_games_policy_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="made for another environment"):
            record(tmp_path, EchoEnv(), episodes=1, collector="policy", policy=str(self.saved(tmp_path)))

    @pytest.mark.parametrize(("policy", "message"), [(None, r"job\.policy=PATH"), ("nowhere", "no policy at nowhere")])
    def test_a_missing_policy_says_what_to_type(self, tmp_path: Path, policy: str | None, message: str) -> None:
        with pytest.raises(UserError, match=message):
            record(tmp_path, collector="policy", policy=policy)


class TestExistingStore:
    def test_the_same_command_changes_nothing(self, tmp_path: Path) -> None:
        before = contents(record(tmp_path, episodes=4))
        assert contents(record(tmp_path, episodes=4)) == before

    def test_another_command_is_refused_and_says_what_differs(self, tmp_path: Path) -> None:
        before = contents(record(tmp_path, episodes=4))
        with pytest.raises(UserError, match=r"recorded otherwise[\s\S]*'noise': 0\.3[\s\S]*job\.resume="):
            record(tmp_path, episodes=4, noise=0.3)
        assert contents(EpisodeStore.open(tmp_path / "run")) == before

    def test_resume_adds_episodes_of_new_seeds(self, tmp_path: Path) -> None:
        before = contents(record(tmp_path, episodes=3))
        store = record(tmp_path, episodes=5, collector="random", resume="run")
        assert contents(store)[:3] == before
        assert [e.seed - FIRST_SEED for e in store.episodes] == [0, 1, 2, 3, 4]
        assert [e.source["collector"] for e in store.episodes] == ["expert"] * 3 + ["random"] * 2

    def test_resume_of_nothing_begins_a_store(self, tmp_path: Path) -> None:
        assert len(record(tmp_path, episodes=2, resume="run")) == 2

    def test_resume_with_fewer_episodes_changes_nothing(self, tmp_path: Path) -> None:
        before = contents(record(tmp_path, episodes=3))
        assert contents(record(tmp_path, episodes=1, resume="run")) == before

    def test_another_games_store_is_refused(self, tmp_path: Path) -> None:
        store = record(tmp_path, episodes=1)
        file = store.path / "zarr.json"
        file.write_text(file.read_text().replace("dash", "jump"))
        with pytest.raises(ValueError, match="actions don't fit"):
            record(tmp_path, episodes=2, resume="run")


class Interrupt(EchoVectorEnv):
    """Ctrl-C after some steps."""

    left = 12

    def step(self, actions: IntArray) -> Any:
        Interrupt.left -= 1
        if Interrupt.left == 0:
            raise KeyboardInterrupt
        return super().step(actions)


def test_an_interrupted_recording_keeps_complete_episodes_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contents(record(tmp_path / "whole", episodes=7, num_envs=2))
    monkeypatch.setattr(
        EchoEnv, "make", lambda self, num_envs=None, seed=0, render_mode=None: Interrupt(self, num_envs)
    )
    with pytest.raises(Interrupted, match=r"of 7 episodes were recorded"):
        record(tmp_path, episodes=7, num_envs=2)
    store = EpisodeStore.open(tmp_path / "run")
    assert 0 < len(store) < 7
    assert not list(store.path.glob("unfinished-*"))
    assert contents(record(tmp_path, episodes=7, num_envs=2)) == whole


def test_a_game_without_an_expert_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no built-in expert[\s\S]*job\.collector=random"):
        record(tmp_path, EchoEnv(has_expert=False))


def test_a_place_that_cannot_be_written_says_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=r"can't be written[\s\S]*out=PATH"):
        record(tmp_path)


def test_a_full_disk_keeps_complete_episodes_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contents(record(tmp_path / "whole", episodes=4, num_envs=1))
    finish, left = EpisodeWriter.finish, [3]

    def full(self: EpisodeWriter, **ending: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finish(self, **ending)

    with monkeypatch.context() as patch:
        patch.setattr(EpisodeWriter, "finish", full)
        with pytest.raises(UserError, match=r"No space left on device[\s\S]*make room and go on with job\.resume="):
            record(tmp_path, episodes=4, num_envs=1)
    assert contents(EpisodeStore.open(tmp_path / "run")) == whole[:2]
    assert not list((tmp_path / "run" / "episodes.zarr").glob("unfinished-*"))
    assert contents(record(tmp_path, episodes=4, num_envs=1)) == whole


def test_the_plain_form_goes_out_and_comes_in(tmp_path: Path) -> None:
    store = record(tmp_path, episodes=3, noise=0.5, export_plain=True)
    again = record(tmp_path / "again", collector="plain", source=str(tmp_path / "run" / "plain"))
    assert contents(again) == contents(store)
    resumed = record(tmp_path, episodes=4, noise=0.5, export_plain=True, resume="run")
    assert len(list((tmp_path / "run" / "plain" / "frames").iterdir())) == len(resumed) == 4
    assert again.source == store.source
    lines = (tmp_path / "run" / "plain" / "action.jsonl").read_text().splitlines()
    assert len(lines) == sum(len(e) for e in resumed.episodes)
    assert json.loads(lines[0])["frame"] == "frames/000000/000000.png"


def test_reading_the_plain_form_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"job\.source=FOLDER"):
        record(tmp_path, collector="plain")
    with pytest.raises(EpisodeError, match=r"holds no labels\.json"):
        record(tmp_path, collector="plain", source=str(tmp_path / "nowhere"))


def test_the_player_copies_what_it_saw_before_the_environment_draws_over_it() -> None:
    env = EchoEnv().make(2)
    obs, _ = env.reset(seed=[0, 1])
    player = Player(ExpertActor(), noise=0.0, num_envs=2)
    player.begin(np.ones(2, bool), [0, 1])
    env.step(player.act(env.obs_space.as_parts(obs), env))
    assert shown(player.seen["frame"]) == [0, 0]
    assert (player.wanted < ACTIONS.n).all()
