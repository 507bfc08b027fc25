"""`job=record`: films a player's best, median and worst episode with what it thinks beside it; writes video.mp4.

python run.py job=record env=catch job.policy=outputs/catch_ppo/2026-01-31_12-00-00 'job.show=[best,worst]'
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from pydantic import Field

from gameagent.component import component
from gameagent.contract import Array
from gameagent.envs.base import Env, VectorEnv
from gameagent.errors import UserError
from gameagent.evaluation.film import HOLD, Pick, ReplayError, Trace, film, pick, trace_episodes
from gameagent.evaluation.video import write_video
from gameagent.experiment import Experiment, Job
from gameagent.jobs.players import Player, find_player, held_out, watched
from gameagent.jobs.progress import Bar
from gameagent.jobs.screen import say
from gameagent.policies.samplers import Argmax, Sampler

VIDEO = "video.mp4"
"""Of a run folder."""

Chosen = tuple[Trace, str]
"""An episode to show, and why."""


@component
class Record(Job):
    """Film a policy, the built-in expert or a random player."""

    policy: str = "expert"
    """Who plays: a policy file, a run folder that holds one, `expert` or `random`."""
    episodes: Annotated[int, Field(gt=0)] = 20
    """Episodes played (without pictures, so quickly) to choose from."""
    show: tuple[Pick, ...] = (Pick.best, Pick.median, Pick.worst)
    """Which of them the video shows, in this order: `best`, `median`, `worst`, `first`."""
    seconds: Annotated[float, Field(gt=0)] = 60.0
    """Length at which the video is cut."""
    seed: Annotated[int, Field(ge=0)] = 2_000_000
    """Seed of the first episode; the others follow."""
    sampler: Sampler = Argmax()
    """How actions are chosen from the policy's distribution."""
    scale: Annotated[int, Field(gt=0)] | None = None
    """Enlargement of the game's picture; null for about 448 rows."""
    label: str | None = None
    """What the video calls the player; null for a name from the path."""

    def run(self, experiment: Experiment) -> dict[str, float]:
        """Film. Gives the number of frames and the seconds of the video.

        Raises:
            UserError: no such player, nothing to show, or an environment that draws no pictures.
            ContractError: the policy was made for another environment.
        """
        if not self.show:
            raise UserError(f"job.show=[] shows nothing; choose among {', '.join(Pick)}")
        player = find_player(self.policy, self.sampler, seed=experiment.seed, label=self.label)
        chosen = pick(self._traces(experiment.env, player), self.show)
        try:
            frames, fps = self._film(experiment, experiment.env.raw(), chosen, player.label)
        except ReplayError:
            # Sticky actions, say, are drawn by the env itself: film it as the policy saw it, one picture a decision.
            frames, fps = self._film_as_seen(experiment, chosen, player.label)
        say(f"written: {experiment.run_dir / VIDEO} ({frames / fps:.0f} s)")
        return {"frames": frames, "seconds": frames / fps}

    def _traces(self, env: Env, player: Player) -> list[Trace]:
        """Play the episodes to choose from, all at once."""
        batch = env.make(num_envs=self.episodes)
        try:
            with watched(player, self.episodes) as on_step:
                return trace_episodes(batch, player.actor, held_out(self.seed, self.episodes), player.policy, on_step)
        finally:
            batch.close()

    def _film_as_seen(self, experiment: Experiment, chosen: list[Chosen], title: str) -> tuple[int, float]:
        try:
            return self._film(experiment, experiment.env, chosen, title)
        except ReplayError as e:
            raise UserError(f"{e}: this environment does not repeat itself, so it can't be filmed afterwards") from e

    def _film(self, experiment: Experiment, camera: Env, chosen: list[Chosen], title: str) -> tuple[int, float]:
        """Play the chosen episodes again before `camera`. Gives the number of frames and how many go by in a second."""
        repeat = experiment.env.frame_skip // camera.frame_skip
        env = camera.make(num_envs=1, render_mode="rgb_array")
        try:
            fps = float(env.metadata["render_fps"]) / env.frames_per_step
            most = max(1, round(self.seconds * fps))
            total = sum(len(trace.actions) * repeat + round(HOLD * fps) for trace, _ in chosen)
            with Bar(min(most, total), "frames") as bar:
                shots = islice(self._shots(env, chosen, repeat, title, fps), most)
                return write_video(experiment.run_dir / VIDEO, _counted(shots, bar), fps), fps
        except ValueError as e:
            raise UserError(str(e)) from e
        finally:
            env.close()

    def _shots(self, env: VectorEnv, chosen: list[Chosen], repeat: int, title: str, fps: float) -> Iterator[Array]:
        for trace, why in chosen:
            yield from film(env, trace, repeat=repeat, title=title, why=why, scale=self.scale, fps=fps)


def _counted(frames: Iterator[Array], bar: Bar) -> Iterator[Array]:
    for i, frame in enumerate(frames):
        yield frame
        bar.update(i + 1, "filming")
