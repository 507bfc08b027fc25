"""Running means."""

from __future__ import annotations

import torch

from gameagent.learn.means import Means


def test_each_name_has_its_own_count() -> None:
    means = Means()
    assert means.result() == {}
    means.add({"a": torch.tensor(1.0), "b": torch.tensor(5.0)})
    means.add({"a": torch.tensor(3.0)})
    assert means.result() == {"a": 2.0, "b": 5.0}
    assert means.count() == 2
