"""The axioms of a distance, on whole small spaces; and Gaussian vectors of any mean and covariance."""

from itertools import chain, combinations, product

import numpy as np
import pytest

from likewise import ParameterError, measures
from likewise.theory import broken_axioms, gaussian_vectors, gaussians

SUBSETS = [set(one) for one in chain.from_iterable(combinations("abcd", n) for n in range(5))]
WORDS = ["".join(one) for n in range(4) for one in product("ab", repeat=n)]


@pytest.mark.parametrize(
    ("distance", "points"),
    [
        (measures.jaccard_distance, SUBSETS),
        (measures.edit, WORDS),
        (lambda x, y: measures.edit(x, y, mutations=True), WORDS),
        (lambda x, y: measures.edit(x, y, mutations=True, transpositions=True), WORDS),
        (measures.hamming, [one for one in WORDS if len(one) == 3]),
        (lambda x, y: measures.lr(x, y, 1), list(product(range(4), repeat=2))),
        (measures.lr, list(product(range(4), repeat=2))),
    ],
)
def test_distances_break_nothing(distance, points):
    assert broken_axioms(distance, points) == {}


def test_each_axiom_can_be_broken():
    assert broken_axioms(lambda x, y: x - y, [0, 1]) == {"non-negative": (0, 1), "symmetric": (0, 1)}
    assert broken_axioms(lambda x, y: 0, ["a", "b"]) == {"zero only from a point to itself": ("a", "b")}
    assert broken_axioms(lambda x, y: x + y, [0, 1, 2]) == {"zero only from a point to itself": (1, 1)}
    assert broken_axioms(lambda x, y: [0, 1, 5][abs(x - y)], [0, 1, 2]) == {"triangle inequality": (0, 1, 2)}


def test_the_points_that_are_named_do_break_it():
    rng = np.random.default_rng(1)
    table = rng.random((6, 6))
    np.fill_diagonal(table, 0)
    x, z, y = broken_axioms(lambda i, j: table[i, j], range(6))["triangle inequality"]
    assert table[x, y] > table[x, z] + table[z, y]
    x, y = broken_axioms(lambda i, j: table[i, j], range(6))["symmetric"]
    assert table[x, y] != table[y, x]


def test_one_minus_cosine_is_no_distance_and_the_angle_is():
    """A lecture asks to show that 1 − cos satisfies the triangle inequality; 0°, 45° and 90° do not."""
    points = [(1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    cosine = lambda x, y: 1 - np.cos(np.radians(measures.angle(x, y)))  # noqa: E731
    assert broken_axioms(cosine, points) == {"triangle inequality": tuple(points)}
    assert broken_axioms(measures.angle, points, tolerance=1e-6) == {}
    doubled = [(1, 2), (3, 6)]
    assert set(broken_axioms(measures.angle, doubled)) == {"zero only from a point to itself"}
    assert broken_axioms(measures.angle, doubled, same=lambda x, y: x[0] * y[1] == x[1] * y[0]) == {}


def test_points_may_be_rows_of_an_array():
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    assert broken_axioms(measures.lr, rows) == {}
    found = broken_axioms(lambda x, y: abs(x[0] - y[0]), np.array([[0, 1], [0, 2]]))
    assert [row.tolist() for row in found["zero only from a point to itself"]] == [[0, 1], [0, 2]]


def test_a_distance_that_is_no_number_breaks_an_axiom():
    found = broken_axioms(lambda x, y: float("nan") if x != y else 0.0, range(3))
    assert found == {"non-negative": (0, 1)}


def test_axioms_of_what():
    for options, name in (
        ({"distance": 5}, "distance"), ({"points": 5}, "points"), ({"points": range(301)}, "points"),
        ({"same": 5}, "same"), ({"tolerance": -1}, "tolerance"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=f"'{name}' parameter of broken_axioms"):
            broken_axioms(**{"distance": max, "points": [0], **options})


COVARIANCES = [[[1.0, 0], [0, 1]], [[4, 1.2], [1.2, 1]], [[1, -1], [-1, 1]], [[0, 0], [0, 2.5]]]


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_mean_and_covariance(covariance):
    """Within 4.4 standard errors: σ/√n of a mean, √((σ₁²σ₂² + c²)/n) of a covariance."""
    n, mean = 20_000, np.array([1.0, -2.0])
    x = gaussian_vectors(n, mean, covariance, seed=7)
    spread = np.array(covariance, float)
    variance = np.diag(spread)
    assert (abs(x.mean(axis=0) - mean) <= 4.4 * np.sqrt(variance / n) + 1e-12).all()
    error = np.sqrt((np.outer(variance, variance) + spread**2) / n)
    assert (abs(np.cov(x.T) - spread) <= 4.4 * error + 1e-3 * abs(spread) + 1e-12).all()


def test_from_the_same_standard_numbers():
    plain = gaussians(30, seed=4).reshape(10, 3)
    assert np.allclose(gaussian_vectors(10, [0, 0, 0], np.eye(3), seed=4), plain)
    assert np.allclose(gaussian_vectors(10, [5, 0, 0], 4 * np.eye(3), seed=4), [5, 0, 0] + 2 * plain)
    assert gaussian_vectors(0, [0.0], [[1.0]]).shape == (0, 1)
    rounded = gaussian_vectors(5, [0, 0], [[1, 0.1 + 0.2], [0.3, 1]])
    assert np.allclose(rounded, gaussian_vectors(5, [0, 0], [[1, 0.3], [0.3, 1]]))


def test_no_distribution():
    for mean, covariance, name in (
        ([], [], "mean"), (1, [[1]], "mean"), ([0], [[-1]], "covariance"), ([0, 0], [[1, 2], [2, 1]], "covariance"),
        ([0, 0], [[1, 0.5], [0, 1]], "covariance"), ([0], [[1, 0], [0, 1]], "covariance"), ([np.inf], [[1]], "mean"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=f"'{name}' parameter of gaussian_vectors"):
            gaussian_vectors(3, mean, covariance)
