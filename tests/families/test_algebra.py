"""The algebra of families: curves against exact fractions, fixed points and slopes against formulas."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import MinHash, ParameterError
from likewise.families.algebra import Composed, Family, plot_many
from likewise.families.functions import Sensitivity
from likewise.families.vectors import Hyperplanes, RandomLines
from likewise.view import charts

STEPS = st.lists(st.tuples(st.sampled_from(["all", "any"]), st.integers(1, 5)), max_size=4)
ODDS = np.linspace(-30, 30, 2001)


def composed(steps, family=None):
    family = family or MinHash()
    for kind, k in steps:
        family = family.all_of(k) if kind == "all" else family.any_of(k)
    return family


def exact(steps, p):
    """The curve in whole fractions."""
    for kind, k in steps:
        p = p**k if kind == "all" else 1 - (1 - p) ** k
    return p


@given(steps=STEPS, p=st.fractions(0, 1, max_denominator=64))
def test_a_curve_is_its_steps_one_after_the_other(steps, p):
    family = composed(steps)
    assert family.functions == math.prod(k for _, k in steps)
    assert family.curve(float(p)) == pytest.approx(float(exact(steps, p)), rel=1e-12, abs=0)
    assert family.probability(1 - float(p)) == pytest.approx(float(exact(steps, p)), rel=1e-9, abs=1e-15)
    assert family.curve([float(p)] * 2) == pytest.approx([family.curve(float(p))] * 2, rel=1e-12)


@given(steps=STEPS, p=st.fractions(Fraction(1, 64), Fraction(63, 64), max_denominator=64))
def test_the_slope_is_that_of_a_short_piece_of_the_curve(steps, p):
    short = Fraction(1, 10**9)
    slope = (exact(steps, p + short) - exact(steps, p - short)) / (2 * short)
    assert composed(steps).slope(float(p)) == pytest.approx(float(slope), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("steps", [[("any", 10**15)], [("any", 10**15), ("all", 10**6)], [("all", 3), ("any", 10**12)]])
@pytest.mark.parametrize("p", [1e-17, 1e-12, 1e-4, 0.3])
def test_no_digits_are_lost_with_very_many_functions(steps, p):
    with localcontext() as context:
        context.prec = 200
        precise = Decimal(p)
        for kind, k in steps:
            rest = 1 - precise
            precise = precise**k if kind == "all" else 1 - rest**k
    assert composed(steps).curve(p) == pytest.approx(float(precise), rel=1e-9, abs=1e-300)


def test_a_probability_that_rounds_to_1_still_falls_under_an_and():
    """Of 40 functions at 0.6 some one agrees but for 1 in 10^16; of 10^16 such ORs, e^(−1.2) of the time all do."""
    missed = 0.4**40
    assert composed([("any", 40), ("all", 10**16)]).curve(0.6) == pytest.approx(math.exp(-(10**16) * missed), rel=1e-9)


@given(steps=STEPS)
def test_a_cascade_of_both_kinds_has_exactly_one_fixed_point(steps):
    family = composed(steps)
    fixed = family.fixed_point()
    if {kind for kind, k in steps if k > 1} != {"all", "any"}:
        assert fixed is None
        return
    assert family.curve(fixed) == pytest.approx(fixed, rel=1e-9)
    p = 1 / (1 + np.exp(-ODDS))
    p = p[np.abs(p - fixed) > 1e-6]
    rises = family.curve(p) > p
    assert (rises == (p > fixed))[(p > 1e-12) & (p < 1 - 1e-9)].all()


def test_fixed_points_very_near_to_0_and_to_1():
    assert composed([("all", 2), ("any", 10**15)]).fixed_point() == pytest.approx(1e-15, rel=1e-9)
    assert composed([("any", 10**15), ("all", 3)]).fixed_point() == pytest.approx(10**-22.5, rel=1e-6)  # (bp)³ = p
    assert 1 - composed([("any", 2), ("all", 10**9)]).fixed_point() == pytest.approx(1e-9, rel=1e-6)


@given(steps=STEPS)
def test_nowhere_is_a_curve_steeper_than_where_it_is_steepest(steps):
    family = composed(steps)
    steepest = family.steepest()
    assert steepest.slope == family.slope(steepest.p)
    assert family.slope(np.linspace(0, 1, 4001)).max() <= steepest.slope * (1 + 1e-12)


@pytest.mark.each_value
@pytest.mark.parametrize("r", [2, 3, 5, 40])
@pytest.mark.parametrize("b", [2, 7, 1000, 10**12])
def test_the_steepest_point_of_bands_and_its_mirror_image(r, b):
    """Exercise 3.6.4: p^r = (r − 1)/(rb − 1), and of an OR before an AND (1 − p)^b = (b − 1)/(rb − 1)."""
    p = ((r - 1) / (r * b - 1)) ** (1 / r)
    slope = r * b * p ** (r - 1) * math.exp((b - 1) * math.log1p(-(p**r)))
    assert composed([("all", r), ("any", b)]).steepest() == pytest.approx((p, slope), rel=1e-6)
    mirrored = composed([("any", b), ("all", r)]).steepest()
    assert mirrored.p == pytest.approx(-math.expm1(math.log((b - 1) / (r * b - 1)) / b), rel=1e-6)


def test_curves_that_are_steepest_at_an_end_or_nowhere():
    assert composed([("all", 3)]).steepest() == (1.0, 3.0)
    assert composed([("any", 3)]).steepest() == (0.0, 3.0)
    assert composed([("all", 1)]).steepest() == (0.5, 1.0)


def test_the_higher_of_two_peaks_is_found_however_narrow():
    family = composed([("all", 50), ("any", 10**15), ("all", 10**4), ("any", 10**6)])
    p = np.linspace(0.5, 0.54, 400_001)
    assert family.steepest().slope == pytest.approx(family.slope(p).max(), rel=1e-6)


def test_a_composed_family_is_a_value():
    family = MinHash(7).all_of(4).any_of(np.int64(16))
    assert family == MinHash(7).all_of(4).any_of(16)
    assert family != MinHash(8).all_of(4).any_of(16)
    assert family != MinHash(7).any_of(16).all_of(4)
    assert len({family, MinHash(7).all_of(4).any_of(16)}) == 1
    assert str(family) == "MinHash(seed=7, method='fast').all_of(4).any_of(16)"
    assert eval(repr(family)) == family
    assert isinstance(family, Composed)
    assert family.base == MinHash(7)
    assert (MinHash().steps, MinHash().functions, MinHash().base) == ((), 1, MinHash())


def test_sensitivity_names_its_numbers():
    assert Hyperplanes().sensitivity(30, 90) == Sensitivity(d1=30, d2=90, p1=1 - 30 / 180, p2=0.5)
    with pytest.raises(ParameterError, match="'d1' parameter of sensitivity must be less than d2 = 30"):
        Hyperplanes().sensitivity(30, 30)


@pytest.mark.parametrize("k", [0, -1, 2.0, "3", True, None])
def test_steps_are_counted_in_whole_numbers(k):
    with pytest.raises(ParameterError, match="'r' parameter of all_of"):
        MinHash().all_of(k)
    with pytest.raises(ParameterError, match="'b' parameter of any_of"):
        MinHash().any_of(k)


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, [0.5, 2]])
def test_probabilities_are_from_0_to_1(p):
    for method in (MinHash().curve, MinHash().all_of(2).slope):
        with pytest.raises(ParameterError, match=r"must be in \[0, 1\]"):
            method(p)


def test_families_have_nothing_absent_unless_they_say_so():
    assert Family.absent is None


def test_plots(tmp_path):
    family = MinHash().all_of(4).any_of(4)
    figure = family.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    [axes] = figure.axes
    lines = {len(line.get_xdata()): line for line in axes.lines}
    curve = lines[charts.POINTS]
    assert (curve.get_ydata() == family.curve(np.asarray(curve.get_xdata()))).all()
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if len(line.get_xdata()) == 1]
    assert points == [(family.fixed_point(),) * 2, (family.steepest().p, family.curve(family.steepest().p))]
    assert "all of 4, any of 4" in axes.get_legend().get_texts()[1].get_text()


def test_plots_over_distance_and_side_by_side(tmp_path):
    families = [RandomLines(2.0), RandomLines(2.0).all_of(3).any_of(5)]
    [axes] = plot_many(families, tmp_path / "curves.svg", distances=[0, 8], labels=["one", "many"]).axes
    for family, line in zip(families, axes.lines, strict=True):
        assert (line.get_ydata() == family.probability(np.asarray(line.get_xdata()))).all()
    assert (axes.get_xlabel(), axes.lines[0].get_xdata()[[0, -1]].tolist()) == ("distance (L2)", [0, 8])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "many"]
    first = (tmp_path / "curves.svg").read_bytes()
    plot_many(families, tmp_path / "curves.svg", distances=[0, 8], labels=["one", "many"])
    assert (tmp_path / "curves.svg").read_bytes() == first


def test_what_plots_refuse(tmp_path, monkeypatch):
    from likewise import LikewiseError, OutputError

    with pytest.raises(ParameterError, match="one or more families"):
        plot_many([])
    with pytest.raises(ParameterError, match="one for each of 1 families"):
        plot_many([MinHash()], labels=["a", "b"])
    with pytest.raises(ParameterError, match="two or more distances"):
        MinHash().plot(distances=[0.5])
    with pytest.raises(ParameterError, match="for one distance"):
        plot_many([MinHash(), Hyperplanes()], distances=[0, 1])
    with pytest.raises(OutputError, match="cannot be written"):
        MinHash().plot(tmp_path / "nowhere" / "curve.png")
    monkeypatch.setattr("likewise.base.extras.find_spec", lambda name: None)
    with pytest.raises(LikewiseError, match=r"pip install 'likewise\[plot\]'"):
        MinHash().plot()
