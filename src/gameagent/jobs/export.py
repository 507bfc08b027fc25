"""`job=export`: write a saved policy as one verified `.onnx` file, pre-processing and contract inside.

python run.py job=export job.policy=outputs/catch/2026-01-31_12-00-00 env=catch
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from gameagent.component import component
from gameagent.contract import Obs
from gameagent.envs.base import Env
from gameagent.experiment import Experiment, Job
from gameagent.jobs.screen import say
from gameagent.policies.actors import PolicyActor
from gameagent.policies.base import Policy
from gameagent.policies.bundle import ONNX_FILE, find_policy, load_policy, read_card
from gameagent.policies.card import PolicyFileError
from gameagent.policies.onnx import DEFAULT_OPSET, export_onnx
from gameagent.policies.samplers import Argmax

NUM_ENVS = 8
"""Environments whose observations the file is proven on; a few at once see more of a game than one for longer."""


@component
class Export(Job):
    """Export a policy to ONNX and prove on the experiment's environment that it computes the same."""

    policy: str | None = None
    """Saved policy: a .safetensors or .ckpt file, or a run folder; null: the run folder of this experiment."""
    opset: Annotated[int, Field(ge=18)] = DEFAULT_OPSET
    """Version of the ONNX operator set, 18 or more; older runtimes need a lower one."""
    steps: Annotated[int, Field(gt=0)] = 64
    """Steps to play in each of 8 environments: the observations on which torch and ONNX are compared."""
    seed: Annotated[int, Field(ge=0)] = 2_000_000
    """Seed of those environments."""

    def run(self, experiment: Experiment) -> dict[str, Any]:
        """Write policy.onnx into the run folder.

        Returns the file's path under `onnx` and the largest difference of a logit under `max_logit_difference`.

        Raises:
            PolicyFileError, PolicyNotFoundError: no usable policy.
            ContractError: the policy was made for other spaces than the environment's.
            ExportError: the policy can't be exported, or the file doesn't equal it; no file is left.
        """
        source = find_policy(self.policy if self.policy is not None else experiment.run_dir)
        policy = load_policy(source)
        if not isinstance(policy, Policy):
            raise PolicyFileError(f"{source} is an ONNX file already; give the .safetensors it came from")
        card = read_card(source)
        target = experiment.run_dir / ONNX_FILE
        obs = observations(experiment.env, policy, self.steps, self.seed)
        error = export_onnx(
            policy, target, obs=obs, opset=self.opset, provenance=card["provenance"], evaluation=card["evaluation"]
        )
        count, size = len(next(iter(obs.values()))), target.stat().st_size / 1e6
        say(
            f"{target}: {size:.1f} MB, opset {self.opset}; equal to {source.name} on {count} observations: "
            f"same actions, logits differ by at most {error:.1e}"
        )
        return {"onnx": str(target), "max_logit_difference": error}


def observations(env: Env, policy: Policy, steps: int, seed: int) -> Obs:
    """What `policy` sees while it plays `steps` steps in `NUM_ENVS` environments: parts (steps · NUM_ENVS, …).

    Raises ContractError where it was made for other spaces than those of `env`.
    """
    batch = env.make(NUM_ENVS, seed=seed)
    try:
        actor = PolicyActor(policy, Argmax(), seed=seed)
        obs, _ = batch.reset(seed=seed)
        seen: list[Obs] = []
        for _ in range(steps):
            parts = batch.obs_space.as_parts(obs)
            seen.append({name: np.array(array) for name, array in parts.items()})
            obs, *_ = batch.step(actor.act(parts, batch))
    finally:
        batch.close()
    return {name: np.concatenate([parts[name] for parts in seen]) for name in batch.obs_space}
