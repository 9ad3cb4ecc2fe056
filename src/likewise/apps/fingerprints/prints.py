"""Fingerprints as their minutiae: where they lie, which way they point, which print they are of (Section 3.8.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.errors import ColumnError, InputError, ParameterError
from likewise.io.tables import as_floats, check_once, read_tables

Floats = NDArray[np.float64]
OWNER = "fingerprints"
IDS = ("print", "impression", "image", "id")
"""Columns that may name the print of a minutia, if none is given."""
DPI = 500.0
"""The resolution that all distances here are meant for: the usual one of scanners."""
LARGEST = 1500.0
"""No finger is wider or longer, in pixels: three inches."""
MANY = 30
"""So many directions are not all within 2π degrees."""
UNITS = ("auto", "degrees", "radians")


@dataclass(frozen=True, eq=False)
class Prints:
    """Prints by number, in the order in which they came: minutiae offsets[i] to offsets[i + 1] are those of print i.

    x and y are in pixels at 500 dpi; `angle` is in radians, from the x axis towards the y axis, None if it is not
    known. `fingers` says of which finger a print is, None if that is not known. `notes` tells what was noticed.
    """

    names: list[str]
    x: Floats
    y: Floats
    angle: Floats | None
    offsets: Ints
    fingers: list[str] | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Ints:
        """The number of minutiae of every print."""
        return np.diff(self.offsets)

    def take(self, rows: Ints) -> Prints:
        """Return some of the prints, in this order."""
        at = np.concatenate([np.zeros(0, np.int64), *(np.arange(self.offsets[i], self.offsets[i + 1]) for i in rows)])
        return Prints(
            [self.names[i] for i in rows],
            self.x[at],
            self.y[at],
            None if self.angle is None else self.angle[at],
            np.concatenate([[0], np.cumsum(self.sizes[rows])]).astype(np.int64),
            None if self.fingers is None else [self.fingers[i] for i in rows],
        )

    def mirrored(self, middle: float = 0.0) -> Prints:
        """Return the prints as a mirror shows them: as real as others to look at, but no finger has left them.

        The mirror stands upright at x = middle.
        """
        angle = None if self.angle is None else np.pi - self.angle
        return Prints(self.names, 2 * middle - self.x, self.y, angle, self.offsets, self.fingers)

    def and_(self, others: Prints) -> Prints:
        """Return these prints and others after them; of fingers nothing is said unless all are known."""
        known = self.fingers is not None and others.fingers is not None
        turned = self.angle is not None and others.angle is not None
        return Prints(
            self.names + others.names,
            np.concatenate([self.x, others.x]),
            np.concatenate([self.y, others.y]),
            np.concatenate([self.angle, others.angle]) if turned else None,
            np.concatenate([self.offsets, self.offsets[-1] + others.offsets[1:]]),
            (self.fingers or []) + (others.fingers or []) if known else None,
        )


def read(
    source: Any,
    *,
    id: str | None = None,
    x: str = "x",
    y: str = "y",
    angle: str | None = "angle",
    finger: str | None = None,
    angles: str = "auto",
    flip: bool = False,
    dpi: float = DPI,
) -> Prints:
    """Read minutiae from a table with one row a minutia: a file, or a table in memory.

    id: the column that names the print; without it, one called print, impression, image or id. A row with an id and
    nothing else stands for a print on which no minutiae were found.
    angle: the direction of the minutia, from the x axis towards the y axis; None: directions are not read, and prints
    can only be compared as they lie. flip: it turns the other way, as it does where y points down the image and angles
    go counter-clockwise. angles: "degrees", "radians", or "auto": degrees if one of them is beyond 2π.
    finger: the column that names the finger, if it is known. dpi: the resolution, in pixels an inch.

    >>> prints = read({"print": ["p", "p", "q"], "x": [10, 20, 15], "y": [5, 5, 9], "angle": [0, 90, 180]})
    >>> len(prints), prints.sizes.tolist(), prints.angle.round(2).tolist()
    (2, [2, 1], [0.0, 1.57, 3.14])
    """
    if angles not in UNITS:
        raise ParameterError.of(OWNER, "angles", "'auto', 'degrees' or 'radians'", angles)
    if isinstance(dpi, bool) or not isinstance(dpi, int | float) or not 10 <= dpi <= 10_000:
        raise ParameterError.of(OWNER, "dpi", "from 10 to 10000 pixels an inch", dpi)
    parts = [_part(*one, id, x, y, angle, finger) for one in tables_of(source)]
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
    return _grouped(names, values, labels, parts, angle is not None)


@dataclass(frozen=True, eq=False)
class _Part:
    names: NDArray[Any]
    values: Floats
    labels: NDArray[Any]
    name: str
    angle: str | None


def tables_of(source: Any) -> list[tuple[pa.Table, str]]:
    """Return the tables of minutiae in files or in an object, each with its name."""
    return read_tables(source, OWNER, "prints", "minutiae")


def _part(table: pa.Table, place: str, id: str | None, x: str, y: str, angle: str | None, finger: str | None) -> _Part:
    there = table.column_names
    if id is None:
        id = next((name for name in IDS if name in there), None)
        if id is None:
            raise ColumnError(
                f"{place}: no column is called {', '.join(IDS[:-1])} or {IDS[-1]}; say which one names the print, "
                f"with --id; the columns are: {', '.join(there)}"
            )
    wanted = [name for name in (id, x, y, finger) if name is not None]
    for name in wanted:
        if name not in there:
            raise ColumnError.of(place, name, there)
    if angle is not None and angle not in there:
        raise ColumnError(
            f"{place}: there is no column '{angle}' with the directions of the minutiae; name it with --angle, or say "
            f"--as-they-lie if all prints lie alike already; the columns are: {', '.join(there)}"
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
        raise InputError(f"{place}: row {row}: '{columns[column]}' must be a number, and is {got!r}")
    labels = table[finger].cast(pa.string()).to_numpy(zero_copy_only=False) if finger else np.empty(0, object)
    return _Part(names, values, labels, place, angle)


def _missing(column: Any) -> NDArray[np.bool_]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.asarray(pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), True))
    return np.asarray(column.is_null())


def _row(parts: list[_Part], place: int) -> str:
    """Name the row at this place of all parts together."""
    for part in parts:
        if place < len(part.names):
            return f"{part.name}: row {place}"
        place -= len(part.names)
    raise IndexError(place)


def _in_degrees(angle: Floats, angles: str, parts: list[_Part]) -> bool:
    sizes = np.nan_to_num(np.abs(angle))
    degrees = angles == "degrees" or (angles == "auto" and bool((sizes > 2 * np.pi + 1e-3).any()))
    if angles == "degrees" and len(sizes) >= MANY and not (sizes > 2 * np.pi + 1e-3).any():
        raise InputError(
            f"{_row(parts, 0)}: no '{parts[0].angle}' in this table is beyond 2π, so they cannot be degrees of so many "
            "minutiae; say --angles radians"
        )
    beyond = sizes > (360.5 if degrees else 2 * np.pi + 1e-3)
    if beyond.any():
        place = int(np.argmax(beyond))
        unit, most = ("degrees", "360") if degrees else ("radians", "2π")
        raise InputError(
            f"{_row(parts, place)}: '{parts[0].angle}' is {angle[place]:g}, beyond {most}; "
            f"angles were taken as {unit}: say --angles {'radians' if degrees else 'degrees'} if they are not"
        )
    return degrees


def _grouped(
    names: NDArray[Any], values: Floats, labels: NDArray[Any] | None, parts: list[_Part], turned: bool
) -> Prints:
    """Put the minutiae of a print together, each once."""
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
    middle = np.array([np.median(values[order[a:b], :2], axis=0) if b > a else (0, 0) for a, b in _ends(offsets)])
    far = np.abs(values[order, :2] - np.repeat(middle, sizes, axis=0)).max(axis=1, initial=0)
    if (far > LARGEST / 2).any():
        place = order[int(np.argmax(far > LARGEST / 2))]
        raise InputError(
            f"{_row(parts, int(place))}: this minutia of print '{names[place]}' lies {far.max():,.0f} pixels from the "
            f"middle of its print; a finger is {LARGEST:g} pixels long at most, at 500 dpi; say --dpi if it is another"
        )
    notes: dict[str, Any] = {"minutiae": len(order)}
    if twice:
        notes["repeated"] = twice
    if (sizes == 0).any():
        notes["empty"] = [name for name, size in zip(numbers, sizes.tolist(), strict=True) if size == 0]
    angle = np.mod(values[order, 2], 2 * np.pi) if turned else None
    x, y = (np.ascontiguousarray(values[order, i]) for i in range(2))
    return Prints(list(numbers), x, y, angle, offsets, fingers, notes)


def _ends(offsets: Ints) -> list[tuple[int, int]]:
    return list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))


def _fingers(owner: Ints, labels: NDArray[Any], names: list[str], parts: list[_Part]) -> list[str]:
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
