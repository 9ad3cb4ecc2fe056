"""Parameter checks: what each accepts, what it returns, and the words of its error."""

import math
import os
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from likewise.base import checks
from likewise.errors import ParameterError, shown

NO_NUMBERS = [None, "1", True, False, np.True_, [1], 1j, np.complex64(1), object()]
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf")]
TYPES = [np.int8, np.uint8, np.int32, np.int64, np.uint64]


def says(words):
    return pytest.raises(ParameterError, match=f"^{re.escape(words)}$")


# whole numbers


@given(st.integers(), st.integers(-100, 100), st.integers(0, 200) | st.none())
@example(2**63, 0, None)
@example(2**63 - 1, 0, None)
def test_whole_numbers_within_bounds(value, least, width):
    most = None if width is None else least + width
    if least <= value <= (checks.LARGEST if most is None else most):
        assert checks.whole("f", "n", value, least, most) == value
    else:
        with pytest.raises(ParameterError):
            checks.whole("f", "n", value, least, most)


@pytest.mark.parametrize("kind", TYPES)
def test_whole_numbers_of_numpy_become_plain(kind):
    found = checks.whole("f", "n", kind(5))
    assert (found, type(found)) == (5, int)


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NOT_FINITE, 1.0, 2.5, np.float64(1)])
def test_no_whole_numbers(value):
    with says(f"The 'n' parameter of f must be a positive whole number. Got {value!r} instead."):
        checks.whole("f", "n", value)


def test_the_rule_for_whole_numbers_is_told():
    with says("The 'n' parameter of f must be a whole number of at least 0. Got -1 instead."):
        checks.whole("f", "n", -1, 0)
    with says("The 'n' parameter of f must be a whole number from 2 to 9. Got 10 instead."):
        checks.whole("f", "n", 10, 2, 9)
    with says("The 'n' parameter of f must be odd. Got 0 instead."):
        checks.whole("f", "n", 0, rule="odd")


# numbers


@given(st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.booleans())
def test_numbers_in_an_interval(value, open_left, open_right):
    inside = (value > 0 if open_left else value >= 0) and (value < 1 if open_right else value <= 1)
    if inside:
        assert checks.number("f", "x", value, 0, 1, open_left=open_left, open_right=open_right) == value
    else:
        ends = f"in {'(' if open_left else '['}0, 1{')' if open_right else ']'}"
        with says(f"The 'x' parameter of f must be {ends}. Got {value!r} instead."):
            checks.number("f", "x", value, 0, 1, open_left=open_left, open_right=open_right)


@pytest.mark.parametrize("value", [1, np.int16(1), np.float32(1), np.float64(1), np.longdouble(1)])
def test_numbers_of_every_type_become_floats(value):
    found = checks.number("f", "x", value)
    assert (found, type(found)) == (1.0, float)


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NOT_FINITE, 10**400])
def test_no_numbers(value):
    with says(f"The 'x' parameter of f must be a finite number. Got {shown(value)} instead."):
        checks.number("f", "x", value)


@pytest.mark.parametrize(
    ("bounds", "rule"),
    [
        ({"least": 2}, "a number of at least 2"),
        ({"least": 2, "open_left": True}, "a number above 2"),
        ({"most": -3}, "a number of at most -3"),
        ({"most": -3, "open_right": True}, "a number below -3"),
        ({"least": 0.5, "most": 1, "open_right": True}, "in [0.5, 1)"),
        ({"least": 9, "rule": "large"}, "large"),
    ],
)
def test_the_rule_for_numbers_is_told(bounds, rule):
    with says(f"The 'x' parameter of f must be {rule}. Got 0.25j instead."):
        checks.number("f", "x", 0.25j, **bounds)


# thresholds, recalls, seeds, threads


@pytest.mark.parametrize("value", [0, -0.1, 1.0001, *NO_NUMBERS, *NOT_FINITE])
def test_thresholds(value):
    assert checks.threshold("pairs", 1) == 1.0
    assert checks.threshold("pairs", np.float32(0.5)) == 0.5
    with says(f"The 'threshold' parameter of pairs must be in (0, 1]. Got {value!r} instead."):
        checks.threshold("pairs", value)
    with pytest.raises(ParameterError, match="The 'least' parameter of pairs"):
        checks.threshold("pairs", value, "least")


@pytest.mark.parametrize("value", [0, -0.1, 1.4, *NO_NUMBERS[3:], *NOT_FINITE])
def test_recalls(value):
    assert checks.recall("dedup", np.float64(0.99)) == 0.99
    with pytest.raises(ParameterError, match=r"'recall' parameter of dedup must be in \(0, 1\), such as 0\.99"):
        checks.recall("dedup", value)


def test_a_recall_of_one_is_explained():
    with says(
        "The 'recall' parameter of dedup must be in (0, 1), such as 0.99; no number of bands finds every pair for"
        " certain. Got 1 instead."
    ):
        checks.recall("dedup", 1)


@pytest.mark.parametrize("value", [-1, 2**64, 1.0, *NO_NUMBERS, *NOT_FINITE])
def test_seeds(value):
    for good in (0, 2**64 - 1, np.uint64(2**64 - 1)):
        assert checks.seed("MinHash", good) == int(good)
    with says(f"The 'seed' parameter of MinHash must be a whole number from 0 to 2**64 - 1. Got {value!r} instead."):
        checks.seed("MinHash", value)


@pytest.mark.parametrize("value", [0, -1, 1.5, *NO_NUMBERS[1:]])
def test_threads(value):
    assert checks.threads("dedup", 3) == 3
    assert checks.threads("dedup", np.int64(3)) == 3
    with says(f"The 'threads' parameter of dedup must be a positive whole number. Got {value!r} instead."):
        checks.threads("dedup", value)


def test_threads_by_default_are_the_cores_of_the_process():
    assert 1 <= checks.threads("dedup", None) <= (os.cpu_count() or 1)


# words, flags, primes


def test_choices():
    assert checks.choice("f", "how", "a", ("a", "b", "c")) == "a"
    for value in ("d", "A", "", None, 1, ["a"]):
        with says(f"The 'how' parameter of f must be 'a', 'b' or 'c'. Got {value!r} instead."):
            checks.choice("f", "how", value, ("a", "b", "c"))
    with says("The 'how' parameter of f must be 'a'. Got 'b' instead."):
        checks.choice("f", "how", "b", ["a"])


def test_flags():
    assert checks.flag("f", "on", np.True_) is True
    assert checks.flag("f", "on", False) is False
    for value in (0, 1, None, "yes", np.int64(1)):
        with says(f"The 'on' parameter of f must be True or False. Got {value!r} instead."):
            checks.flag("f", "on", value)


@given(st.integers(-10, 300))
def test_primes(value):
    if value > 1 and all(value % factor for factor in range(2, value)):
        assert checks.prime("f", "p", np.int64(value), 300) == value
    else:
        with says(f"The 'p' parameter of f must be a prime number up to 300. Got {value} instead."):
            checks.prime("f", "p", value, 300)


def test_large_primes_and_others_are_refused():
    for value in (1009, True, 7.0, None):
        with pytest.raises(ParameterError, match="a prime number up to 1,000"):
            checks.prime("f", "p", value, 1000)


# parameters without effect


def test_parameters_without_effect():
    checks.unused("pairs", {"bands": (None, None), "seed": (1, 1), "shingle": ("words:5", "words:5")}, "for vectors")
    for value in (20, 0, False, ""):
        with says("The 'bands' parameter of pairs has no effect for vectors. Leave it out."):
            checks.unused("pairs", {"bands": (value, None)}, "for vectors")


def test_seeded_generators_agree():
    assert checks.seeded("f", 5).random() == checks.seeded("f", np.int64(5)).random()
    with pytest.raises(ParameterError, match="'seed' parameter of f"):
        checks.seeded("f", -1)


LONG = ["x" * 10**6, [0] * 10**6, {1: "y" * 10**6}, 10**5000, np.zeros((1000, 1000)), "a\nb"]


@pytest.mark.parametrize("value", LONG, ids=["text", "list", "dict", "number", "array", "lines"])
def test_an_error_shows_a_long_value_in_one_short_line(value):
    told = str(ParameterError.of("f", "x", "short", value))
    assert len(told) < 150
    assert "\n" not in told
