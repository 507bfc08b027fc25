"""`job=record` writes a video of the episodes that were asked for."""

from __future__ import annotations

from pathlib import Path

import av
import pytest
from tests.evaluation.fakes import LONG, Lottery

from gameagent.errors import UserError
from gameagent.evaluation.film import Pick
from gameagent.jobs.record import Record


def frames_of(path: Path) -> tuple[int, float]:
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0)), float(container.streams.video[0].average_rate)


@pytest.mark.parametrize("player", ["policy", "expert", "random"])
def test_anybody_can_be_filmed(experiment, policy_file: Path, tmp_path: Path, player: str) -> None:
    spec = str(policy_file) if player == "policy" else player
    outcome = experiment(Record(policy=spec, episodes=6)).run()
    frames, fps = frames_of(tmp_path / "run" / "video.mp4")
    assert (frames, fps) == (outcome["frames"], 30)
    assert outcome["seconds"] == pytest.approx(frames / 30)


def test_frame_skip_does_not_make_the_video_jerky(experiment, tmp_path: Path) -> None:
    outcome = experiment(Record(episodes=9, show=(Pick.best,)), env=Lottery(frame_skip=4)).run()
    assert frames_of(tmp_path / "run" / "video.mp4") == (LONG + 24, 30)
    assert outcome["seconds"] == pytest.approx((LONG + 24) / 30)


def test_sticky_actions_are_filmed_as_the_policy_saw_them(experiment, tmp_path: Path) -> None:
    job = Record(policy="random", episodes=9, show=(Pick.best,))
    experiment(job, env=Lottery(frame_skip=4, sticky=0.5)).run()
    assert frames_of(tmp_path / "run" / "video.mp4") == (LONG // 4 + 6, 7.5)


def test_a_video_is_cut_at_its_length(experiment, tmp_path: Path) -> None:
    experiment(Record(episodes=9, seconds=0.5)).run()
    assert frames_of(tmp_path / "run" / "video.mp4")[0] == 15


def test_an_unrepeatable_environment_is_an_error_that_says_so(experiment, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not repeat itself"):
        experiment(Record(episodes=3), env=Lottery(jitter=1.0)).run()
    assert not list((tmp_path / "run").glob("*"))


def test_showing_nothing_is_refused(experiment) -> None:
    with pytest.raises(UserError, match="choose among best, median, worst, first"):
        experiment(Record(show=())).run()
