"""Running means of tensors that stay on the device until they are asked for.

means = Means(); means.add({"loss/value": loss}); means.result()
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Means:
    """Means by name over the times that each name was given."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, numbers: Mapping[str, Tensor]) -> None:
        """Take scalars in."""
        for name, number in numbers.items():
            self._sums[name] = self._sums[name] + number if name in self._sums else number
            self._counts[name] = self._counts.get(name, 0) + 1

    def result(self) -> dict[str, float]:
        """The means so far, fetched from the device in one go."""
        if not self._sums:
            return {}
        sums = torch.stack([s.detach().float() for s in self._sums.values()]).tolist()
        return {name: total / self._counts[name] for name, total in zip(self._sums, sums, strict=True)}

    def count(self) -> int:
        """How often the most frequent name was given."""
        return max(self._counts.values(), default=0)
