"""Gaussian numbers by Box and Muller, and directions on the sphere. Tolerances are 4.4 standard errors."""

import math

import numpy as np
import pytest

from likewise import ParameterError
from likewise.theory import (
    box_muller,
    cap_share,
    gaussians,
    latitude_longitude,
    polar_share,
    random_directions,
    same_side,
)

SIGMAS = 4.4
COUNT = 100_000


def near(rate, p, count=COUNT):
    return abs(rate - p) < SIGMAS * (p * (1 - p) / count) ** 0.5


def normal_below(x):
    return math.erfc(-x / math.sqrt(2)) / 2


def uniform_pairs():
    return np.random.default_rng(5).random((2, COUNT))


def test_box_muller_is_the_formula_of_the_lecture():
    u, v = np.array([0.0, 0.3, 0.999]), np.array([0.1, 0.5, 0.9])
    x, y = box_muller(u, v)
    radius = np.sqrt(-2 * np.log(1 - u))
    assert x == pytest.approx(radius * np.cos(2 * np.pi * v))
    assert y == pytest.approx(radius * np.sin(2 * np.pi * v))


@pytest.mark.parametrize("r", [0.2, 1.0, 2.0, 3.0])
def test_the_radius_is_at_most_r_with_probability_1_minus_exp(r):
    x, y = box_muller(*uniform_pairs())
    assert near((np.hypot(x, y) <= r).mean(), 1 - math.exp(-r * r / 2))


@pytest.mark.parametrize("bound", [-2.5, -1.0, -0.1, 0.0, 0.7, 1.96, 3.0])
def test_both_numbers_are_gaussian(bound):
    for numbers in box_muller(*uniform_pairs()):
        assert near((numbers < bound).mean(), normal_below(bound))


@pytest.mark.parametrize("bounds", [(-1.0, -1.0), (0.0, 1.0), (0.5, -0.5), (2.0, 2.0)])
def test_the_two_numbers_are_independent(bounds):
    """Both are made of the same radius, yet Pr(X < a and Y < b) is the product (the lecture's homework)."""
    (a, b), (x, y) = bounds, box_muller(*uniform_pairs())
    assert near(((x < a) & (y < b)).mean(), normal_below(a) * normal_below(b))
    assert near(((abs(x) < 1) & (abs(y) < 1)).mean(), (1 - 2 * normal_below(-1)) ** 2)


def test_a_longer_row_of_gaussians_and_an_odd_one():
    numbers = gaussians(COUNT + 1, seed=2)
    assert numbers.shape == (COUNT + 1,)
    assert abs(numbers.mean()) < SIGMAS / COUNT**0.5
    assert abs((numbers**2).mean() - 1) < SIGMAS * (2 / COUNT) ** 0.5
    assert (gaussians(10, seed=2) == gaussians(10, seed=2)).all()
    assert (gaussians(10, seed=2) != gaussians(10, seed=3)).all()
    assert gaussians(0).shape == (0,)


@pytest.mark.parametrize("degrees", [10, 30, 45, 60, 80])
def test_gaussian_directions_fill_a_cap_by_its_area_and_latitudes_do_not(degrees):
    right, wrong = random_directions(COUNT, seed=1), latitude_longitude(COUNT, seed=1)
    assert near(polar_share(right, degrees), cap_share(degrees))
    assert near(polar_share(wrong, degrees), degrees / 90)
    assert not near(polar_share(wrong, degrees), cap_share(degrees))


def test_the_caps_of_30_degrees():
    assert cap_share(30) == pytest.approx(1 - math.sqrt(3) / 2)
    assert (cap_share(0), cap_share(90)) == (0, pytest.approx(1))


@pytest.mark.parametrize("dimensions", [1, 2, 3, 10])
def test_directions_are_unit_vectors_that_prefer_no_axis(dimensions):
    points = random_directions(20_000, dimensions, seed=7)
    assert points.shape == (20_000, dimensions)
    assert np.linalg.norm(points, axis=1) == pytest.approx(1)
    for axis in points.T:
        assert near((axis > 0).mean(), 0.5, 20_000)
        spread = 2 * (dimensions - 1) / (dimensions**2 * (dimensions + 2))  # the variance of a squared component
        assert abs((axis**2).mean() - 1 / dimensions) <= SIGMAS * (spread / 20_000) ** 0.5 + 1e-12


@pytest.mark.parametrize("degrees", [20, 60, 90, 150])
@pytest.mark.parametrize("upright", [False, True], ids=["along the equator", "from north to south"])
def test_hyperplanes_separate_by_the_angle(degrees, upright):
    half = math.radians(degrees / 2)
    x, y = [math.cos(half), math.sin(half), 0], [math.cos(half), -math.sin(half), 0]
    if upright:
        x, y = ([v[0], 0, v[1]] for v in (x, y))
    assert near(same_side(random_directions(COUNT, seed=3), x, y), 1 - degrees / 180)
    wrong = same_side(latitude_longitude(COUNT, seed=3), x, y)
    assert near(wrong, 1 - degrees / 180) is not upright


def test_how_wrong_latitudes_are_for_a_right_angle():
    """The same side if the latitude's tangent is below the cosine of the longitude: the mean of (2/π)·arctan|cos|."""
    longitude = (np.arange(10_000) + 0.5) / 10_000 * 2 * np.pi
    expected = float((2 / np.pi * np.arctan(abs(np.cos(longitude)))).mean())
    assert expected == pytest.approx(0.3426, abs=1e-4)
    assert near(same_side(latitude_longitude(COUNT, seed=4), [1, 0, 1], [1, 0, -1]), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: box_muller([1.0], [0.5]), r"'u' parameter of box_muller must be numbers in \[0, 1\)"),
        (lambda: box_muller([0.5], [-0.1]), "'v'"),
        (lambda: box_muller([math.nan], [0.1]), "'u'"),
        (lambda: gaussians(-1), "'count'"),
        (lambda: gaussians(1, seed="x"), "'seed'"),
        (lambda: random_directions(3, 0), "'dimensions'"),
        (lambda: latitude_longitude(2.0), "'count'"),
        (lambda: polar_share([[1, 0]], 30), "three numbers"),
        (lambda: polar_share(random_directions(2), 91), "'degrees' parameter of polar_share must be in \\[0, 90\\]"),
        (lambda: cap_share(-1), "'degrees' parameter of cap_share"),
        (lambda: same_side([[1, 0, 0]], [1, 0], [0, 1]), "as long as x and y"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
