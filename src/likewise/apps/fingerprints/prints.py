"""Fingerprints as sets of minutiae (MMDS §3.8.4): `read_prints` reads them, a `Grid` makes sets of squares of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Ints, Sets, part_at
from likewise.errors import ColumnError, InputError, ParameterError
from likewise.io.read.find import files_of
from likewise.io.tables import as_floats, check_once, read_tables
from likewise.measures import batch

Floats = NDArray[np.float64]
OWNER = "fingerprints"
ANGLE = "angle"
IDS = ("print", "impression", "image", "id")
"""Columns that may name the print of a minutia, if none is given."""
DPI = 500.0
"""The resolution to which all distances refer: the usual one of scanners."""
LARGEST = 1500.0
"""Largest width or length of a print in pixels, three inches; beyond, the resolution must be wrong."""
MANY = 30
"""The directions of this many minutiae cannot all be within 2π degrees, so their unit must be wrong."""
UNITS = ("auto", "degrees", "radians")


@dataclass(frozen=True, eq=False)
class Prints:
    """Prints in the order of the input; print i has the minutiae offsets[i] to offsets[i + 1].

    x and y are in pixels at 500 dpi; `angle` is in radians, from the x axis towards the y axis, None if unknown.
    `fingers` is the finger of each print, None if unknown. `repeated` is the number of minutiae that were given more
    than once and left out. `inputs` are the files or objects that were read.
    """

    names: list[str]
    x: Floats
    y: Floats
    angle: Floats | None
    offsets: Ints
    fingers: list[str] | None = None
    repeated: int = 0
    inputs: list[dict[str, Any]] = field(default_factory=list)
    aside: tuple[()] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Ints:
        """The number of minutiae of every print."""
        return np.diff(self.offsets)

    @property
    def empty(self) -> list[str]:
        """The prints without minutiae."""
        return [self.names[number] for number in np.flatnonzero(self.sizes == 0).tolist()]

    def describe(self) -> list[dict[str, Any]]:
        """Return the files or objects that were read, for run.json."""
        return self.inputs or [{"object": "Prints", "rows": len(self.x)}]

    def take(self, rows: Ints) -> Prints:
        """Return some of the prints, in this order."""
        at = np.concatenate([np.zeros(0, np.int64), *(np.arange(self.offsets[i], self.offsets[i + 1]) for i in rows)])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[rows])]).astype(np.int64)
        angle = None if self.angle is None else self.angle[at]
        fingers = None if self.fingers is None else [self.fingers[i] for i in rows]
        return Prints([self.names[i] for i in rows], self.x[at], self.y[at], angle, offsets, fingers)

    def mirrored(self, middle: float = 0.0) -> Prints:
        """Return the mirror images of the prints, reflected at x = middle: plausible prints that are of no finger."""
        angle = None if self.angle is None else np.pi - self.angle
        return Prints(self.names, 2 * middle - self.x, self.y, angle, self.offsets, self.fingers)

    def and_(self, others: Prints) -> Prints:
        """Return these prints followed by others; the fingers are unknown unless those of all prints are known."""
        x, y = np.concatenate([self.x, others.x]), np.concatenate([self.y, others.y])
        directed = self.angle is not None and others.angle is not None
        angle = np.concatenate([self.angle, others.angle]) if directed else None
        offsets = np.concatenate([self.offsets, self.offsets[-1] + others.offsets[1:]])
        fingers = None if self.fingers is None or others.fingers is None else self.fingers + others.fingers
        return Prints(self.names + others.names, x, y, angle, offsets, fingers)


def read_prints(
    source: Any,
    *,
    id: str | None = None,
    x: str = "x",
    y: str = "y",
    angle: str | None = ANGLE,
    finger: str | None = None,
    angles: str = "auto",
    flip: bool = False,
    dpi: float = DPI,
) -> Prints:
    """Read prints from a table with one row per minutia: files, or a table in memory.

    id: the column that names the print; by default one called print, impression, image or id. A row with nothing but
        an id is a print without minutiae.
    x, y: the columns with the position. angle: the column with the direction of the minutia, from the x axis towards
        the y axis; None: directions are not read, and prints can only be compared if they are aligned. flip: angles
        turn the other way, as they do where y points down the image and angles are counter-clockwise. angles:
        "degrees", "radians", or "auto": degrees if one of them is beyond 2π.
    finger: the column that names the finger, if it is known. dpi: the resolution in pixels per inch.

    >>> prints = read_prints({"print": ["p", "p", "q"], "x": [10, 20, 15], "y": [5, 5, 9], "angle": [0, 90, 180]})
    >>> len(prints), prints.sizes.tolist(), prints.angle.round(2).tolist()
    (2, [2, 1], [0.0, 1.57, 3.14])
    """
    checks.choice(OWNER, "angles", angles, UNITS)
    checks.flag(OWNER, "flip", flip)
    checks.number(OWNER, "dpi", dpi, 10, 10_000, rule="from 10 to 10000 pixels per inch")
    parts = [_minutiae(table, name, id, x, y, angle, finger) for table, name in tables_of(source)]
    names = np.concatenate([part.names for part in parts])
    if not len(names):
        raise InputError(f"{parts[0].name}: there are no minutiae in it")
    values = np.concatenate([part.values for part in parts])
    labels = np.concatenate([part.labels for part in parts]) if finger else None
    if angle is not None:
        degrees = _in_degrees(values[:, 2], angles, parts)
        values[:, 2] = np.radians(values[:, 2]) if degrees else values[:, 2]
        values[:, 2] *= -1 if flip else 1
    values[:, :2] *= DPI / dpi
    kind = "object" if files_of(source) is None else "file"
    inputs = [{kind: part.name, "rows": len(part.names)} for part in parts]
    return replace(_grouped(names, values, labels, parts, angle is not None), inputs=inputs)


@dataclass(frozen=True, eq=False)
class _Minutiae:
    """The minutiae of one file or object: print, position and direction, finger; its name, the column of directions."""

    names: NDArray[Any]
    values: Floats
    labels: NDArray[Any]
    name: str
    angle: str | None


def tables_of(source: Any) -> list[tuple[pa.Table, str]]:
    """Return the tables of minutiae in files or in an object, each with its name."""
    return read_tables(source, OWNER, "source", "minutiae")


def _minutiae(
    table: pa.Table, place: str, id: str | None, x: str, y: str, angle: str | None, finger: str | None
) -> _Minutiae:
    there = table.column_names
    if id is None:
        id = next((name for name in IDS if name in there), None)
        if id is None:
            raise ColumnError(
                f"{place}: no column is called {', '.join(IDS[:-1])} or {IDS[-1]}; name the column of the print "
                f"with id='COLUMN'; the columns are: {', '.join(there)}"
            )
    wanted = [name for name in (id, x, y, finger) if name is not None]
    for name in wanted:
        if name not in there:
            raise ColumnError.of(place, name, there)
    if angle is not None and angle not in there:
        raise ColumnError(
            f"{place}: there is no column '{angle}' with the directions of the minutiae; name it with angle='COLUMN', "
            f"or set aligned=True if all prints are aligned; the columns are: {', '.join(there)}"
        )
    columns = [x, y] if angle is None else [x, y, angle]
    check_once(place, there, [*wanted, *columns])
    names = table[id].cast(pa.string()).to_numpy(zero_copy_only=False)
    blank = np.array([name is None or not name.strip() for name in names], bool)
    if blank.any():
        raise InputError(f"{place}: row {int(np.argmax(blank))}: the column '{id}' is empty; it must name the print")
    values = np.stack([as_floats(table[name]) for name in columns], axis=1)
    empty = np.stack([_missing(table[name]) for name in columns], axis=1).all(axis=1, keepdims=True)
    some = np.isnan(values) & ~empty
    wrong = some | np.isinf(values)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        got = table[columns[column]][row].as_py()
        raise InputError(f"{place}: row {row}: '{columns[column]}' must be a number, not {got!r}")
    labels = table[finger].cast(pa.string()).to_numpy(zero_copy_only=False) if finger else np.empty(0, object)
    return _Minutiae(names, values, labels, place, angle)


def _missing(column: Any) -> NDArray[np.bool_]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.asarray(pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), True))
    return np.asarray(column.is_null())


def _row(parts: list[_Minutiae], place: int) -> str:
    """Return the file and the row of a minutia."""
    number, row = part_at([len(part.names) for part in parts], place)
    return f"{parts[number].name}: row {row}"


def _in_degrees(angle: Floats, angles: str, parts: list[_Minutiae]) -> bool:
    sizes = np.nan_to_num(np.abs(angle))
    degrees = angles == "degrees" or (angles == "auto" and bool((sizes > 2 * np.pi + 1e-3).any()))
    if angles == "degrees" and len(sizes) >= MANY and not (sizes > 2 * np.pi + 1e-3).any():
        raise InputError(
            f"{_row(parts, 0)}: no '{parts[0].angle}' in this table is beyond 2π, so they cannot be degrees; "
            "use angles='radians'"
        )
    beyond = sizes > (360.5 if degrees else 2 * np.pi + 1e-3)
    if beyond.any():
        place = int(np.argmax(beyond))
        unit, most = ("degrees", "360") if degrees else ("radians", "2π")
        raise InputError(
            f"{_row(parts, place)}: '{parts[0].angle}' is {angle[place]:g}, beyond {most}; "
            f"angles were read as {unit}: use angles={'radians' if degrees else 'degrees'!r} if they are not"
        )
    return degrees


def _grouped(
    names: NDArray[Any], values: Floats, labels: NDArray[Any] | None, parts: list[_Minutiae], turned: bool
) -> Prints:
    """Group the minutiae by print, each once."""
    numbers: dict[str, int] = {}
    owner = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    fingers = None if labels is None else _fingers(owner, labels, list(numbers), parts)
    there = np.flatnonzero(~np.isnan(values[:, 0]))
    order = there[np.argsort(owner[there], kind="stable")]
    _, first = np.unique(np.column_stack([owner[order], values[order]]), axis=0, return_index=True)
    twice = len(order) - len(first)
    order = order[np.sort(first)]
    sizes = np.bincount(owner[order], minlength=len(numbers))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ends = pairwise(offsets.tolist())
    middle = np.array([np.median(values[order[a:b], :2], axis=0) if b > a else (0, 0) for a, b in ends])
    far = np.abs(values[order, :2] - np.repeat(middle, sizes, axis=0)).max(axis=1, initial=0)
    if (far > LARGEST / 2).any():
        place = order[int(np.argmax(far > LARGEST / 2))]
        raise InputError(
            f"{_row(parts, int(place))}: this minutia of print '{names[place]}' is {far.max():,.0f} pixels from the "
            f"middle of its print; a print has {LARGEST:g} pixels at most, at 500 dpi; give the resolution "
            "with dpi=1000 or the like"
        )
    angle = np.mod(values[order, 2], 2 * np.pi) if turned else None
    x, y = (np.ascontiguousarray(values[order, i]) for i in range(2))
    return Prints(list(numbers), x, y, angle, offsets, fingers, twice)


def _fingers(owner: Ints, labels: NDArray[Any], names: list[str], parts: list[_Minutiae]) -> list[str]:
    fingers: dict[int, str] = {}
    for place, (number, label) in enumerate(zip(owner.tolist(), labels.tolist(), strict=True)):
        if label is None or not label.strip():
            raise InputError(f"{_row(parts, place)}: the finger of print '{names[number]}' is empty")
        if fingers.setdefault(number, label) != label:
            raise InputError(
                f"{_row(parts, place)}: print '{names[number]}' is of finger '{label}' here, and of finger "
                f"'{fingers[number]}' before; are two prints called the same?"
            )
    return [fingers[number] for number in range(len(names))]


@dataclass(frozen=True)
class Grid:
    """A grid of squares of `side` pixels from (left, top) on, numbered row by row.

    A minutia within `border` of an edge of its square counts in the neighbouring square as well; near a corner in four.
    So two prints with a minutia slightly to either side of an edge still have a square in common.

    >>> grid = Grid(side=10, columns=4, rows=3, border=2)
    >>> grid.squares_of([5], [5]), grid.squares_of([9], [5]), grid.squares_of([11], [19])
    ([0], [0, 1], [4, 5, 8, 9])
    """

    side: float
    columns: int
    rows: int
    border: float = 0.0
    left: float = 0.0
    top: float = 0.0

    def __post_init__(self) -> None:
        checks.number("Grid", "side", self.side, 0, open_left=True)
        half = f"from 0 to less than half a side, {self.side / 2:g}"
        checks.number("Grid", "border", self.border, 0, self.side / 2, open_right=True, rule=half)
        checks.whole("Grid", "columns", self.columns)
        checks.whole("Grid", "rows", self.rows)
        if len(self) < 3:
            raise ParameterError.of(OWNER, "side", "so small that there are at least three squares", self.side)

    @classmethod
    def over(cls, prints: Prints, side: float = 20.0, border: float = 5.0) -> Grid:
        """Return a grid over all minutiae of these prints."""
        checks.number("Grid", "side", side, 0, open_left=True)
        if not len(prints.x):
            return cls(side, 3, 1, border)
        left, top = float(prints.x.min()), float(prints.y.min())
        columns, rows = (int((values.max() - values.min()) // side) + 1 for values in (prints.x, prints.y))
        return cls(side, max(columns, 3 if rows == 1 else 1), rows, border, left, top)

    def __len__(self) -> int:
        return self.columns * self.rows

    def squares_of(self, x: object, y: object) -> list[int]:
        """Return the squares of a print's minutiae, ascending."""
        across, down = np.asarray(x, np.float64), np.asarray(y, np.float64)
        numbers: list[int] = self.squares(Prints([""], across, down, None, np.array([0, len(across)]))).values.tolist()
        return numbers

    def squares(self, prints: Prints) -> Sets:
        """Return the set of squares of every print."""
        x, y = prints.x - self.left, prints.y - self.top
        outside = (x < 0) | (y < 0) | (x > self.columns * self.side) | (y > self.rows * self.side)
        if outside.any():
            minutia = int(np.argmax(outside))
            name = prints.names[int(np.searchsorted(prints.offsets, minutia, side="right")) - 1]
            raise InputError(
                f"a minutia of print '{name}' at ({prints.x[minutia]:g}, {prints.y[minutia]:g}) is outside the grid, "
                f"which extends from ({self.left:g}, {self.top:g}) to "
                f"({self.left + self.side * self.columns:g}, {self.top + self.side * self.rows:g})"
            )
        owner = np.repeat(np.arange(len(prints)), prints.sizes)
        codes = []
        for across in (-self.border, self.border):
            for down in (-self.border, self.border):
                column = np.clip((x + across) // self.side, 0, self.columns - 1).astype(np.int64)
                row = np.clip((y + down) // self.side, 0, self.rows - 1).astype(np.int64)
                codes.append((owner * self.rows + row) * self.columns + column)
        distinct = np.unique(np.concatenate(codes))
        sizes = np.bincount(distinct // len(self), minlength=len(prints))
        return Sets(distinct % len(self), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def density(self, squares: Sets) -> float:
        """Return the mean part of the squares that have a minutia."""
        return len(squares.values) / max(1, len(squares) * len(self))


def agreement(squares: Sets, left: Ints, right: Ints) -> float:
    """Return the mean part of the squares with a minutia in one print of a pair that have one in the other (Dice)."""
    return float(np.mean(batch.dice(squares.take(left), squares.take(right)))) if len(left) else 0.0
