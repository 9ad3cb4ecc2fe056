"""How the worked examples print a collection of sets: a matrix of 0s and 1s, one column per set."""

from collections.abc import Callable

import pytest

Columns = Callable[[str], list[set]]


@pytest.fixture
def columns() -> Columns:
    """Read such a matrix: the first entry of a line names its row, each further one belongs to a column."""

    def read(matrix: str) -> list[set]:
        lines = [line.split() for line in matrix.strip().splitlines()]
        rows = [int(name) if name.isdecimal() else name for name, *_ in lines]
        bits = zip(*(entries for _, *entries in lines), strict=True)
        return [{row for row, bit in zip(rows, column, strict=True) if bit == "1"} for column in bits]

    return read
