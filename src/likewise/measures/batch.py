"""The measures for whole arrays of pairs: row i of one with row i of the other (MMDS §3.1 and §3.5).

Names and values are those of `likewise.measures`. Vectors are the rows of a table; y may also be a single vector, which
is compared with all rows of x. Tables are read in blocks, so they may be memory maps. Sets are given as `Sets`, or as
lists of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import measures
from likewise.errors import InputError, ParameterError, shown

__all__ = [
    "angle",
    "bag_jaccard",
    "containment",
    "cosine",
    "dice",
    "edit",
    "hamming",
    "jaccard",
    "jaccard_distance",
    "lr",
    "overlap",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UNEQUAL = "fcOmM"
"""The kinds of arrays that may hold a value that is not equal to itself: floats, complex, objects, times."""
BLOCK = 1 << 18
"""Numbers of a table processed at a time: 2 MB in double precision."""


class Overlap(NamedTuple):
    """The number of elements that each pair of sets shares, and the sizes of both."""

    shared: Ints
    a: Ints
    b: Ints

    @property
    def union(self) -> Ints:
        """The number of elements in either set."""
        return self.a + self.b - self.shared


def jaccard(a: Any, b: Any) -> Floats:
    """Return the Jaccard similarity of each pair of sets (MMDS §3.1.1).

    >>> jaccard([[1, 2, 3, 4], []], [[2, 3, 5, 7], []]).round(3).tolist()
    [0.333, 1.0]
    """
    pairs = _overlap("jaccard", a, b)
    return _ratio(pairs.shared, pairs.union, 1.0)


def jaccard_distance(a: Any, b: Any) -> Floats:
    """Return the Jaccard distance of each pair of sets (MMDS §3.5.3).

    >>> jaccard_distance([[1, 2, 3, 4]], [[2, 3, 4, 5]]).tolist()
    [0.4]
    """
    pairs = _overlap("jaccard_distance", a, b)
    return _ratio(pairs.union - pairs.shared, pairs.union, 0.0)


def containment(a: Any, b: Any) -> Floats:
    """Return the fraction of each set of `a` that is in its counterpart.

    >>> containment([[1, 2, 3, 4]], [[2, 3, 4, 5, 6, 7]]).tolist()
    [0.75]
    """
    pairs = _overlap("containment", a, b)
    return _ratio(pairs.shared, pairs.a, 1.0)


def dice(a: Any, b: Any) -> Floats:
    """Return the Dice coefficient of each pair of sets.

    >>> dice([[1, 2, 3, 4]], [[3, 4, 5, 6]]).tolist()
    [0.5]
    """
    pairs = _overlap("dice", a, b)
    return _ratio(2 * pairs.shared, pairs.a + pairs.b, 1.0)


def cosine(a: Any, b: Any) -> Floats:
    """Return the cosine similarity of each pair of sets. (The cosine distance of vectors is `angle`.)

    >>> cosine([[1]], [[1, 2, 3, 4]]).tolist()
    [0.5]
    """
    pairs = _overlap("cosine", a, b)
    return _ratio(pairs.shared, np.sqrt(pairs.a * pairs.b), pairs.union == 0)


def overlap(a: Any, b: Any) -> Floats:
    """Return the overlap coefficient of each pair of sets.

    >>> overlap([[1, 2]], [[2, 3, 4, 5]]).tolist()
    [0.5]
    """
    pairs = _overlap("overlap", a, b)
    return _ratio(pairs.shared, np.minimum(pairs.a, pairs.b), pairs.union == 0)


def bag_jaccard(a: Any, b: Any, union: Literal["sum", "max"] = "sum") -> Floats:
    """Return the Jaccard similarity of each pair of bags (MMDS §3.1.3).

    Bags are lists of elements, strings (bags of characters), mappings from element to count, or `Sets` that were made
    with bag=True.

    >>> bag_jaccard(["aaab", {"a": 3, "b": 1}], ["aabbc", {"a": 2, "b": 2, "c": 1}], union="max").tolist()
    [0.5, 0.5]
    """
    from likewise.base import checks

    checks.choice("bag_jaccard", "union", union, ("sum", "max"))
    (first, counted), (second, also) = _bags_of("a", a), _bags_of("b", b)
    pairs = _counted_overlap(first, second) if counted or also else _overlap("bag_jaccard", first, second, bag=True)
    whole = pairs.a + pairs.b if union == "sum" else pairs.union
    return _ratio(pairs.shared, whole, 0.5 if union == "sum" else 1.0)


def lr(x: Any, y: Any, r: float = 2) -> Floats:
    """Return the distance of each pair of points by the Lr norm, r ≥ 1 or inf (MMDS §3.5.2).

    >>> lr([[2, 7], [1, 1]], [[6, 4], [1, 1]]).tolist(), lr([[2, 7], [1, 1]], [6, 4], r=1).tolist()
    ([5.0, 0.0], [7.0, 8.0])
    """
    from likewise.kernels.distances import norms

    power = measures.check_norm(r)
    return _distances("lr", x, y, lambda a, b, step, out: norms(a, b, step, power, out), _not_finite)


def angle(x: Any, y: Any) -> Floats:
    """Return the angle of each pair of vectors in degrees, from 0 to 180: the cosine distance (MMDS §3.5.4).

    >>> angle([[1, 2, -1], [0, 3, 0]], [[2, 1, 1], [0, -1, 0]]).round(9).tolist()
    [60.0, 180.0]
    """
    from likewise.kernels.distances import angles

    return _distances("angle", x, y, angles, _no_direction)


def hamming(x: Any, y: Any, packed: bool = False) -> Ints:
    """Return the number of components in which each pair of vectors differs (MMDS §3.5.6).

    Two strings of equal length are compared character by character. With packed=True the components are bits, eight per
    uint8, as `np.packbits` returns them, or 64 per uint64.

    >>> hamming(["10101", "abc"], ["11110", "abd"]).tolist(), hamming(["10101", "11111"], "11110").tolist()
    ([3, 1], [3, 1])
    >>> hamming([[1, 0, 1, 0, 1]], [[1, 1, 1, 1, 0]]).tolist()
    [3]
    >>> hamming(np.uint8([[0b10101]]), np.uint8([[0b11110]]), packed=True).tolist()
    [3]
    """
    from likewise.base import checks
    from likewise.kernels.distances import bit_distances

    strings = _strings(x)
    if strings is not None:
        checks.unused("hamming", {"packed": (packed, False)}, "for strings")
        return _string_distances(strings, y)
    a, b, step = _tables("hamming", x, y)
    packed = checks.flag("hamming", "packed", packed)
    if packed and not (a.dtype == b.dtype and a.dtype in (np.uint8, np.uint64)):
        raise ParameterError(
            f"hamming: packed rows must both be uint8 or both uint64; they are {a.dtype} and {b.dtype}"
        )
    out = np.empty(len(a), np.int64)
    for rows, others in _blocks(a, step):
        if packed:
            bit_distances(_words(a[rows]), _words(b[others]), step, out[rows])
            continue
        try:
            out[rows] = np.count_nonzero(a[rows] != b[others], axis=1)
            if {a.dtype.kind, b.dtype.kind} & set(UNEQUAL) and out[rows].any():
                _check_rows("hamming", a[rows], b[others], rows, others, step, _not_a_number)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"hamming: the components cannot be compared: {error}") from error
    return out


def edit(x: Any, y: Any, mutations: bool = False, transpositions: bool = False, threads: int | None = 1) -> Ints:
    """Return the edit distance of each pair of strings (MMDS §3.5.5).

    Transpositions without mutations run in Python, the other three kinds in compiled code.

    >>> edit(["abcde", "ab"], ["acfdeg", "ba"]).tolist()
    [3, 2]
    """
    from rapidfuzz import process

    from likewise.base import checks

    workers = checks.threads("edit", threads)
    first, second = (_items_of("edit", name, texts, "a list of strings") for name, texts in (("x", x), ("y", y)))
    pairs = list(_partners("edit", first, second))
    for row, pair in enumerate(pairs):
        if not all(isinstance(text, str) for text in pair):
            wrong = next(text for text in pair if not isinstance(text, str))
            raise InputError(f"edit: row {row} is {shown(wrong)}, not a string")
    scorer = measures.edit_scorer(mutations, transpositions)
    if scorer is None:
        return np.array([measures.edit(p, q, mutations, transpositions) for p, q in pairs], np.int64)
    found: Ints = process.cpdist(first, second, scorer=scorer, dtype=np.int64, workers=workers)
    return found


def _overlap(owner: str, a: Any, b: Any, bag: bool = False) -> Overlap:
    """Count the elements that each pair of sets shares; of bags, by their counts."""
    from likewise.kernels.distances import overlaps

    values_a, offsets_a = _ragged(owner, a, bag)
    values_b, offsets_b = _ragged(owner, b, bag)
    if len(offsets_a) != len(offsets_b):
        raise ParameterError(
            f"{owner}: {len(offsets_a) - 1} sets cannot be paired with {len(offsets_b) - 1}; give equally many"
        )
    kind = np.uint32 if values_a.dtype == values_b.dtype == np.uint32 else np.uint64
    out = np.empty(len(offsets_a) - 1, np.int64)
    overlaps(_ready(values_a, kind), offsets_a, _ready(values_b, kind), offsets_b, out)
    return Overlap(out, np.diff(offsets_a), np.diff(offsets_b))


def _ragged(owner: str, sets: Any, bag: bool = False) -> tuple[NDArray[Any], Ints]:
    """Return sets as (values, offsets), from `Sets` or from lists as in `Sets.from_lists`."""
    if hasattr(sets, "values") and hasattr(sets, "offsets") and hasattr(sets, "sizes"):
        from likewise.base.arrays import check_sets

        check_sets(owner, "the sets", sets)
        return np.asarray(sets.values), _ready(np.asarray(sets.offsets), np.int64)
    from likewise.base.tokens import set_parts

    parts = [work() for work in set_parts(sets, bag, 1)]
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(offsets) for _, offsets in parts)])
    return np.concatenate([np.zeros(0, np.uint64), *(values for values, _ in parts)]), _ready(
        np.cumsum(sizes), np.int64
    )


def _ratio(part: NDArray[Any], whole: NDArray[Any], otherwise: Any) -> Floats:
    """Divide where the denominator is not zero; elsewhere `otherwise`."""
    out = np.empty(len(part), np.float64)
    out[:] = otherwise
    np.divide(part, whole, out=out, where=whole > 0)
    return out


def _distances(
    owner: str, x: Any, y: Any, kernel: Callable[..., Any], fault: Callable[[NDArray[Any]], NDArray[np.bool_]]
) -> Floats:
    """Compute distances block by block; if a result is not finite, look for the faulty vector."""
    a, b, step = _tables(owner, x, y)
    for name, table in (("x", a), ("y", b)):
        if table.dtype.kind not in "fiub":
            raise ParameterError(f"{owner}: {name} must be a table of numbers, not of {table.dtype}")
    kind = np.float32 if np.result_type(a, b, np.float32) == np.float32 else np.float64
    out = np.empty(len(a), np.float64)
    for rows, others in _blocks(a, step):
        left, right = _ready(a[rows], kind), _ready(b[others], kind)
        kernel(left, right, step, out[rows])
        if np.isfinite(out[rows]).all():
            continue
        _check_rows(owner, left, right, rows, others, step, fault)
    return out


def _check_rows(
    owner: str,
    left: NDArray[Any],
    right: NDArray[Any],
    rows: slice,
    others: slice,
    step: int,
    fault: Callable[[NDArray[Any]], NDArray[np.bool_]],
) -> None:
    """Raise if a vector of either block has a fault."""
    for name, block, start in (("x", left, rows.start), ("y", right, others.start)):
        wrong = fault(block)
        if wrong.any():
            row = int(np.argmax(wrong))
            where = f"row {start + row} of {name}" if name == "x" or step else name
            raise _fault(f"{owner}: {where}", block[row])


def _not_a_number(block: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray((block != block).any(axis=1), bool)


def _not_finite(block: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(~np.isfinite(block).all(axis=1))


def _no_direction(block: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(_not_finite(block) | ~block.any(axis=1))


def _fault(where: str, vector: NDArray[Any]) -> InputError:
    """Return the error that describes the fault of a vector."""
    if vector.dtype.kind != "O" and np.isfinite(vector).all():
        return InputError(f"{where} is a vector of zeros, which has no direction")
    return InputError(f"{where} contains a number that is not finite")


def _tables(owner: str, x: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Return both tables, and 1; or x and y as a table of one row, and 0."""
    try:
        a, b = np.asarray(x), np.asarray(y)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{owner}: the vectors do not all have the same length: {error}") from error
    if a.ndim != 2:
        raise ParameterError(f"{owner}: x must be a table, one row per vector; it has {a.ndim} dimensions, not 2")
    if b.ndim == 1 and b.shape[0] == a.shape[1]:
        return a, b[np.newaxis], 0
    if a.shape != b.shape:
        raise ParameterError(
            f"{owner}: x has shape {a.shape} and y {b.shape}; "
            "they must have the same shape, or y must be a vector as long as the rows of x"
        )
    return a, b, 1


def _blocks(table: NDArray[Any], step: int) -> Iterator[tuple[slice, slice]]:
    """Yield the rows of each block, and the rows of the other table that belong to them."""
    size = max(1, BLOCK // max(1, table.shape[1]))
    for start in range(0, len(table), size):
        rows = slice(start, min(start + size, len(table)))
        yield rows, rows if step else slice(0, 1)


def _ready(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return an array in the form of the kernels: contiguous, aligned, read-only; copied only if necessary."""
    found = np.asarray(np.require(array, kind, ["C", "A"])).view()
    found.flags.writeable = False
    return found


def _strings(x: Any) -> list[str] | None:
    """Return a column of strings as a list, also an empty one; None if it is something else."""
    kind = getattr(getattr(x, "dtype", None), "kind", None)
    if kind is not None and (kind not in "UOT" or getattr(x, "ndim", 1) != 1):
        return None
    if isinstance(x, str | bytes | Mapping) or not isinstance(x, Iterable):
        return None
    items = _items_of("hamming", "x", x)
    wrong = next((row for row, item in enumerate(items) if not isinstance(item, str)), None)
    if wrong is None and (items or getattr(x, "ndim", 1) == 1):
        return items
    if wrong is not None and any(isinstance(item, str) for item in items):
        raise InputError(f"hamming: row {wrong} of x is {shown(items[wrong])}, not a string")
    return None


def _string_distances(x: list[str], y: Any) -> Ints:
    """Return the Hamming distance of each pair of strings; y may be one string for all."""
    from rapidfuzz import distance, process

    rule = "a list of strings, or a string"
    others = [y] * len(x) if isinstance(y, str) else _items_of("hamming", "y", y, rule)
    for row, (a, b) in enumerate(_partners("hamming", x, others)):
        if not isinstance(b, str):
            raise InputError(f"hamming: row {row} of y is {shown(b)}, not a string")
        if len(a) != len(b):
            raise InputError(f"hamming: row {row}: the strings have {len(a)} and {len(b)} characters, not equally many")
    found: Ints = process.cpdist(x, others, scorer=distance.Hamming.distance, dtype=np.int64)
    return found


def _words(block: NDArray[Any]) -> NDArray[np.uint64]:
    """Return rows of bytes as rows of 64-bit words, the last one padded with zeros."""
    if block.dtype == np.uint8:
        block = np.pad(np.ascontiguousarray(block), ((0, 0), (0, -block.shape[1] % 8))).view(np.uint64)
    return _ready(block, np.uint64)


def _partners(owner: str, a: list[Any], b: list[Any]) -> Iterator[tuple[Any, Any]]:
    if len(a) != len(b):
        raise ParameterError(f"{owner}: {len(a)} items cannot be paired with {len(b)}; give equally many")
    return zip(a, b, strict=True)


def _bags_of(name: str, bags: Any) -> tuple[Any, bool]:
    """Return bags in a form that `_ragged` understands, and whether some are mappings from element to count."""
    if hasattr(bags, "offsets") and hasattr(bags, "sizes"):
        return bags, False
    items = _items_of("bag_jaccard", name, bags)
    if any(issubclass(kind, Mapping) for kind in set(map(type, items))):
        return items, True
    return [list(bag) if isinstance(bag, str) else bag for bag in items], False


def _mappings(name: str, bags: Any) -> list[Mapping[Any, int]]:
    """Return every bag as a mapping from element to count, checked."""
    if hasattr(bags, "offsets"):
        raise ParameterError("bag_jaccard: Sets cannot be compared with mappings; give both in the same form")
    return [measures.counted_bag(f"{name}[{row}]", bag) for row, bag in enumerate(bags)]


def _counted_overlap(first: Any, second: Any) -> Overlap:
    """Add up the smaller count of each element that two bags share, and the counts of both."""
    a, b = _mappings("a", first), _mappings("b", second)
    if len(a) != len(b):
        raise ParameterError(f"bag_jaccard: {len(a)} items cannot be paired with {len(b)}; give equally many")
    names: dict[Any, int] = {}
    rows, numbers, counts = [], [], []
    for side in (a, b):
        rows.append(np.repeat(np.arange(len(side)), [len(bag) for bag in side]))
        numbers.append(np.array([names.setdefault(name, len(names)) for bag in side for name in bag], np.int64))
        counts.append(np.array([count for bag in side for count in bag.values()], np.int64))
    totals = [np.bincount(row, count, len(a)).astype(np.int64) for row, count in zip(rows, counts, strict=True)]
    keys = [row * max(1, len(names)) + number for row, number in zip(rows, numbers, strict=True)]
    _, here, there = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    least = np.minimum(counts[0][here], counts[1][there])
    return Overlap(np.bincount(rows[0][here], least, len(a)).astype(np.int64), *totals)


def _items_of(owner: str, name: str, items: Any, rule: str = "a list with one item per pair") -> list[Any]:
    """Return a column as a list, from Arrow, NumPy, pandas, or any iterable."""
    for method in ("to_pylist", "tolist"):
        if hasattr(items, method):
            items = getattr(items, method)()
            break
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise ParameterError.of(owner, name, rule, items)
    return list(items)
