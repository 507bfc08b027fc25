"""Shuffled batches of sample numbers that can be put back exactly where they were, in the middle of an epoch too.

Use: `sampler = BatchSampler(size=len(data), batch_size=64, seed=0)`, then `rows = sampler.next()` for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gameagent.contract import IntArray
from gameagent.errors import UserError


class BatchSampler:
    """Goes through all samples in a new random order every epoch. The last batch of an epoch may be smaller.

    Each epoch's order follows from (seed, epoch) alone, so the whole state is two numbers.

    Args:
        size: number of samples.
        batch_size: samples a batch.
        seed: of the orders.

    Attributes:
        epoch: epochs finished.
        position: samples given out in the present epoch.
    """

    def __init__(self, size: int, batch_size: int, seed: int) -> None:
        if size < 1 or batch_size < 1:
            raise ValueError(
                f"a sampler needs samples and batches of at least one: got {size} samples, batches of {batch_size}"
            )
        self.size, self.batch_size, self.seed = size, batch_size, seed
        self.epoch = self.position = 0
        self._order = self._shuffled()

    def __len__(self) -> int:
        """Batches an epoch."""
        return -(-self.size // self.batch_size)

    def next(self) -> IntArray:
        """The next batch (B,) of sample numbers. After the last one of an epoch `position` is 0 again."""
        rows = self._order[self.position : self.position + self.batch_size]
        self.position += len(rows)
        if self.position >= self.size:
            self.epoch, self.position = self.epoch + 1, 0
            self._order = self._shuffled()
        return rows

    def get_state(self) -> dict[str, int]:
        """Where it is, as plain numbers."""
        return {"size": self.size, "seed": self.seed, "epoch": self.epoch, "position": self.position}

    def set_state(self, state: Mapping[str, int]) -> None:
        """Go on from `get_state`. The batch size may differ, the data and the seed may not.

        Raises:
            UserError: the state belongs to other samples or another order.
        """
        for name, mine in (("size", self.size), ("seed", self.seed)):
            if state[name] != mine:
                raise UserError(
                    f"can't go on in the middle of an epoch: the sampler's {name} was {state[name]} and is {mine} now. "
                    "Give the same data, split and seed as before, or start a new run with learner.init_from=PATH"
                )
        self.epoch, self.position = int(state["epoch"]), int(state["position"])
        self._order = self._shuffled()

    def _shuffled(self) -> IntArray:
        return np.random.default_rng((self.seed, self.epoch)).permutation(self.size)
