"""Intervals and paired tests for episode results: no number is reported without its uncertainty.

`mean_interval(scores)`, `wilson(wins, episodes)`, `paired(scores_a, scores_b)`; seeded, vectorised over resamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import comb, nan, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from gameagent.contract import FloatArray

LEVEL = 0.95
"""Coverage of every interval unless told otherwise."""
RESAMPLES = 10_000
"""Bootstrap resamples and random sign flips: the interval's own noise is then about 1 % of its width."""
_EXACT_FLIPS = 14
"""Up to this many differing pairs, all 2^n sign patterns are tried instead of random ones."""
_CHUNK = 2_000_000
"""Resampled values held at once."""
_NORMAL = NormalDist()

Statistic = Callable[[FloatArray], FloatArray]
"""Reduces the last axis: (resamples, n) -> (resamples,)."""


@dataclass(frozen=True)
class Estimate:
    """A number and the interval that holds its true value with probability `level`."""

    value: float
    low: float
    """Lower end; NaN where one observation gives no interval."""
    high: float
    n: int
    """Observations behind it."""
    level: float = LEVEL

    def overlaps(self, other: Estimate) -> bool:
        """Whether the two intervals share a point; without an interval one cannot say that they don't."""
        return not (self.low > other.high or other.low > self.high)

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain form; an end that does not exist is None, since JSON knows no NaN."""
        return {k: None if v != v else v for k, v in asdict(self).items()}

    def __str__(self) -> str:
        if self.low != self.low:
            return f"{self.value:.2f} (n={self.n}, no interval)"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Paired:
    """Two policies on the same seeds: b against a."""

    difference: Estimate
    """Mean of b - a."""
    p_value: float
    """Two-sided sign-flip permutation test of the mean difference: how often chance alone gives one as large."""
    sign_p_value: float
    """Two-sided exact sign test: looks only at who won each seed, so no outlier can carry it."""
    wins: int
    """Seeds where b scored more."""
    ties: int
    losses: int

    @property
    def probability_of_improvement(self) -> float:
        """Chance that b beats a on a seed, ties counting half."""
        return (self.wins + self.ties / 2) / (self.wins + self.ties + self.losses)


def wilson(successes: int, n: int, level: float = LEVEL) -> Estimate:
    """Rate of success with Wilson's score interval: right for few episodes and for rates of 0 and 1.

    Source: Wilson (1927); Brown, Cai, DasGupta, "Interval estimation for a binomial proportion" (2001), eq. 4.

    Raises:
        ValueError: no episodes, or more successes than episodes.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"a rate needs 0 <= successes <= n and n >= 1, got {successes} of {n}")
    z = _NORMAL.inv_cdf((1 + level) / 2)
    rate = successes / n
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # At the edges the formula is exactly 0 or 1; rounding must not push it past them.
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Estimate(rate, 0.0 if successes == 0 else low, 1.0 if successes == n else high, n, level)


def mean(values: FloatArray) -> FloatArray:
    """Mean over the last axis."""
    reduced: FloatArray = values.mean(-1)
    return reduced


def interquartile_mean(values: FloatArray) -> FloatArray:
    """Mean of the middle half over the last axis: ⌊n/4⌋ values are cut at each end.

    Robust like the median, but sharper. Source: Agarwal et al., "Deep RL at the edge of the statistical precipice".
    """
    cut = values.shape[-1] // 4
    reduced: FloatArray = np.sort(values, -1)[..., cut : values.shape[-1] - cut].mean(-1)
    return reduced


def bootstrap(
    values: ArrayLike, statistic: Statistic = mean, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """A statistic with its bias-corrected and accelerated (BCa) bootstrap interval.

    Source: Efron, "Better bootstrap confidence intervals" (1987). Scores are often skewed, and there BCa covers better
    than mean ± 1.96 standard errors. Equal values give an interval of width 0; a single one gives no interval.

    Args:
        values: (n,) finite numbers.
        statistic: reduces the last axis.
        level: coverage in (0, 1).
        resamples: bootstrap resamples.
        seed: of the resampling: the same values always give the same interval.

    Raises:
        ValueError: no values, or one that is not finite.
    """
    x = _checked(values)
    n = len(x)
    value = float(statistic(x))
    if n == 1:
        return Estimate(value, nan, nan, n, level)
    if (x == x[0]).all():
        return Estimate(value, value, value, n, level)
    draws = np.sort(_resampled(x, statistic, resamples, seed))
    acceleration = _acceleration(x, statistic)
    ends = [_bca_quantile(p, draws, value, acceleration) for p in ((1 - level) / 2, (1 + level) / 2)]
    low, high = np.quantile(draws, ends)
    return Estimate(value, float(low), float(high), n, level)


def mean_interval(values: ArrayLike, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0) -> Estimate:
    """Mean with its BCa bootstrap interval; see `bootstrap`."""
    return bootstrap(values, mean, level=level, resamples=resamples, seed=seed)


def paired(a: ArrayLike, b: ArrayLike, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0) -> Paired:
    """Compare two policies played on the same seeds, seed by seed: what the seeds share cancels out.

    Args:
        a: (n,) scores of the first policy.
        b: (n,) scores of the second, in the same order of seeds.
        level: coverage of the difference's interval.
        resamples: bootstrap resamples and random sign flips.
        seed: of both.

    Raises:
        ValueError: different lengths, none, or a score that is not finite.
    """
    first, second = _checked(a), _checked(b)
    if first.shape != second.shape:
        raise ValueError(f"paired scores need one of each per seed, got {len(first)} and {len(second)}")
    d = second - first
    wins, losses = int((d > 0).sum()), int((d < 0).sum())
    return Paired(
        difference=mean_interval(d, level=level, resamples=resamples, seed=seed),
        p_value=sign_flip_p_value(d, resamples=resamples, seed=seed),
        sign_p_value=sign_p_value(wins, losses),
        wins=wins,
        ties=len(d) - wins - losses,
        losses=losses,
    )


def sign_p_value(wins: int, losses: int) -> float:
    """Two-sided exact binomial test that wins and losses are equally likely; ties don't count."""
    n = wins + losses
    tail = sum(comb(n, k) for k in range(min(wins, losses) + 1)) / (1 << n)
    return min(1.0, 2 * tail)


def sign_flip_p_value(differences: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Two-sided permutation test of a mean paired difference: under no effect every sign is as likely as its opposite.

    Exact for up to 14 differing pairs; beyond, random flips with the observed one counted in, so that it is never 0
    (Phipson & Smyth, "Permutation p-values should never be zero", 2010).
    """
    d = differences[differences != 0]
    if not len(d):
        return 1.0
    observed = abs(d.sum()) * (1 - 1e-12)  # equal sums in another order of addition count as equal
    if len(d) <= _EXACT_FLIPS:
        signs = 1 - 2 * ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1)
        return float(np.mean(np.abs(signs @ d) >= observed))
    rng = np.random.default_rng(seed)
    hits, left = 0, resamples
    while left:
        rows = min(left, max(1, _CHUNK // len(d)))
        hits += int((np.abs((1 - 2 * rng.integers(0, 2, (rows, len(d)))) @ d) >= observed).sum())
        left -= rows
    return (hits + 1) / (resamples + 1)


def _checked(values: ArrayLike) -> FloatArray:
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or not len(x):
        raise ValueError(f"expected a list of at least one number, got shape {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"{int((~np.isfinite(x)).sum())} of {len(x)} values are not finite")
    return x


def _resampled(x: FloatArray, statistic: Statistic, resamples: int, seed: int) -> FloatArray:
    """The statistic of `resamples` draws with replacement, in chunks that bound memory."""
    rng = np.random.default_rng(seed)
    out = np.empty(resamples)
    step = max(1, _CHUNK // len(x))
    for i in range(0, resamples, step):
        rows = min(step, resamples - i)
        out[i : i + rows] = statistic(x[rng.integers(0, len(x), (rows, len(x)))])
    return out


def _acceleration(x: FloatArray, statistic: Statistic) -> float:
    """How fast the statistic's spread changes with its value, from leave-one-out values: skewness / 6."""
    n = min(len(x), 2000)  # leave-one-out is quadratic; that many settle a correction of order 1/sqrt(n)
    kept = ~np.eye(n, dtype=bool)
    left_out = statistic(np.broadcast_to(x[:n], (n, n))[kept].reshape(n, n - 1))
    d = left_out.mean() - left_out
    spread = float((d**2).sum()) ** 1.5
    return float((d**3).sum()) / (6.0 * spread) if spread > 0 else 0.0


def _bca_quantile(p: float, draws: FloatArray, value: float, acceleration: float) -> float:
    """Which quantile of the resampled values is the interval's end for nominal probability `p`."""
    # Half of the draws equal to the value count as below it: scores are often integers. Equal up to rounding, or the
    # interval of x + c would not be that of x, moved by c.
    tied = np.abs(draws - value) <= 1e-9 * (draws[-1] - draws[0])
    below = float(((draws < value) & ~tied).mean() + tied.mean() / 2)
    edge = 1 / (2 * len(draws))
    bias = _NORMAL.inv_cdf(min(max(below, edge), 1 - edge))
    shifted = bias + _NORMAL.inv_cdf(p)
    return _NORMAL.cdf(bias + shifted / (1 - acceleration * shifted))
