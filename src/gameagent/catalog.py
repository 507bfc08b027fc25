"""Every component that ships with gameagent: config group and option -> class. conf/ is written from this table.

Names only, nothing is imported here. Add a line for a new component, then type `make conf`.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Entry(NamedTuple):
    """One file of conf/."""

    group: str
    """Folder under conf/; a nested component's group is its owner's group plus the field's name."""
    option: str
    """File name without .yaml; what a user types after `group=`."""
    target: str
    """module:Class, the component."""
    preset: dict[str, Any] = {}
    """Field values that differ from the class's defaults. A nested component is named by its option."""


CATALOG = (
    Entry("env", "mini", "gameagent.envs.mini.env:MiniEnv"),
    Entry("env", "catch", "gameagent.envs.mini.env:MiniEnv", {"game": "catch", "reward": "catch"}),
    Entry("env", "gym", "gameagent.envs.gym:GymEnv"),
    Entry("env/reward", "own", "gameagent.rewards.own:OwnReward"),
    Entry("env/reward", "catch", "gameagent.rewards.catch:CatchReward"),
    Entry("policy", "actor_critic", "gameagent.policies.actor_critic:ActorCritic"),
    Entry("policy/encoder", "auto", "gameagent.nets.encoders:Auto"),
    Entry("policy/encoder", "tiny", "gameagent.nets.encoders:Tiny"),
    Entry("policy/encoder", "nature", "gameagent.nets.encoders:Nature"),
    Entry("policy/encoder", "mlp", "gameagent.nets.encoders:Mlp"),
    Entry("policy/critic_encoder", "auto", "gameagent.nets.encoders:Auto"),
    Entry("policy/critic_encoder", "tiny", "gameagent.nets.encoders:Tiny"),
    Entry("policy/critic_encoder", "nature", "gameagent.nets.encoders:Nature"),
    Entry("policy/critic_encoder", "mlp", "gameagent.nets.encoders:Mlp"),
    Entry("learner", "ppo", "gameagent.learn.ppo:PPO"),
    Entry("learner", "sft", "gameagent.learn.sft:SFT"),
    Entry("job", "train", "gameagent.jobs.train:Train"),
    Entry("job", "collect", "gameagent.jobs.collect:Collect"),
    Entry("job", "evaluate", "gameagent.jobs.evaluate:Evaluate"),
    Entry("job", "compare", "gameagent.jobs.compare:Compare"),
    Entry("job", "record", "gameagent.jobs.record:Record"),
    Entry("job", "export", "gameagent.jobs.export:Export"),
    Entry("job", "pipeline", "gameagent.jobs.pipeline:Pipeline"),
    Entry("job", "report", "gameagent.jobs.report:Report"),
    Entry("job", "doctor", "gameagent.jobs.doctor:Doctor"),
    Entry("job/sampler", "argmax", "gameagent.policies.samplers:Argmax"),
    Entry("job/sampler", "temperature", "gameagent.policies.samplers:Temperature"),
    Entry("job/sampler", "tie_tolerance", "gameagent.policies.samplers:TieTolerance"),
    Entry("trainer", "default", "gameagent.learn.trainer:Trainer"),
    Entry("logger", "csv", "gameagent.learn.loggers:Csv"),
    Entry("logger", "tensorboard", "gameagent.learn.loggers:TensorBoard"),
    Entry("logger", "wandb", "gameagent.learn.loggers:Wandb"),
    Entry("callbacks", "checkpoint", "gameagent.learn.callbacks:Checkpoint"),
    Entry("callbacks", "progress", "gameagent.learn.callbacks:Progress"),
    Entry("callbacks", "stop", "gameagent.learn.callbacks:StopGently"),
)
