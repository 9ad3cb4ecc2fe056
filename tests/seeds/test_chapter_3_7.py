"""Section 3.7 of the chapter, and the lecture on it: families for Hamming, cosine and Euclidean distance."""

from itertools import combinations, product

import numpy as np
import pytest

from likewise.families.vectors import BitSampling, Hyperplanes, RandomLines, SignSketch, UnaryCode
from likewise.measures import angle, hamming, lr

SIGMAS = 4.4


def to_digits(printed: str):
    """Equal to the digits that are printed: within half a unit of the last one."""
    return pytest.approx(float(printed), abs=0.5 * 10 ** -len(printed.partition(".")[2]))


def sketches(vectors, directions):
    """The sketches of vectors (+1 or −1) by these vectors of +1 and −1."""
    return 2 * SignSketch.from_directions(directions).hashes(vectors, len(directions)).astype(int) - 1


estimate = SignSketch.estimate


def test_3_7_1_one_function_for_each_bit():
    assert BitSampling(20).sensitivity(3, 8) == (3, 8, 1 - 3 / 20, 1 - 8 / 20)
    assert set(BitSampling(6).places(100).tolist()) == set(range(6))  # no more than d different functions


def test_3_7_2_random_hyperplanes():
    assert Hyperplanes().sensitivity(30, 120) == (30, 120, pytest.approx(150 / 180), pytest.approx(60 / 180))


EXAMPLE_3_21 = [[1, -1, 1, 1], [-1, 1, -1, 1], [1, 1, -1, -1]]
ALL_SIXTEEN = [list(signs) for signs in product([1, -1], repeat=4)]


def test_example_3_21_three_vectors_are_too_few():
    x, y = [3, 4, 5, 6], [4, 3, 2, 1]
    a, b = sketches([x, y], EXAMPLE_3_21)
    assert a.tolist() == [1, 1, -1]
    assert b.tolist() == [1, -1, 1]
    assert estimate(a, b) == pytest.approx(120)
    assert angle(x, y) == to_digits("38.0")
    assert np.cos(np.radians(angle(x, y))) == to_digits("0.7875")


def test_example_3_21_all_sixteen_vectors():
    x, y = [3, 4, 5, 6], [4, 3, 2, 1]
    a, b = sketches([x, y], ALL_SIXTEEN)
    differ = [v for v, apart in zip(ALL_SIXTEEN, a != b, strict=True) if apart]
    assert sorted(differ) == sorted([[-1, 1, -1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [-1, -1, 1, 1]])
    assert estimate(a, b) == 45


def test_3_10_the_summary_says_agree_where_it_means_differ():
    """The angle is 180° times the fraction of positions that differ; by those that agree, x would be opposite to x."""
    x, y = [3, 4, 5, 6], [4, 3, 2, 1]
    a, b = sketches([x, y], ALL_SIXTEEN)
    assert estimate(a, a) == angle(x, x) == 0
    assert estimate(a, -a) == angle(x, [-n for n in x]) == 180
    assert abs(180 * np.mean(a != b) - angle(x, y)) < 8 < 90 < abs(180 * np.mean(a == b) - angle(x, y))
    assert estimate(a, b) == 180 * np.mean(a != b)


def test_3_7_4_lines_in_the_plane():
    """At an angle θ the chance is 1 − d·cos θ/a, or none; over all angles, at least 1/2 at a/2, at most 1/3 at 2a.

    The angles are those of the lines that the family draws. (The Gaussian vectors also differ in length, so the
    family's own curve is another one; the bounds hold for both.)
    """
    n = 100_000
    lines = RandomLines(1.0).directions(n, 2)
    cosine = np.abs(lines[:, 0]) / np.linalg.norm(lines, axis=1)
    chances = {d: np.maximum(0, 1 - d * cosine) for d in (0.5, 2)}
    for d, printed in ((0.5, 0.6817), (2, 0.1628)):
        assert abs(chances[d].mean() - printed) < SIGMAS * chances[d].std() / n**0.5 + 0.00005
    assert chances[0.5].min() >= 1 / 2
    steep = cosine < 0.5  # an angle above 60°
    assert not chances[2][~steep].any()
    assert abs(steep.mean() - 1 / 3) < SIGMAS * (2 / 9 / n) ** 0.5
    assert chances[2].mean() <= steep.mean()


@pytest.mark.parametrize("a", [0.1, 1, 7.5])
def test_3_7_4_and_lecture_random_lines_are_sensitive_in_any_number_of_dimensions(a):
    _, _, p1, p2 = RandomLines(a).sensitivity(a / 2, 2 * a)
    assert p1 >= 1 / 2
    assert p2 <= 1 / 3


def test_3_7_5_any_two_distances_will_do():
    """The bounds above are for d2 = 4·d1 and more (the chapter prints "d1 < 4d2"); the true curve falls everywhere."""
    d1, d2 = 1 / 2, 2
    assert 4 * d1 == d2
    distances = np.linspace(0, 20, 2001)
    assert (np.diff(RandomLines(1.0).probability(distances)) < 0).all()
    _, _, p1, p2 = RandomLines(1.0).sensitivity(1, 1.01)
    assert p1 > p2
    _, _, p1, p2 = RandomLines(1.0).all_of(10).any_of(300).sensitivity(0.5, 1.0)
    assert p1 > 0.85 > 0.02 > p2


def test_exercise_3_7_1():
    vectors = np.array([[int(bit) for bit in bits] for bits in ("000000", "110011", "010101", "011100")])
    family, n = BitSampling(6), 100
    values, places = family.hashes(vectors, n), family.places(n)
    agreed = {
        (i + 1, j + 1): sorted({int(place) + 1 for place in places[values[i] == values[j]]})
        for i, j in combinations(range(4), 2)
    }
    assert agreed == {
        (1, 2): [3, 4], (1, 3): [1, 3, 5], (1, 4): [1, 5, 6],
        (2, 3): [2, 3, 6], (2, 4): [2], (3, 4): [1, 2, 4, 5],
    }  # fmt: skip


EXERCISE_3_7_2 = [[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]]
VECTORS = [[2, 3, 4, 5], [-2, 3, -4, 5], [2, -3, 4, -5]]
TRUE_ANGLES = ["74.97", "105.03", "180.00"]


def test_exercise_3_7_2():
    found = sketches(VECTORS, EXERCISE_3_7_2)
    assert found.tolist() == [[1, 1, 1, 1], [-1, 1, -1, 1], [1, -1, 1, -1]]
    assert [estimate(a, b) for a, b in combinations(found, 2)] == [90, 90, 180]
    assert [angle(x, y) for x, y in combinations(VECTORS, 2)] == [to_digits(printed) for printed in TRUE_ANGLES]


def test_exercise_3_7_3():
    """Each vector has two products of 0, which count as +1: so the last two, opposite as they are, agree twice."""
    found = sketches(VECTORS, ALL_SIXTEEN)
    assert (np.array(ALL_SIXTEEN) @ np.array(VECTORS).T == 0).sum(axis=0).tolist() == [2, 2, 2]
    estimates = [estimate(a, b) for a, b in combinations(found, 2)]
    assert estimates == [67.5, 112.5, 157.5]
    few = [90, 90, 180]
    truth = [angle(x, y) for x, y in combinations(VECTORS, 2)]
    assert [abs(a - b) < abs(c - b) for a, b, c in zip(estimates, truth, few, strict=True)] == [True, True, False]


def test_exercise_3_7_4_a_sketch_tells_which_component_outweighs_the_others():
    """(a) All are +1 if no component is more than the sum of the other three.

    (b) Two sketches are the same if the same components are more than the other three together. (Of positive numbers
    that can be one at most.)
    """
    vectors = np.random.default_rng(1).integers(-9, 10, (400, 4))
    vectors = vectors[vectors.any(axis=1)]
    found = sketches(vectors, EXERCISE_3_7_2)
    outweighs = 2 * vectors > vectors.sum(axis=1, keepdims=True)
    for one, (a, b, c, d), more in zip(found.tolist(), vectors.tolist(), outweighs, strict=True):
        assert (one == [1] * 4) == (a + b + c >= d and a + b + d >= c and a + c + d >= b and b + c + d >= a)
        assert (one == found[0].tolist()) == (more == outweighs[0]).all()
    positive = (vectors > 0).all(axis=1)
    assert positive.any()
    assert outweighs[positive].sum(axis=1).max() == 1


POINTS = np.array([[1, 2, 3], [0, 2, 4], [4, 3, 2]])


def axes(a):
    """Buckets of length a on the axes, one function for each axis, instead of on random lines."""
    return RandomLines.from_directions(np.eye(3), a)


def candidates(a):
    """The pairs of points that share a bucket of length a on one of the three axes."""
    found = axes(a).any_of(3).candidates(POINTS, sample=0)
    return [(i + 1, j + 1) for i, j in zip(found.left.tolist(), found.right.tolist(), strict=True)]


def test_exercise_3_7_5():
    assert axes(1).hashes(POINTS, 3).tolist() == [[1, 2, 3], [0, 2, 4], [4, 3, 2]]
    assert axes(2).hashes(POINTS, 3).tolist() == [[0, 1, 1], [0, 1, 2], [2, 1, 1]]
    assert candidates(1) == [(1, 2)]
    assert candidates(2) == [(1, 2), (1, 3), (2, 3)]


def test_exercise_3_7_5_d_lengths_of_buckets():
    """p1 and p2 have the same y, and always meet. Either meets p3 where no multiple of a lies in (2, 3]."""
    lengths = np.arange(1, 400) / 80
    for a in lengths:
        meets = 1.5 < a <= 2 or a > 3
        assert candidates(a) == ([(1, 2), (1, 3), (2, 3)] if meets else [(1, 2)])


def test_lecture_bit_sampling_as_a_c_r_sensitive_family():
    assert BitSampling(300).sensitivity(100, 200) == (100, 200, pytest.approx(2 / 3), pytest.approx(1 / 3))


def test_lecture_manhattan_distance_is_hamming_distance_of_unary_codes():
    largest, dimensions = 5, 2
    x, y = np.array([3, 1]), np.array([1, 5])
    codes = [np.concatenate([np.arange(largest) < value for value in point]) for point in (x, y)]
    assert hamming(*codes) == lr(x, y, 1) == 6
    assert UnaryCode(dimensions, largest).probability(6) == BitSampling(dimensions * largest).probability(6)
