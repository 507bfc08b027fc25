"""Actor-critic: one network that chooses actions, one that estimates returns, nothing shared between them.

    policy = ActorCritic(encoder=Tiny(width=256)).build(obs_space, action_space)

Separate networks because the value loss, whose scale follows the rewards, would otherwise move the actor's features
(Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", on network architecture).
"""

from __future__ import annotations

from torch import Tensor, nn

from gameagent.component import component
from gameagent.contract import ActionSpace, ObsSpace
from gameagent.nets.base import Encoder, EncoderModule, Tensors
from gameagent.nets.distributions import FactoredCategorical
from gameagent.nets.encoders import Auto
from gameagent.nets.init import POLICY_GAIN, VALUE_GAIN, orthogonal
from gameagent.policies.base import Architecture, Policy

CRITIC = "critic."
"""Prefix of the critic's own parts among prepared ones, where its encoder reads another layout than the actor's."""


@component
class ActorCritic(Architecture):
    """Separate actor and critic over the same observation, one categorical per action head."""

    encoder: Encoder = Auto()
    """Turns an observation into the vector that the actor's head reads."""
    critic_encoder: Encoder | None = None
    """The critic's encoder; null: another copy of `encoder`, with weights of its own."""

    def build(self, obs_space: ObsSpace, action_space: ActionSpace) -> ActorCriticPolicy:
        """A policy with fresh weights. Raises ContractError where an encoder can't read the observation."""
        return ActorCriticPolicy(self, obs_space, action_space)


class ActorCriticPolicy(Policy):
    """See `ActorCritic`."""

    def __init__(self, architecture: ActorCritic, obs_space: ObsSpace, action_space: ActionSpace) -> None:
        super().__init__(architecture, obs_space, action_space)
        critic_encoder = architecture.critic_encoder or architecture.encoder
        self.one_layout = critic_encoder == architecture.encoder
        self.actor: EncoderModule = architecture.encoder.build(obs_space)
        self.actor_head = orthogonal(nn.Linear(self.actor.out_features, sum(action_space.sizes)), POLICY_GAIN)
        self.critic: EncoderModule = critic_encoder.build(obs_space)
        self.critic_head = orthogonal(nn.Linear(self.critic.out_features, 1), VALUE_GAIN)

    def prepare(self, parts: Tensors) -> Tensors:
        """The actor's layout, and under names with the prefix `critic.` the critic's where it has another one."""
        prepared = self.actor.prepare(parts)
        if self.one_layout:
            return prepared
        return prepared | {CRITIC + name: part for name, part in self.critic.prepare(parts).items()}

    def distribution(self, prepared: Tensors) -> FactoredCategorical:
        """Prepared parts -> distribution over flat actions."""
        return FactoredCategorical(self.actor_head(self.actor(prepared)), self.action_space.sizes)

    def value(self, prepared: Tensors) -> Tensor:
        """Prepared parts -> value (B,), float32 whatever the network computes in."""
        if not self.one_layout:
            prepared = {n.removeprefix(CRITIC): part for n, part in prepared.items() if n.startswith(CRITIC)}
        value: Tensor = self.critic_head(self.critic(prepared))
        return value.squeeze(-1).float()

    def actor_parameters(self) -> list[nn.Parameter]:
        """The actor's encoder and head."""
        return [*self.actor.parameters(), *self.actor_head.parameters()]

    def critic_parameters(self) -> list[nn.Parameter]:
        """The critic's encoder and head."""
        return [*self.critic.parameters(), *self.critic_head.parameters()]
