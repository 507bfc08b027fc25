"""`job=train`: lets a learner train a policy and saves the result as policy.safetensors.

python run.py +experiment=catch_ppo; python run.py job.resume=outputs/catch_ppo/2026-01-31_12-00-00
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import Logger

from gameagent.component import component, to_config
from gameagent.config.files import Change, diff
from gameagent.contract import check_spaces
from gameagent.errors import Interrupted, UserError
from gameagent.experiment import Experiment, Job
from gameagent.jobs.provenance import provenance
from gameagent.learn.base import LearnerModule
from gameagent.learn.callbacks import SHOWN, StopCallback, find_checkpoint
from gameagent.policies.base import Policy
from gameagent.policies.bundle import load_policy, save_policy
from gameagent.policies.card import PolicyFileError

POLICY = "policy.safetensors"
"""Of a run folder."""
FIXED = ("env", "policy", "learner._target_")
"""Parts of a configuration that a checkpoint fits only if they are as they were."""
FREE = ("out", "job", "name")
"""Parts that say nothing about training."""


@component
class Train(Job):
    """Train a policy with the experiment's learner."""

    resume: str | None = None
    """Run folder to go on from (its last checkpoint, or the one before it where that is broken); null: begin anew."""

    def run(self, experiment: Experiment) -> dict[str, float]:
        """Train. Gives the last metrics.

        Raises:
            UserError: no learner, a checkpoint that doesn't fit or can't be read, a folder that can't be written.
            Interrupted: a signal stopped it, after a checkpoint.
        """
        if experiment.learner is None:
            raise UserError("job=train needs a learner, got none; type learner=ppo or learner=sft")
        config = to_config(experiment)
        path, checkpoint = self._checkpoint(config)
        torch.manual_seed(experiment.seed)
        policy = build_policy(experiment)
        if checkpoint is None and experiment.learner.init_from is not None:
            start_from(experiment.learner.init_from, policy)
        module = experiment.learner.module(env=experiment.env, policy=policy, seed=experiment.seed)
        module.run_config = config
        resume_step = None if checkpoint is None else int(checkpoint["env_steps"])
        callbacks = [spec.build(run_dir=experiment.run_dir) for spec in experiment.callbacks.values()]
        trainer = experiment.trainer.build(
            run_dir=experiment.run_dir,
            max_epochs=module.max_epochs,
            loggers=build_loggers(experiment, config, resume_step),
            callbacks=callbacks,
        )
        fit(trainer, module, path)
        return self._finish(experiment, callbacks, module)

    def _checkpoint(self, config: Mapping[str, Any]) -> tuple[Path | None, dict[str, Any] | None]:
        """What to go on from: path and contents, or (None, None)."""
        if self.resume is None:
            return None, None
        given = Path(self.resume)
        if not given.exists():
            raise UserError(
                f"job.resume={given}: there is no such folder; give the run folder of the run to go on with"
            )
        path = find_checkpoint(given) if given.is_dir() else given
        if path is None:
            say(f"{given} has no checkpoint yet: starting from the beginning")
            return None, None
        path, checkpoint = read_newest(path)
        compare(checkpoint["config"], config, path)
        say(f"resuming from {path} at {checkpoint['env_steps']:,} steps")
        return path, checkpoint

    def _finish(self, experiment: Experiment, callbacks: list[pl.Callback], module: LearnerModule) -> dict[str, float]:
        """Save the policy, unless a signal stopped the training: then say how to go on."""
        stopped = next((c.signum for c in callbacks if isinstance(c, StopCallback) and c.signum is not None), None)
        if stopped is not None:
            kept = find_checkpoint(experiment.run_dir) is not None
            way_on = (
                f"to go on: python run.py job.resume={experiment.run_dir}"
                if kept
                else "it kept no checkpoint to go on from; callbacks=[checkpoint,progress,stop] keeps one"
            )
            name = signal.Signals(stopped).name
            raise Interrupted(stopped, f"stopped at {module.env_steps:,} steps by {name}; {way_on}")
        path = experiment.run_dir / POLICY
        origin = provenance(experiment, env_steps=module.env_steps)
        try:
            save_policy(path, module.final_policy(), provenance=origin)
        except OSError as e:
            raise UserError(
                f"{path} can't be written ({e.strerror or e}); the last checkpoint holds the policy too"
            ) from e
        done, _, unit = module.progress()
        told = "".join(f", {SHOWN[n]} {x:.4g}" for n, x in module.last_metrics.items() if n in SHOWN)
        say(f"trained on {done:,} {unit}{told}; written: {path}")
        return {"env_steps": module.env_steps, **module.last_metrics}


def build_policy(experiment: Experiment) -> Policy:
    """A policy with fresh weights for the experiment's environment. One environment is made to ask for its spaces."""
    env = experiment.env.make(num_envs=1, seed=experiment.seed)
    try:
        return experiment.policy.build(env.obs_space, env.actions)
    finally:
        env.close()


def start_from(source: str, policy: Policy) -> None:
    """Load actor and critic weights of another policy into this one.

    Raises:
        ContractError: it was made for other spaces.
        UserError: it can't be read, is an ONNX file, or its network is another one.
    """
    try:
        found = load_policy(source)
    except (PolicyFileError, OSError) as e:
        raise UserError(f"learner.init_from={source}: {e}") from e
    if not isinstance(found, Policy):
        raise UserError(
            f"learner.init_from={source}: an ONNX file can't be trained further; give the .safetensors file"
        )
    expected = (policy.obs_space, policy.action_space)
    check_spaces(f"learner.init_from={source}", expected, (found.obs_space, found.action_space))
    try:
        policy.load_state_dict(found.state_dict())
    except RuntimeError as e:
        changes = diff(to_config(found.architecture), to_config(policy.architecture))
        told = "\n  ".join(f"policy.{c.key}: {c.old} in the file, {c.new} here" for c in changes) or str(e)
        raise UserError(
            f"learner.init_from={source}: its network is another one; give the same policy:\n  {told}"
        ) from e
    say(f"starting from {source}: actor and critic weights loaded")


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A learner's checkpoint. Nothing in it is executed.

    Raises:
        UserError: it is none, or was cut short.
    """
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        return {"env_steps": checkpoint["env_steps"], "config": checkpoint["config"]}
    except Exception as e:  # torch and zipfile raise a dozen kinds for a file cut short
        raise UserError(f"{path} is no checkpoint of a learner, or was cut short ({type(e).__name__})") from e


def read_newest(path: Path) -> tuple[Path, dict[str, Any]]:
    """A checkpoint, or where it is broken the one kept before it: which one it was, and its contents.

    Raises:
        UserError: neither can be read.
    """
    older = path.with_name("previous.ckpt")
    try:
        return path, read_checkpoint(path)
    except UserError as e:
        if path == older or not older.is_file():
            raise UserError(f"{e}; there is no other one: train anew, without job.resume") from e
        try:
            checkpoint = read_checkpoint(older)
        except UserError as also:
            raise UserError(f"{e}; {also}; there is no other one: train anew, without job.resume") from also
        say(f"{e}: going on from the one before it")
        set_aside(path)
        return older, checkpoint


def set_aside(path: Path) -> None:
    """Rename a broken checkpoint to broken.ckpt: the next one would else be kept beside it instead of a good one."""
    with suppress(OSError):  # a folder that can't be written is noticed, with advice, when training begins
        path.replace(path.with_name("broken.ckpt"))


def compare(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    """Print what differs from the configuration that a checkpoint was trained with.

    Raises:
        UserError: the checkpoint doesn't fit what was changed.
    """
    changes = [c for c in diff(old, new) if c.key.partition(".")[0] not in FREE]
    forbidden = [c for c in changes if _is_fixed(c)]
    if forbidden:
        told = "\n  ".join(f"{c.key}: was {c.old}, now {c.new}" for c in forbidden)
        raise UserError(
            f"{path} can't go on with another environment, policy or kind of learner:\n  {told}\n"
            "Leave these as they were, or train anew from its weights: learner.init_from=PATH"
        )
    for change in changes:
        say(f"changed: {change}")


def _is_fixed(change: Change) -> bool:
    return any(change.key == part or change.key.startswith(f"{part}.") for part in FIXED)


def build_loggers(experiment: Experiment, config: dict[str, Any], resume_step: int | None) -> list[Logger]:
    """The experiment's metric sinks, continued where a run is resumed."""
    return [
        spec.build(run_dir=experiment.run_dir, name=experiment.name, config=config, resume_step=resume_step)
        for spec in experiment.logger.values()
    ]


def fit(trainer: pl.Trainer, module: LearnerModule, path: Path | None) -> None:
    """Drive the learner, and close what it opened whatever happens."""
    try:
        trainer.fit(module, ckpt_path=path, weights_only=True)
    except SystemExit as e:  # Lightning's answer to Ctrl-C before training began, with the signal ignored from then on
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise Interrupted(signal.SIGINT, "stopped before training began") from e
    finally:
        module.teardown("fit")


def say(line: str) -> None:
    """One line for the user."""
    print(line, file=sys.stderr, flush=True)
