"""Statistics: the beta distribution, the binomial interval that follows from it, and Student's t."""

from __future__ import annotations

import math
from statistics import NormalDist

CONFIDENCE = 0.95
"""The confidence of every interval that is reported without another one being given."""

BISECTIONS = 60
"""Halvings of [0, 1] that leave less than the spacing of floating-point numbers near 1."""


def binomial_interval(successes: float, trials: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the Clopper–Pearson interval for a proportion; the numbers need not be whole.

    >>> [round(x, 4) for x in binomial_interval(10, 10)]
    [0.6915, 1.0]
    """
    tail = (1 - confidence) / 2
    failures = trials - successes
    low = 0.0 if successes <= 0 else beta_quantile(tail, successes, failures + 1)
    high = 1.0 if failures <= 1e-9 else beta_quantile(1 - tail, successes + 1, failures)
    return low, high


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return x with I_x(a, b) = p, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if beta_cdf(middle, a, b) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - front * _fraction(1 - x, b, a) / b
    return front * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, 100_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + numerator * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + numerator / c
            c = c if abs(c) > tiny else tiny
            total *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return total


def student_quantile(confidence: float, freedom: int) -> float:
    """Return the number of standard errors that a two-sided interval of Student's t reaches to each side.

    Exact for 1 and 2 degrees of freedom; beyond, the normal quantile with the first terms of its expansion in
    1/freedom.

    >>> [round(student_quantile(0.95, freedom), 2) for freedom in (1, 2, 10, 1000)]
    [12.71, 4.3, 2.23, 1.96]
    """
    if freedom == 1:
        return math.tan(math.pi * confidence / 2)
    if freedom == 2:
        return confidence * math.sqrt(2 / (1 - confidence**2))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))
