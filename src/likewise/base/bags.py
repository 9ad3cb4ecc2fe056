"""Bags given as mappings: element → count."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from likewise.errors import ParameterError, shown


def counts(where: str, bag: Mapping[Any, Any]) -> dict[Any, int]:
    """Return the elements of a bag with their counts, which are whole numbers of 0 or more; 0 means absent.

    >>> counts("bag 0", {"a": 2, "b": 0})
    {'a': 2}
    """
    found: dict[Any, int] = {}
    for element, count in bag.items():
        whole = isinstance(count, Integral) and not isinstance(count, bool)
        whole = whole or (isinstance(count, float) and count.is_integer())
        if not whole or count < 0:
            got = f"{shown(count)} as the count of {shown(element)}"
            raise ParameterError(f"{where} has {got}; counts must be whole numbers of 0 or more")
        if count:
            found[element] = int(count)
    return found
