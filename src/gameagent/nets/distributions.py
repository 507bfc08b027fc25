"""Action distributions: one categorical per head, independent given the observation.

d = FactoredCategorical(logits, sizes); action = d.sample(generator); d.log_prob(action)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class FactoredCategorical:
    """Independent categoricals over the heads of an action space, addressed by flat action id.

    Args:
        logits: (B, sum(sizes)) unnormalised, heads side by side in order.
        sizes: labels per head.
    """

    def __init__(self, logits: Tensor, sizes: Sequence[int]) -> None:
        if logits.shape[-1] != sum(sizes):
            raise ValueError(f"logits of width {logits.shape[-1]} for heads of {tuple(sizes)} labels")
        self.sizes = tuple(sizes)
        self.log_probs = torch.cat([h.log_softmax(-1) for h in torch.split(logits.float(), list(sizes), -1)], -1)
        """(B, sum(sizes)), normalised within each head."""

    def heads(self) -> tuple[Tensor, ...]:
        """Log-probabilities of each head, (B, size) each."""
        return torch.split(self.log_probs, list(self.sizes), -1)

    def unflatten(self, action: Tensor) -> list[Tensor]:
        """Flat ids (B,) -> ids of each head, (B,) each."""
        parts: list[Tensor] = []
        for size in reversed(self.sizes):
            parts.append(action % size)
            action = action // size
        return parts[::-1]

    def flatten(self, parts: Sequence[Tensor]) -> Tensor:
        """Ids of each head -> flat ids (B,)."""
        flat = torch.zeros_like(parts[0])
        for size, part in zip(self.sizes, parts, strict=True):
            flat = flat * size + part
        return flat

    def log_prob(self, action: Tensor) -> Tensor:
        """Log-probability (B,) of flat actions (B,): summed over heads."""
        if action.shape != self.log_probs.shape[:-1]:
            raise ValueError(
                f"actions of shape {tuple(action.shape)} for a batch of {tuple(self.log_probs.shape[:-1])}"
            )
        picked = [
            h.gather(-1, a.unsqueeze(-1)).squeeze(-1) for h, a in zip(self.heads(), self.unflatten(action), strict=True)
        ]
        return torch.stack(picked).sum(0)

    def entropy(self) -> Tensor:
        """Entropy in nats (B,): summed over heads."""
        return torch.stack([-(h.exp() * h).sum(-1) for h in self.heads()]).sum(0)

    def kl(self, new: FactoredCategorical) -> Tensor:
        """KL(self || new) in nats (B,), exact: summed over heads and actions."""
        return (self.log_probs.exp() * (self.log_probs - new.log_probs)).sum(-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Flat actions (B,) drawn from the distribution."""
        draws = [torch.multinomial(h.exp(), 1, generator=generator).squeeze(-1) for h in self.heads()]
        return self.flatten(draws)

    def mode(self) -> Tensor:
        """Most likely flat action (B,)."""
        return self.flatten([h.argmax(-1) for h in self.heads()])
