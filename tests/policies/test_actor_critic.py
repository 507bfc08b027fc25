"""`ActorCritic`: nothing shared between its two networks, one layout prepared where both read the same."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gameagent.contract import ActionSpace, ContractError, ObsSpace
from gameagent.nets.encoders import Auto, Mlp, Nature, Tiny
from gameagent.policies.actor_critic import ActorCritic, ActorCriticPolicy

FRAME = ObsSpace(frame=(56, 56, 3))
BOTH = ObsSpace(frame=(56, 56, 3), features=(5,))
ACTIONS = ActionSpace(move_labels=("left", "stay", "right"), act_labels=("wait", "dash"))


def parts(batch: int = 4) -> dict[str, Tensor]:
    return {"frame": torch.randint(0, 256, (batch, 56, 56, 3), dtype=torch.uint8), "features": torch.randn(batch, 5)}


def test_actor_and_critic_are_all_of_it_and_share_nothing() -> None:
    policy = ActorCritic().build(BOTH, ACTIONS)
    actor, critic = ({id(p) for p in ps} for ps in (policy.actor_parameters(), policy.critic_parameters()))
    assert not actor & critic
    assert actor | critic == {id(p) for p in policy.parameters()}
    assert not torch.equal(policy.actor.encoders[0].first.weight, policy.critic.encoders[0].first.weight)


def test_each_loss_reaches_its_own_network_only() -> None:
    policy = ActorCritic().build(BOTH, ACTIONS)
    prepared = policy.prepare(parts())
    policy.value(prepared).sum().backward()
    assert all(p.grad is None for p in policy.actor_parameters())
    assert all(p.grad is not None for p in policy.critic_parameters())
    policy.zero_grad()
    policy.distribution(prepared).log_prob(torch.zeros(4, dtype=torch.int64)).sum().backward()
    assert all(p.grad is not None for p in policy.actor_parameters())
    assert all(p.grad is None for p in policy.critic_parameters())


def test_one_encoder_prepares_one_layout_for_both() -> None:
    policy = ActorCritic(encoder=Tiny()).build(BOTH, ACTIONS)
    assert list(policy.prepare(parts())) == ["frame"]


@pytest.mark.parametrize("critic", [Nature(), Mlp(), Auto(), Tiny(patch=8)])
def test_two_encoders_prepare_both_layouts_side_by_side(critic: Nature | Mlp | Auto | Tiny) -> None:
    policy = ActorCritic(encoder=Tiny(patch=4, channels=(8, 8)), critic_encoder=critic).build(BOTH, ACTIONS)
    raw = parts()
    prepared = policy.prepare(raw)
    own = policy.critic.prepare(raw)
    assert set(prepared) == {"frame", *(f"critic.{name}" for name in own)}
    distribution, value = policy(prepared)
    assert torch.equal(value, policy.critic_head(policy.critic(own)).squeeze(-1))
    logits = policy.actor_head(policy.actor(policy.actor.prepare(raw)))
    for found, head in zip(distribution.heads(), logits.split([3, 2], -1), strict=True):
        assert torch.equal(found, head.log_softmax(-1))


def test_forward_is_both_calls() -> None:
    policy = ActorCritic().build(FRAME, ACTIONS)
    prepared = policy.prepare(parts())
    distribution, value = policy(prepared)
    assert torch.equal(distribution.log_probs, policy.distribution(prepared).log_probs)
    assert torch.equal(value, policy.value(prepared))
    assert value.shape == (4,)


def test_bfloat16_autocast_gives_float32_outputs() -> None:
    policy = ActorCritic().build(BOTH, ACTIONS)
    with torch.autocast("cpu", torch.bfloat16):
        distribution, value = policy(policy.prepare(parts()))
    assert distribution.log_probs.dtype == value.dtype == torch.float32


def test_an_encoder_that_can_not_read_the_space_says_so() -> None:
    with pytest.raises(ContractError, match="reads features"):
        ActorCritic(encoder=Tiny(), critic_encoder=Mlp()).build(FRAME, ACTIONS)


def test_a_built_policy_knows_what_it_was_built_from() -> None:
    architecture = ActorCritic(encoder=Tiny(width=8))
    policy = architecture.build(FRAME, ACTIONS)
    assert isinstance(policy, ActorCriticPolicy)
    assert (policy.architecture, policy.obs_space, policy.action_space) == (architecture, FRAME, ACTIONS)
