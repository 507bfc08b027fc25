"""Turns `job.policy=PATH|expert|random` into somebody who plays.

who = find_player("outputs/catch_ppo/…", Argmax(), seed=0); play(env, who.actor, seeds)
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gameagent.component import to_config
from gameagent.envs.base import Env
from gameagent.errors import UserError
from gameagent.evaluation.protocol import OnStep, Step, play
from gameagent.evaluation.summary import Summary, summarise
from gameagent.jobs.progress import Bar
from gameagent.policies.actors import Actor, ExpertActor, PolicyActor, RandomActor
from gameagent.policies.base import Infers
from gameagent.policies.bundle import find_policy, load_policy
from gameagent.policies.card import PolicyFileError
from gameagent.policies.samplers import Sampler

EXPERT, RANDOM = "expert", "random"
"""Players that need no file."""


@dataclass(frozen=True)
class Player:
    """Somebody who plays."""

    label: str
    """For people."""
    actor: Actor
    mode: str
    """How actions are chosen: part of every result."""
    policy: Infers | None = None
    path: Path | None = None
    """File of the policy."""


def find_player(spec: str, sampler: Sampler, *, seed: int, label: str | None = None) -> Player:
    """The player that `spec` names.

    Args:
        spec: a policy file, a run folder that holds one, `expert` or `random`.
        sampler: how actions are chosen from a policy's distribution.
        seed: of the player's own random numbers.
        label: what people call it; None takes a name from the path.

    Raises:
        UserError: nothing usable there.
    """
    if spec == EXPERT:
        return Player(label or EXPERT, ExpertActor(), EXPERT)
    if spec == RANDOM:
        return Player(label or RANDOM, RandomActor(seed), RANDOM)
    try:
        path = find_policy(spec)
        policy = load_policy(path)
    except (FileNotFoundError, PolicyFileError) as e:
        raise UserError(f"{e}\nBesides a path, a player may be {EXPERT!r} (built into the game) or {RANDOM!r}") from e
    return Player(label or label_of(path), PolicyActor(policy, sampler, seed), mode_of(sampler), policy, path)


def evaluate(env: Env, player: Player, seeds: Sequence[int], *, num_envs: int | None = None) -> Summary:
    """Play the episodes of an evaluation, with a progress bar.

    Args:
        env: the environment's component.
        player: who plays.
        seeds: one each episode.
        num_envs: how many at once; None for the env's own number, never more than episodes.
    """
    batch = env.make(num_envs=min(env.num_envs if num_envs is None else num_envs, len(seeds)))
    try:
        with watched(player, len(seeds)) as on_step:
            results = play(batch, player.actor, seeds, on_step)
    finally:
        batch.close()
    path = None if player.path is None else str(player.path)
    return summarise(results, player=player.label, mode=player.mode, path=path, env=to_config(env))


@contextmanager
def watched(player: Player, episodes: int) -> Iterator[OnStep]:
    """A progress bar over the episodes that are being played, with steps/s."""
    began = time.monotonic()
    steps = done = 0
    with Bar(episodes, "episodes") as bar:

        def on_step(step: Step) -> None:
            nonlocal steps, done
            steps += int((step.episode >= 0).sum())
            done += len(step.finished)
            bar.update(done, f"{player.label}  {steps / max(time.monotonic() - began, 1e-9):,.0f} steps/s")

        yield on_step


def held_out(seed: int, episodes: int) -> list[int]:
    """Seeds of an evaluation: `seed`, `seed` + 1, …: the same for every policy, and apart from those of training."""
    return list(range(seed, seed + episodes))


def mode_of(sampler: Sampler) -> str:
    """A sampler in words: `argmax`, `temperature(temperature=0.5)`."""
    plain = to_config(sampler)
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", plain.pop("_target_").rpartition(".")[2]).lower()
    return f"{name}({', '.join(f'{k}={v}' for k, v in plain.items())})" if plain else name


def label_of(path: Path) -> str:
    """A short name for a policy file: its own, or that of the stage or experiment whose folder it lies in."""
    if path.stem not in ("policy", "last", "previous"):
        return path.stem
    folder = path.resolve().parent
    folder = folder.parent if folder.name == "checkpoints" else folder
    stage = re.fullmatch(r"\d+_(.+)", folder.name)
    name = stage[1] if stage else folder.parent.name if re.match(r"\d{4}-\d\d-\d\d", folder.name) else folder.name
    return f"{name} (onnx)" if path.suffix == ".onnx" else name
