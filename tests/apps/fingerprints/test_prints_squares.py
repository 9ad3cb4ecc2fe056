"""The overlap rule against its definition, and the measures that come from squares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.fingerprints import Grid, agreement, read_prints
from likewise.errors import InputError, ParameterError

PLACES = st.lists(st.tuples(st.integers(0, 59), st.integers(0, 39)), max_size=12)


def naive_squares(places, side, columns, rows, border):
    """Every square whose sides, moved out by the border, have the minutia within; its own in any case."""
    found = set()
    for x, y in places:
        for column in range(columns):
            for row in range(rows):
                across = column * side - border <= x < (column + 1) * side + border
                down = row * side - border <= y < (row + 1) * side + border
                if across and down:
                    found.add(row * columns + column)
    return sorted(found)


@given(places=PLACES, border=st.sampled_from([0, 1, 2, 4]))
def test_squares(places, border):
    grid = Grid(10, 6, 4, border)
    assert grid.squares_of([x for x, _ in places], [y for _, y in places]) == naive_squares(places, 10, 6, 4, border)


def test_two_prints_that_a_border_divides():
    for border, shared in ((0, set()), (2, {0, 1})):
        grid = Grid(10, 6, 4, border)
        left, right = (set(grid.squares_of([x], [5])) for x in (9, 11))
        assert left & right == shared


def test_density_and_agreement():
    table = {"print": ["a", "a", "b", "b"], "x": [0, 35, 1, 15], "y": [0, 25, 2, 5], "angle": [0, 1, 2, 3]}
    prints = read_prints(table)
    grid = Grid.over(prints, side=10, border=0)
    assert (grid.columns, grid.rows) == (4, 3)
    squares = grid.squares(prints)
    assert grid.density(squares) == pytest.approx(4 / 24)
    assert agreement(squares, np.array([0]), np.array([1])) == pytest.approx(0.5)


def test_errors():
    with pytest.raises(InputError, match=r"print 'a' at \(35, 25\) is outside the grid"):
        Grid(10, 2, 9).squares(read_prints({"print": ["a"], "x": [35], "y": [25], "angle": [0]}))
    for wrong in ({"side": 0}, {"side": 10, "border": 5}, {"side": 10, "columns": 1, "rows": 2}):
        with pytest.raises(ParameterError):
            Grid(**{"columns": 4, "rows": 3, **wrong})
