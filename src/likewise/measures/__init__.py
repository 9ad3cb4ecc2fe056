"""Similarity and distance measures for sets, bags, points, directions and strings (MMDS §3.1 and §3.5).

Any iterable of hashable elements is a set here; a string is the set of its characters, a mapping that of its keys. NaN,
which equals nothing, cannot be an element. Similarities: `jaccard`,
`bag_jaccard`, `containment`, `dice`, `cosine`, `overlap`. Distances, which satisfy the four axioms of a metric:
`jaccard_distance`, `lr`, `angle`, `edit`, `hamming`. `measures.batch` has functions of the same names for whole arrays
of pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from math import atan2, degrees, inf, isfinite, sqrt
from numbers import Real
from operator import ne
from typing import Any, Literal, TypeVar

from likewise.base.bags import counts
from likewise.errors import ParameterError, shown

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

Element = TypeVar("Element", bound=Hashable)


def jaccard(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the Jaccard similarity of two sets, |a ∩ b| / |a ∪ b| (MMDS §3.1.1).

    Two empty sets are identical: 1.0. An empty set and a non-empty one share nothing: 0.0.

    >>> jaccard([1, 2, 3, 4], [2, 3, 5, 7]) == 2 / 6
    True
    >>> jaccard([], []), jaccard([], [1])
    (1.0, 0.0)
    """
    a, b = _sets("jaccard", a, b)
    shared = len(a & b)
    union = len(a) + len(b) - shared
    return shared / union if union else 1.0


def bag_jaccard(
    a: Iterable[Element] | Mapping[Element, int],
    b: Iterable[Element] | Mapping[Element, int],
    union: Literal["sum", "max"] = "sum",
) -> float:
    """Return the Jaccard similarity of two bags, in which an element may occur several times (MMDS §3.1.3).

    The intersection has the smaller count of each element. The union has the sum of both counts (`"sum"`) or the larger
    one (`"max"`). Equal bags score 1/2 by the first and 1 by the second, also if empty. A mapping, such as a `Counter`,
    is read as element → count; counts are whole numbers, and a count of 0 means that the element is absent.

    >>> bag_jaccard("aaab", "aabbc") == 3 / 9
    True
    >>> bag_jaccard("aaab", "aabbc", union="max") == 3 / 6
    True
    """
    if not isinstance(union, str) or union not in ("sum", "max"):  # likewise.base.checks would import NumPy
        raise ParameterError.of("bag_jaccard", "union", "'sum' or 'max'", union)
    counts_a, counts_b = counted_bag("a", a), counted_bag("b", b)
    shared = (counts_a & counts_b).total()
    total = counts_a.total() + counts_b.total()
    if union == "max":
        total -= shared
    if total == 0:
        return 0.5 if union == "sum" else 1.0
    return shared / total


def containment(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the fraction of set a that is in set b, |a ∩ b| / |a|; 1.0 for an empty a.

    >>> containment("abcd", "bcdefg"), containment("bcdefg", "abcd")
    (0.75, 0.5)
    """
    a, b = _sets("containment", a, b)
    return len(a & b) / len(a) if a else 1.0


def dice(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the Dice coefficient of two sets, 2·|a ∩ b| / (|a| + |b|); 1.0 for two empty sets.

    >>> dice("abc", "bcd") == 4 / 6
    True
    """
    a, b = _sets("dice", a, b)
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def cosine(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the cosine similarity of two sets, |a ∩ b| / √(|a|·|b|); 1.0 if both are empty, 0.0 if one is.

    >>> cosine("a", "abcd")
    0.5
    """
    a, b = _sets("cosine", a, b)
    return len(a & b) / sqrt(len(a) * len(b)) if a and b else float(not a and not b)


def overlap(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the overlap coefficient of two sets, |a ∩ b| / min(|a|, |b|); 1.0 if both are empty, 0.0 if one is.

    >>> overlap("abc", "bcdefgh") == 2 / 3
    True
    """
    a, b = _sets("overlap", a, b)
    return len(a & b) / min(len(a), len(b)) if a and b else float(not a and not b)


def jaccard_distance(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return 1 − the Jaccard similarity: the probability that a minhash separates two sets (MMDS §3.5.3).

    >>> jaccard_distance("abcd", "bcde")
    0.4
    """
    a, b = _sets("jaccard_distance", a, b)
    apart = len(a ^ b)
    union = len(a | b)
    return apart / union if union else 0.0


def lr(x: Sequence[float] | Any, y: Sequence[float] | Any, r: float = 2) -> float:
    """Return the distance of two points by the Lr norm, (Σ |xᵢ − yᵢ|^r)^(1/r), r ≥ 1; r may be inf (MMDS §3.5.2).

    r = 2 is the Euclidean distance, r = 1 the Manhattan distance, r = inf the largest difference in any dimension.

    >>> lr((2, 7), (6, 4)), lr((2, 7), (6, 4), 1), lr((2, 7), (6, 4), inf)
    (5.0, 7.0, 4.0)
    """
    power = check_norm(r)
    pairs = _numbers("lr", x, y)
    gaps = [abs(a - b) for a, b in pairs]
    largest = max(gaps, default=0.0)
    if largest in (0, inf) or power == inf:
        return largest
    if power == 1:
        return sum(gaps)
    parts = sum((gap / largest) ** power for gap in gaps)  # relative to the largest, so that no power overflows
    return float(largest * parts ** (1 / power))


def check_norm(r: object) -> float:
    """Return the r of an Lr norm, or raise: below 1 the triangle inequality fails.

    >>> check_norm(2)
    2.0
    """
    try:
        if isinstance(r, Real) and not isinstance(r, bool) and float(r) >= 1:
            return float(r)
    except OverflowError:
        pass
    raise ParameterError.of("lr", "r", "a number of at least 1, or inf", r)


def angle(x: Sequence[float] | Any, y: Sequence[float] | Any) -> float:
    """Return the angle between two vectors in degrees, from 0 to 180: the cosine distance (MMDS §3.5.4).

    The angle is a metric on directions. 1 − cos is not: going from 0° to 60° by way of 30° would be shorter.

    >>> round(angle((1, 2, -1), (2, 1, 1)), 9)
    60.0
    """
    pairs = _numbers("angle", x, y)
    lengths = [max((abs(pair[side]) for pair in pairs), default=0.0) for side in (0, 1)]
    if not all(lengths):
        raise ParameterError("angle: a vector of zeros has no direction")
    scaled = [(a / lengths[0], b / lengths[1]) for a, b in pairs]
    norms = [sqrt(sum(pair[side] ** 2 for pair in scaled)) for side in (0, 1)]
    units = [(a / norms[0], b / norms[1]) for a, b in scaled]
    # Half the angle, from the diagonals of the rhombus that the unit vectors span: accurate near 0° and 180° too.
    apart, along = sqrt(sum((a - b) ** 2 for a, b in units)), sqrt(sum((a + b) ** 2 for a, b in units))
    return degrees(2 * atan2(apart, along))


def edit(x: Sequence[Hashable], y: Sequence[Hashable], mutations: bool = False, transpositions: bool = False) -> int:
    """Return the edit distance of two strings (MMDS §3.5.5; the four kinds are from Exercise 3.5.8).

    An edit inserts or deletes a character; with `mutations` it may also replace one, with `transpositions` swap two
    adjacent ones. Without either, the distance is |x| + |y| − 2·|longest common subsequence|. Edits may be combined
    freely: "ca" becomes "abc" by a swap and an insertion between the two, 2 edits. (The "optimal string alignment" of
    other libraries, which never edits a position twice, needs 3, and violates the triangle inequality.)

    Sequences other than strings are compared element by element.

    >>> edit("abcde", "acfdeg"), edit("abcde", "acfdeg", mutations=True)
    (3, 3)
    >>> edit("ab", "ba"), edit("ab", "ba", mutations=True), edit("ab", "ba", mutations=True, transpositions=True)
    (2, 2, 1)
    """
    scorer = edit_scorer(mutations, transpositions)
    if not (isinstance(x, str) and isinstance(y, str)):
        x, y = _numbered(x, y)
    return _swaps(x, y) if scorer is None else int(scorer(x, y))


def edit_scorer(mutations: bool, transpositions: bool) -> Any:
    """Return the function of rapidfuzz for these edits; None if there is none.

    >>> edit_scorer(mutations=True, transpositions=False)("kitten", "sitting")
    3
    """
    for name, value in (("mutations", mutations), ("transpositions", transpositions)):
        if not isinstance(value, bool):
            raise ParameterError.of("edit", name, "True or False", value)
    from rapidfuzz import distance

    if transpositions:
        return distance.DamerauLevenshtein.distance if mutations else None
    return distance.Levenshtein.distance if mutations else distance.Indel.distance


def _numbered(x: Iterable[Hashable], y: Iterable[Hashable]) -> tuple[list[int], list[int]]:
    """Number the elements, equal ones alike: rapidfuzz would treat 97 and "a" as equal."""
    x, y = _listed("edit", "x", x), _listed("edit", "y", y)
    numbers: dict[Hashable, int] = {element: number for number, element in enumerate(_set("edit", "x or y", [*x, *y]))}
    return [numbers[a] for a in x], [numbers[b] for b in y]


def _swaps(x: Sequence[Hashable], y: Sequence[Hashable]) -> int:
    """Return the edit distance with transpositions and without mutations (Lowrance and Wagner, 1975).

    A replacement is a deletion and an insertion, and costs two. Between two matches the best option is to delete the
    characters between two characters of x, swap these, and insert the characters between them in y. More swaps never
    pay, because two of them cost no less than a deletion and an insertion.
    """
    far = len(x) + len(y)
    last_row: dict[Hashable, int] = {}
    table = [[far] * (len(y) + 2), [far, *range(len(y) + 1)]]
    for i, a in enumerate(x, 1):
        row = [far, i]
        last_match = 0
        for j, b in enumerate(y, 1):
            k, m = last_row.get(b, 0), last_match
            swap = table[k][m] + (i - k - 1) + 1 + (j - m - 1)
            row.append(min(table[i][j] + (0 if a == b else 2), row[j] + 1, table[i][j + 1] + 1, swap))
            if a == b:
                last_match = j
        table.append(row)
        last_row[a] = i
    return int(table[-1][-1])


def hamming(x: Sequence[Any], y: Sequence[Any]) -> int:
    """Return the number of positions in which two vectors or strings of equal length differ (MMDS §3.5.6).

    >>> hamming("10101", "11110")
    3
    """
    pairs = _paired("hamming", x, y)
    try:
        if any(a != a or b != b for a, b in pairs):
            raise ParameterError("hamming: a component is NaN, which equals nothing, not even itself")
        return int(sum(a != b for a, b in pairs))
    except (TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"hamming: the components cannot be compared: {error}") from error


def _listed(owner: str, name: str, elements: Iterable[Any]) -> list[Any]:
    try:
        return list(elements)
    except TypeError as error:
        raise ParameterError.of(owner, name, "a sequence", elements) from error


def _set(owner: str, name: str, elements: Iterable[Hashable]) -> set[Hashable]:
    try:
        found = set(elements)
        odd = any(map(ne, found, found))
    except TypeError as error:
        raise ParameterError.of(owner, name, "an iterable of hashable elements", elements) from error
    if odd:
        raise ParameterError(f"The '{name}' parameter of {owner} has NaN, which equals no element, not even itself.")
    return found


def _sets(owner: str, a: Iterable[Hashable], b: Iterable[Hashable]) -> tuple[set[Hashable], set[Hashable]]:
    return _set(owner, "a", a), _set(owner, "b", b)


def _paired(owner: str, x: Iterable[Any], y: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return the components of two vectors in pairs."""
    if max(getattr(x, "ndim", 1), getattr(y, "ndim", 1)) > 1:
        raise ParameterError(f"{owner}: x and y must be one vector each; for rows of tables use measures.batch.{owner}")
    a, b = _listed(owner, "x", x), _listed(owner, "y", y)
    if len(a) != len(b):
        raise ParameterError(f"{owner}: the vectors have {len(a)} and {len(b)} components; they must have equally many")
    return list(zip(a, b, strict=True))


def _numbers(owner: str, x: Iterable[Any], y: Iterable[Any]) -> list[tuple[float, float]]:
    """Return the components as floats before anything is subtracted: NumPy's small integers would wrap around."""
    return [(_finite(owner, a), _finite(owner, b)) for a, b in _paired(owner, x, y)]


def _finite(owner: str, component: Any) -> float:
    """Return a component as a finite float."""
    try:
        if isinstance(component, str | bytes | bytearray):
            raise TypeError
        found = float(component)
    except OverflowError:
        found = inf
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{owner}: a component is {shown(component)}, not a number") from error
    if not isfinite(found):
        hint = ", so the vector has no direction" if owner == "angle" else ""
        raise ParameterError(f"{owner}: a component is not finite{hint}: {shown(component)}")
    return found


def counted_bag(name: str, bag: Iterable[Element] | Mapping[Element, int]) -> Counter[Element]:
    """Return a bag as a mapping from element to count, checked; `name` is that of the parameter, for errors.

    >>> counted_bag("a", "aab")
    Counter({'a': 2, 'b': 1})
    """
    where = f"The '{name}' parameter of bag_jaccard"
    if isinstance(bag, Mapping):
        found = Counter(counts(where, bag))
    else:
        try:
            found = Counter(bag)
        except TypeError as error:
            raise ParameterError.of("bag_jaccard", name, "an iterable of hashable elements", bag) from error
    _set("bag_jaccard", name, found)
    return found


def __getattr__(name: str) -> Any:
    if name == "batch":
        return import_module("likewise.measures.batch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
