"""Sets as strings: their elements in one order for all, without repetition (MMDS §3.9.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from likewise.base import checks
from likewise.errors import InputError, ParameterError

OWNER = "exact.strings"


def strings(sets: Iterable[Iterable[Any]], order: Iterable[Any] | None = None) -> list[str] | list[list[Any]]:
    """Write each set as its elements in a fixed order, as the exact join does.

    order: all symbols, in their order. Without it the order is that of the join: the rarest symbol of the collection
    first, which makes prefixes selective (MMDS §3.9.4); symbols of equal frequency by their first occurrence.
    Returns texts if `order` is one, or if all symbols are single characters; otherwise lists.

    >>> strings([{"d", "a", "b"}], order="abcdefghijklmnopqrstuvwxyz")
    ['abd']
    >>> strings([["milk", "tea"], ["rum", "milk"], ["milk"]])
    [['tea', 'milk'], ['rum', 'milk'], ['milk']]
    """
    rows = []
    for number, one in enumerate(checks.listed(OWNER, "sets", sets, "a list of sets")):
        try:
            rows.append(list(dict.fromkeys(one)))
        except TypeError as error:
            raise InputError(f"{OWNER}: set {number} is not a set of symbols: {error}") from error
        if any(symbol != symbol for symbol in rows[-1]):
            raise InputError(f"{OWNER}: set {number} contains NaN, which is not equal to itself")
    if order is None:
        counts = Counter(symbol for row in rows for symbol in row)
        listed = sorted(counts, key=lambda symbol: counts[symbol])
    else:
        listed = checks.listed(OWNER, "order", list(order) if isinstance(order, str) else order, "a list of symbols")
    try:
        place = {symbol: number for number, symbol in enumerate(listed)}
    except TypeError as error:
        raise ParameterError.of(OWNER, "order", "a list of symbols", order) from error
    if len(place) < len(listed):
        twice = next(symbol for number, symbol in enumerate(listed) if place[symbol] != number)
        raise ParameterError.of(OWNER, "order", "distinct symbols", f"{twice!r} twice")
    for number, row in enumerate(rows):
        unknown = [symbol for symbol in row if symbol not in place]
        if unknown:
            raise InputError(f"{OWNER}: set {number} has the symbol {unknown[0]!r}, which is not in 'order'")
        row.sort(key=place.__getitem__)
    if isinstance(order, str) or (listed and all(isinstance(one, str) and len(one) == 1 for one in listed)):
        return ["".join(row) for row in rows]
    return rows
