"""Random directions, for random hyperplanes and lines: the right way, and one that only looks right (MMDS §3.7.2).

The normal of a random hyperplane must have no preferred direction. On a globe, a uniform latitude with a uniform
longitude does not work: the circles of latitude near the poles are short, yet get as many points as the equator. A
vector of independent Gaussian numbers works, in any number of dimensions: its density, a product of exp(−x²/2), depends
only on the length of the vector. Gaussian numbers are obtained from uniform ones by the Box–Muller method.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.base import checks
from likewise.base.checks import numbers, whole
from likewise.errors import ParameterError

Floats = NDArray[np.float64]


def box_muller(u: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]:
    """Return two independent standard Gaussian numbers for every two uniform numbers from [0, 1).

    A pair of Gaussian numbers is a point of the plane. Its direction is uniform, 2π·v; its distance from the origin is
    at most r with probability 1 − exp(−r²/2), so √(−2·ln(1 − u)) has the distribution of that distance.

    >>> x, y = box_muller([1 - math.exp(-2), 1 - math.exp(-8)], [0.0, 0.25])
    >>> abs(x.round(6)).tolist(), abs(y.round(6)).tolist()
    ([2.0, 0.0], [0.0, 4.0])
    """
    first, second = numbers("box_muller", "u", u), numbers("box_muller", "v", v)
    for name, value in (("u", first), ("v", second)):
        if not ((value >= 0) & (value < 1)).all():
            raise ParameterError.of("box_muller", name, "numbers in [0, 1)", "others")
    radius, turn = np.sqrt(-2 * np.log1p(-first)), 2 * np.pi * second
    return radius * np.cos(turn), radius * np.sin(turn)


def gaussians(count: int, seed: int = 1) -> Floats:
    """Return `count` independent standard Gaussian numbers, two at a time by `box_muller`."""
    count = whole("gaussians", "count", count, 0)
    u, v = _uniform("gaussians", seed, (2, (count + 1) // 2))
    return np.stack(box_muller(u, v), axis=1).ravel()[:count]


def gaussian_vectors(count: int, mean: ArrayLike, covariance: ArrayLike, seed: int = 1) -> Floats:
    """Return vectors of the multivariate normal distribution N(mean, covariance), one per row, from `gaussians`.

    A vector z of standard Gaussian numbers has the covariance I, and mean + A·z has A·Aᵀ. A is the symmetric square
    root of the covariance, by its eigenvalues, so that a covariance without full rank will do.

    >>> x = gaussian_vectors(50_000, [1, -2], [[4, 1.2], [1.2, 1]])
    >>> x.mean(axis=0).round(1).tolist(), np.cov(x.T).round(1).tolist()
    ([1.0, -2.0], [[4.0, 1.2], [1.2, 1.0]])
    """
    owner = "gaussian_vectors"
    count = whole(owner, "count", count, 0)
    centre, spread = numbers(owner, "mean", mean), numbers(owner, "covariance", covariance)
    if centre.ndim != 1 or not len(centre) or not np.isfinite(centre).all():
        raise ParameterError.of(owner, "mean", "a row of finite numbers", mean)
    rule = f"a symmetric table of {len(centre)} rows and columns without negative eigenvalues"
    if spread.shape != (len(centre), len(centre)) or not np.isfinite(spread).all() or not _symmetric(spread):
        raise ParameterError.of(owner, "covariance", rule, covariance)
    values, axes = np.linalg.eigh(spread)
    if values.min() < -1e-9 * max(1.0, float(abs(values).max())):
        raise ParameterError.of(owner, "covariance", rule, f"an eigenvalue of {values.min():g}")
    root = axes * np.sqrt(np.maximum(values, 0)) @ axes.T
    plain = gaussians(count * len(centre), seed).reshape(count, len(centre))
    return np.asarray(centre + plain @ root, np.float64)


def _symmetric(table: Floats) -> bool:
    """Return whether a table is symmetric but for rounding errors."""
    return bool((abs(table - table.T) <= 1e-9 * abs(table).max()).all())


def random_directions(count: int, dimensions: int = 3, seed: int = 1) -> Floats:
    """Return unit vectors of uniformly random direction: vectors of Gaussian numbers, scaled to length 1.

    >>> points = random_directions(20_000, seed=1)
    >>> bool(abs(polar_share(points, 30) - cap_share(30)) < 0.011)      # 4.4 standard errors
    True
    """
    count = whole("random_directions", "count", count, 0)
    dimensions = whole("random_directions", "dimensions", dimensions, 1)
    vectors = gaussians(count * dimensions, seed).reshape(count, dimensions)
    lengths: Floats = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def latitude_longitude(count: int, seed: int = 1) -> Floats:
    """Return three-dimensional unit vectors of uniform latitude and longitude: wrong, because they crowd at the poles.

    >>> points = latitude_longitude(20_000, seed=1)
    >>> bool(abs(polar_share(points, 30) - 1 / 3) < 0.015)              # not 0.134
    True
    """
    count = whole("latitude_longitude", "count", count, 0)
    u, v = _uniform("latitude_longitude", seed, (2, count))
    latitude, longitude = np.pi * (u - 0.5), 2 * np.pi * v
    across = np.cos(latitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1)


def polar_share(points: ArrayLike, degrees: float) -> float:
    """Return the share of points on the unit sphere within this many degrees of either pole, (0, 0, ±1)."""
    table = numbers("polar_share", "points", points)
    if table.ndim != 2 or table.shape[1] != 3 or len(table) == 0:
        raise ParameterError.of("polar_share", "points", "a table of one or more rows of three numbers", table.shape)
    return float((np.abs(table[:, 2]) >= math.cos(_angle("polar_share", degrees))).mean())


def cap_share(degrees: float) -> float:
    """Return the share of the sphere's area within this many degrees of either pole: 1 − cos.

    With uniform latitude it would be degrees/90.

    >>> round(cap_share(30), 4), round(cap_share(60), 4)
    (0.134, 0.5)
    """
    return 1 - math.cos(_angle("cap_share", degrees))


def same_side(normals: ArrayLike, x: ArrayLike, y: ArrayLike) -> float:
    """Return the share of hyperplanes, given by their normals, that have x and y on the same side.

    It should be 1 − d/180 for vectors at an angle of d degrees. Normals that crowd at the poles separate north from
    south too often:

    >>> north, south = [1, 0, 1], [1, 0, -1]            # 90 degrees apart
    >>> bool(abs(same_side(random_directions(20_000), north, south) - 0.5) < 0.016)
    True
    >>> bool(same_side(latitude_longitude(20_000), north, south) < 0.4)
    True
    """
    table = numbers("same_side", "normals", normals)
    a, b = numbers("same_side", "x", x), numbers("same_side", "y", y)
    if table.ndim != 2 or len(table) == 0 or a.shape != (table.shape[1],) or b.shape != a.shape:
        raise ParameterError.of(
            "same_side", "normals", "one or more rows as long as x and y", (table.shape, a.shape, b.shape)
        )
    return float(((table @ a >= 0) == (table @ b >= 0)).mean())


def _uniform(owner: str, seed: object, shape: tuple[int, int]) -> Floats:
    return np.random.default_rng(checks.seed(owner, seed)).random(shape)


def _angle(owner: str, degrees: float) -> float:
    return math.radians(checks.number(owner, "degrees", degrees, 0, 90))
