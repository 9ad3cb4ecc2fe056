"""How alike two things are: similarities of sets and bags, exact and in plain Python.

Any iterable of hashable elements is a set here; a string is the set of its characters. Section 3.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from math import sqrt
from typing import Literal, TypeVar

from likewise.errors import ParameterError

__all__ = ["bag_jaccard", "containment", "cosine", "dice", "jaccard", "overlap"]

Element = TypeVar("Element", bound=Hashable)


def jaccard(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the Jaccard similarity of two sets, |a ∩ b| / |a ∪ b| (Section 3.1.1).

    Two empty sets are identical, hence 1.0; an empty set and any other share nothing, hence 0.0.

    >>> jaccard([1, 2, 3, 4], [2, 3, 5, 7]) == 2 / 6
    True
    >>> jaccard([], []), jaccard([], [1])
    (1.0, 0.0)
    """
    a, b = set(a), set(b)
    shared = len(a & b)
    union = len(a) + len(b) - shared
    return shared / union if union else 1.0


def bag_jaccard(
    a: Iterable[Element] | Mapping[Element, int],
    b: Iterable[Element] | Mapping[Element, int],
    union: Literal["sum", "max"] = "sum",
) -> float:
    """Return the Jaccard similarity of two bags, in which an element may occur several times (Section 3.1.3).

    The intersection counts an element as often as the poorer bag has it. The union counts it as often as
    both bags together (`"sum"`) or as the richer bag (`"max"`). Equal bags score 1/2 by the first and 1 by
    the second, empty ones too. A mapping, such as a `Counter`, is read as element → count.

    >>> bag_jaccard("aaab", "aabbc") == 3 / 9
    True
    >>> bag_jaccard("aaab", "aabbc", union="max") == 3 / 6
    True
    """
    if union not in ("sum", "max"):
        raise ParameterError.of("bag_jaccard", "union", "'sum' or 'max'", union)
    counts_a, counts_b = _counts("a", a), _counts("b", b)
    shared = (counts_a & counts_b).total()
    total = counts_a.total() + counts_b.total()
    if union == "max":
        total -= shared
    if total == 0:
        return 0.5 if union == "sum" else 1.0
    return shared / total


def containment(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the part of set a that is in set b, |a ∩ b| / |a|; the empty set is in every set, hence 1.0.

    >>> containment("abcd", "bcdefg"), containment("bcdefg", "abcd")
    (0.75, 0.5)
    """
    a = set(a)
    return len(a.intersection(b)) / len(a) if a else 1.0


def dice(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the Dice coefficient of two sets, 2·|a ∩ b| / (|a| + |b|); two empty sets are identical, hence 1.0.

    >>> dice("abc", "bcd") == 4 / 6
    True
    """
    a, b = set(a), set(b)
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def cosine(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the cosine similarity of two sets, |a ∩ b| / √(|a|·|b|); 1.0 for two empty sets, 0.0 for one.

    >>> cosine("a", "abcd")
    0.5
    """
    a, b = set(a), set(b)
    return len(a & b) / sqrt(len(a) * len(b)) if a and b else float(not a and not b)


def overlap(a: Iterable[Hashable], b: Iterable[Hashable]) -> float:
    """Return the overlap coefficient of two sets, |a ∩ b| / min(|a|, |b|); 1.0 for two empty sets, 0.0 for one.

    >>> overlap("abc", "bcdefgh") == 2 / 3
    True
    """
    a, b = set(a), set(b)
    return len(a & b) / min(len(a), len(b)) if a and b else float(not a and not b)


def _counts(name: str, bag: Iterable[Element] | Mapping[Element, int]) -> Counter[Element]:
    counts = Counter(bag)
    negative = next((count for count in counts.values() if count < 0), 0)
    if negative:
        raise ParameterError.of("bag_jaccard", name, "a bag whose counts are 0 or more", negative)
    return counts
