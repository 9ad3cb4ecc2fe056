"""Families of vectors: their closed forms against numerical integration, and numbers at the edge of floats."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError, ParameterError
from likewise.families.stripes import Stripes
from likewise.families.vectors import (
    BitSampling,
    CauchyLines,
    Hyperplanes,
    RandomLines,
    SignSketch,
    UnaryCode,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
RATIOS = [1e-6, 1e-3, 0.05, 0.099, 0.1, 0.101, 0.2805, 0.2806, 0.5, 1.0, 2.0, 7.0, 50.0]


def integral(function, edges):
    """Gauss–Legendre on each interval between neighbouring edges."""
    total = 0.0
    for low, high in pairwise(edges):
        total += (high - low) / 2 * (WEIGHTS @ function((high - low) / 2 * NODES + (high + low) / 2))
    return total


def fine(x, last):
    """Edges that double from a hundredth of x up to the last."""
    return [0.0, *(x / 100 * 2.0 ** np.arange(max(1, math.ceil(math.log2(100 * last / x))))), last]


def bell(z):
    return np.exp(-(z**2) / 2) * math.sqrt(2 / math.pi)


def witch(z):
    return 2 / math.pi / (1 + z**2)


@pytest.mark.parametrize(("family", "density"), [(RandomLines, bell), (CauchyLines, witch)])
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("a", [1.0, 0.37, 20.0])
def test_lines_against_integration(family, density, ratio, a):
    """Projections |z|·d apart share a segment with probability 1 − |z|·d/a, if that is positive."""
    d = ratio * a
    reach = min(1 / ratio, 40) if density is bell else 1 / ratio
    expected = integral(lambda z: density(z) * (1 - z * ratio), fine(min(1.0, reach), reach))
    assert family(a).collision(d) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("ratio", RATIOS)
def test_stripes_against_integration(ratio):
    """Wrapped around the period of two stripes, projections z apart, 0 ≤ z ≤ 1, differ in colour with probability z."""
    k = np.arange(-200, 201)[:, None]
    spread = math.sqrt(2 * math.pi) * ratio
    wrapped = lambda z: 2 * np.exp(-(((z + 2 * k) / ratio) ** 2) / 2).sum(axis=0) / spread  # noqa: E731
    cauchy = lambda z: np.sinh(np.pi * ratio) / (2 * (np.sinh(np.pi * ratio / 2) ** 2 + np.sin(np.pi * z / 2) ** 2))  # noqa: E731
    for unit, density in (("L2", wrapped), ("L1", cauchy)):
        edges = fine(min(ratio, 1.0), 1.0)
        expected = integral(lambda z, density=density: z * density(z), edges)
        assert integral(density, edges) == pytest.approx(1, abs=1e-11)
        assert 1 - Stripes(3.0, unit).collision(3 * ratio) == pytest.approx(expected, abs=1e-12)


def test_stripes_near_and_far():
    for d in (1e-9, 1e-6, 1e-3):
        assert 1 - Stripes().collision(d) == pytest.approx(d * math.sqrt(2 / math.pi), abs=1e-15)
        first = 2 * d / math.pi * (1 + math.log(2 / (math.pi * d)))  # what is left out is of the third order
        assert 1 - Stripes(unit="L1").collision(d) == pytest.approx(first, abs=d**3 + 1e-15)
    for unit in ("L1", "L2"):
        assert Stripes(unit=unit).collision([0.0, 1e3, 1e300, math.inf]).tolist() == pytest.approx([1, 0.5, 0.5, 0.5])


@pytest.mark.parametrize("family", [RandomLines, CauchyLines, Stripes])
@given(d=st.floats(0, allow_infinity=True), a=st.floats(1e-300, 1e300))
def test_curves_are_probabilities_at_any_scale(family, d, a):
    p = family(a).collision(d)
    assert 0 <= p <= 1
    assert family(a).collision(0) == 1


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0])
def test_the_bound_of_the_chapter_for_segments(a):
    """(a/2, 2a, 1/2, 1/3), Section 3.7.4; the curve falls, so it is enough to look at both ends."""
    d1, d2, p1, p2 = RandomLines(a).sensitivity(a / 2, 2 * a)
    assert (d1, d2) == (a / 2, 2 * a)
    assert p1 >= 1 / 2
    assert p2 <= 1 / 3
    angles = (np.arange(100_000) + 0.5) / 100_000 * np.pi / 2
    at = lambda d: np.maximum(0, 1 - d / a * np.cos(angles)).mean()  # noqa: E731  the chapter's lines in the plane
    assert at(a / 2) == pytest.approx(1 - 1 / np.pi, abs=1e-6)
    assert at(2 * a) < 1 / 3


def test_segments_are_counted_from_a_random_place():
    """The number of the segment is ⌊projection/a + u⌋, u in [0, 1)."""
    lines = RandomLines(2.0, seed=3)
    points = np.random.default_rng(0).normal(size=(20, 5)) * 100
    along = points @ lines.directions(200, 5).T / 2
    begin = lines.hashes(points, 200) - along
    assert (begin.max(axis=0) > -1).all()
    assert (np.ptp(begin, axis=0) < 1).all()
    for unit in ("L1", "L2"):  # the origin too is as often black as white
        assert abs(Stripes(2.0, unit, seed=3).hashes([[0.0] * 5], 2000).mean() - 0.5) < 4.4 * 0.5 / 2000**0.5


@pytest.mark.parametrize("family", [RandomLines(1e-3), CauchyLines(1e-3), Stripes(1e-3), Stripes(1e-3, "L1")])
def test_numbers_too_large_for_segments_do_no_harm(family):
    """Cauchy numbers and narrow segments go past 32 bits, past the digits of a float, past 64 bits."""
    points = np.array([[1.0, 2.0], [1e6, -1e6], [1e15, 1e15], [1e300, -1e300], [-1e300, 3.0]])
    values = family.hashes(points, 3000)
    assert (values == family.hashes(points, 3000)).all()
    if values.dtype == np.int64:
        assert np.abs(values).max() > 2**32
        assert (values[1] != values[0]).mean() > 0.99
        assert (values[3] != values[2]).mean() > 0.99
    else:
        assert set(np.unique(values)) == {0, 1}


@pytest.mark.parametrize("family", [Hyperplanes(), SignSketch()])
def test_only_the_direction_counts(family):
    vectors = np.random.default_rng(5).normal(size=(30, 9))
    expected = family.hashes(vectors, 200)
    for scale in (2.0**-1000, 2.0**-40, 2.0**900):
        assert (family.hashes(vectors * scale, 200) == expected).all()
    assert (family.hashes(-vectors, 200) != expected).all()
    with pytest.raises(InputError, match="vector 2 is all zeros"):
        family.hashes([[1, 2], [0, 1], [0, 0]], 8)


def test_sides_are_those_of_the_normals():
    vectors = np.random.default_rng(6).integers(-9, 10, (40, 6)) + 0.5
    for family in (Hyperplanes(3), SignSketch(3)):
        assert (family.hashes(vectors, 100) == (vectors @ family.directions(100, 6).T >= 0)).all()


def test_signs_are_approximate_and_the_docstring_says_when():
    """All 16 normals of four components see 45° where there are 38° (Example 3.21); a large one hides the rest."""
    x, y = [3, 4, 5, 6], [4, 3, 2, 1]
    bits = SignSketch(1).hashes([x, y], 4000)
    exact, shown = SignSketch().distances([x, y], np.array([0]), np.array([1]))[0], 1 - (bits[0] == bits[1]).mean()
    assert exact == pytest.approx(38.05, abs=0.01)
    assert 180 * shown == pytest.approx(45, abs=4.4 * 180 * math.sqrt(3 / 16 / 4000))
    hidden = SignSketch(1).hashes([[10, 1, 1, 1], [10, -1, -1, -1]], 1000)
    assert (hidden[0] == hidden[1]).all()


def test_bits_of_any_type_are_the_same_components():
    rows = np.random.default_rng(7).integers(0, 2, (6, 12))
    family = BitSampling(12)
    expected = rows[:, family.places(40)]
    for kind in (bool, np.uint8, np.int64, np.float32, np.float64):
        assert (family.hashes(rows.astype(kind), 40) == expected).all()
    assert set(family.places(1000)) == set(range(12))
    mixed = family.hashes(np.array([[0.5] * 12, [-0.0] * 12, [0.0] * 12, [1e300] * 12]), 5)
    assert (mixed[1] == mixed[2]).all()
    assert len(np.unique(mixed[:, 0])) == 3


@given(data=st.data(), largest=st.integers(1, 9), dimensions=st.integers(1, 4))
def test_the_unary_code_is_written_out(data, largest, dimensions):
    """Every function is a bit of the code, and over all bits the Hamming distance is the Manhattan distance."""
    point = st.lists(st.integers(0, largest), min_size=dimensions, max_size=dimensions)
    rows = np.array([data.draw(point), data.draw(point)])
    code = (rows[:, :, None] > np.arange(largest)).reshape(2, -1)
    family = UnaryCode(dimensions, largest)
    assert np.count_nonzero(code[0] != code[1]) == family.distances(rows, np.array([0]), np.array([1]))[0]
    columns = {tuple(column) for column in code.T}
    assert {tuple(column) for column in family.hashes(rows, 50).T} <= columns


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomLines(0), "'a' parameter of RandomLines must be a number above 0. Got 0"),
        (lambda: CauchyLines(math.inf), "'a' parameter of CauchyLines"),
        (lambda: Stripes("1"), "'a' parameter of Stripes"),
        (lambda: Stripes(1, "L3"), "'unit' parameter of Stripes must be 'L2' or 'L1'"),
        (lambda: BitSampling(0), "'dimensions' parameter of BitSampling"),
        (lambda: UnaryCode(2, 1.5), "'largest' parameter of UnaryCode"),
        (lambda: BitSampling(3).hashes([[1, 0]], 4), "vectors have 2 components, not 3"),
        (lambda: RandomLines().hashes([[1, 2], [3]], 4), "same number of components"),
    ],
)
def test_parameters(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_rows_that_cannot_be_used_are_named():
    with pytest.raises(InputError, match="vector 1 contains a number that is not finite"):
        RandomLines().hashes([[1.0, 2.0], [np.inf, 0.0]], 4)
    with pytest.raises(InputError, match="vector 1 contains a number outside 0 to 5"):
        UnaryCode(2, 5).hashes([[1, 2], [6, 0]], 4)


DIRECTIONS = [[1, -1, 2.5], [-1, 1, 0], [0, 0, 3]]
GIVEN_POINTS = np.array([[1.0, 2.0, -0.5], [4.0, -3.0, 0.25], [-1.0, 0.0, 9.0]])


@pytest.mark.parametrize("family", [Hyperplanes, RandomLines, CauchyLines])
def test_directions_as_given(family):
    """By Python's own dot products; and the family knows no further functions."""
    given = family.from_directions(DIRECTIONS)
    dots = [[sum(p * q for p, q in zip(point, way, strict=True)) for way in DIRECTIONS] for point in GIVEN_POINTS]
    sides = [[int(dot >= 0) if family is Hyperplanes else math.floor(dot) for dot in row] for row in dots]
    assert given.hashes(GIVEN_POINTS, 3).tolist() == sides
    assert given.hashes(GIVEN_POINTS, 2).tolist() == [row[:2] for row in sides]
    assert given.directions(2, 3).tolist() == DIRECTIONS[:2]
    assert given == family.from_directions(DIRECTIONS) != family()
    assert hash(given) == hash(family.from_directions(DIRECTIONS))
    assert repr(given).startswith(f"{family.__name__}.from_directions(<3 of 3 components>")
    assert eval(repr(family(seed=3))) == family(seed=3)
    with pytest.raises(ParameterError, match="at most 3, the number of directions given"):
        given.hashes(GIVEN_POINTS, 4)
    with pytest.raises(ParameterError, match="2 components, and the directions given have 3"):
        given.hashes([[1.0, 2.0]], 3)
    for wrong in ([], [[]], [[1, 2], [3]], [[0, 0]], [1, 2], [[math.nan, 1]], [[math.inf, 1]], "ab", None):
        with pytest.raises(
            ParameterError, match=r"'directions' parameter .* a table of finite numbers, one direction per"
        ):
            family.from_directions(wrong)


def test_offsets_as_given():
    """Segment ⌊(projection + offset)/a⌋: an offset for each line, or one for all."""
    along = GIVEN_POINTS @ np.array(DIRECTIONS).T
    for offsets in (0, 0.7, [0.1, -5, 30]):
        lines = RandomLines.from_directions(DIRECTIONS, a=2.5, offsets=offsets)
        assert lines.hashes(GIVEN_POINTS, 3).tolist() == np.floor((along + offsets) / 2.5).astype(int).tolist()
    for wrong in ([1, 2], [[1, 2, 3]], math.inf, "x"):
        with pytest.raises(ParameterError, match="'offsets' parameter"):
            RandomLines.from_directions(DIRECTIONS, offsets=wrong)
    with pytest.raises(ParameterError, match="'a' parameter"):
        RandomLines.from_directions(DIRECTIONS, a=0)


def test_given_lines_probe_the_segments_next_to_a_query():
    points = np.array([[0.5, 0.5, 0.5], [0.95, 0.5, 0.5], [9.0, 9.0, 9.0]])
    near = RandomLines.from_directions(np.eye(3), a=1.0).near(points, r=0.2, c=4, k=3, L=1, probes=1)
    assert near.query([1.05, 0.5, 0.5]).row == 1


def test_sketches_have_directions_of_ones():
    assert SignSketch.from_directions([[1, -1]]).directions(1, 2).tolist() == [[1, -1]]
    with pytest.raises(ParameterError, match="rows of \\+1 and −1"):
        SignSketch.from_directions([[1, -2]])


@pytest.mark.parametrize("degrees", [0, 20, 90, 155, 180])
def test_the_angle_from_sketches(degrees):
    """Within 4.4 standard errors of a share of n positions."""
    n, turn = 20_000, math.radians(degrees)
    x, y = Hyperplanes(seed=5).hashes([[1, 0, 0], [math.cos(turn), math.sin(turn), 0]], n)
    p = degrees / 180
    assert abs(Hyperplanes.estimate(x, y) - degrees) <= 180 * 4.4 * (p * (1 - p) / n) ** 0.5 + 1e-9
    assert Hyperplanes.estimate(2.0 * x - 1, 2.0 * y - 1) == Hyperplanes.estimate(x, y)


def test_sketches_that_cannot_be_compared():
    for a, b in (([1, 0], [1]), ([], []), ([[1]], [[1]]), (["a"], ["a"]), (None, [1])):
        with pytest.raises(ParameterError, match="parameter of estimate"):
            Hyperplanes.estimate(a, b)
