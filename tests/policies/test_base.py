"""`Policy.infer`: numpy in, numpy out, without touching the policy; what doesn't fit is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gameagent.contract import ActionSpace, ContractError, ObsSpace
from gameagent.policies.actor_critic import ActorCritic
from gameagent.policies.base import Policy
from gameagent.policies.onnx import random_obs

BOTH = ObsSpace(frame=(56, 56, 3), features=(5,))
ACTIONS = ActionSpace(move_labels=("left", "stay", "right"), act_labels=("wait", "dash"))


@pytest.fixture
def policy() -> Policy:
    return ActorCritic().build(BOTH, ACTIONS)


def test_infer_equals_forward(policy: Policy) -> None:
    obs = random_obs(BOTH, 3, seed=0)
    logits, value = policy.infer(obs)
    distribution, expected = policy(policy.prepare({name: torch.from_numpy(a) for name, a in obs.items()}))
    assert [a.shape for a in logits] == [(3, 3), (3, 2)]
    for found, head in zip(logits, distribution.heads(), strict=True):
        np.testing.assert_array_equal(found, head.detach().numpy())
    np.testing.assert_array_equal(value, expected.detach().numpy())
    assert {a.dtype for a in [*logits, value]} == {np.dtype(np.float32)}


@pytest.mark.parametrize("training", [True, False])
def test_infer_runs_in_evaluation_mode_and_leaves_the_mode_alone(policy: Policy, training: bool) -> None:
    policy.train(training)
    modes: list[bool] = []
    policy.actor.register_forward_hook(lambda module, *_: modes.append(module.training))
    policy.infer(random_obs(BOTH, 1, seed=0))
    assert modes == [False]
    assert policy.training is training


def test_infer_makes_no_gradients_and_leaves_observations_alone(policy: Policy) -> None:
    obs = random_obs(BOTH, 2, seed=0)
    before = {name: a.copy() for name, a in obs.items()}
    policy.infer(obs)
    assert all(p.grad is None for p in policy.parameters())
    for name, array in obs.items():
        np.testing.assert_array_equal(array, before[name])


def test_infer_takes_views_and_read_only_arrays(policy: Policy) -> None:
    obs = random_obs(BOTH, 4, seed=0)
    expected = policy.infer({name: a[::2].copy() for name, a in obs.items()})
    for array in obs.values():
        array.flags.writeable = False
    found = policy.infer({name: a[::2] for name, a in obs.items()})
    np.testing.assert_array_equal(found.value, expected.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frame": np.zeros((1, 56, 56, 4), np.uint8)}, r"'frame': expected a batch \(N, 56, 56, 3\) of uint8, got"),
        ({"frame": np.zeros((1, 56, 56, 3), np.float32)}, "of float32"),
        ({"features": np.zeros(5, np.float32)}, r"'features': expected a batch \(N, 5\) of float32, got shape \(5,\)"),
        ({"features": None}, r"has only \['frame'\]"),
    ],
)
def test_an_observation_that_does_not_fit_is_refused(
    policy: Policy, change: dict[str, np.ndarray | None], message: str
) -> None:
    obs = {name: a for name, a in {**random_obs(BOTH, 1, seed=0), **change}.items() if a is not None}
    with pytest.raises(ContractError, match=message):
        policy.infer(obs)
