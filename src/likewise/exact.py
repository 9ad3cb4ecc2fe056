"""Exact set similarity joins: every pair at or above a threshold, none missed (MMDS §3.9).

>>> from likewise import exact
>>> baskets = [["milk", "bread", "eggs"], ["bread", "milk"], ["tea"], ["milk", "bread", "eggs"]]
>>> exact.pairs(baskets, 0.6).to_pylist()  # doctest: +NORMALIZE_WHITESPACE
[{'id_a': 0, 'id_b': 1, 'similarity': 0.6666666666666666},
 {'id_a': 0, 'id_b': 3, 'similarity': 1.0},
 {'id_a': 1, 'id_b': 3, 'similarity': 0.6666666666666666}]

`pairs` joins a collection with itself or with another; `Index` answers for one set at a time; `explain` shows how many
pairs each filter leaves; `Bounds` has the formulas behind the filters, `compared` the probability that random sets are
compared; `strings` writes sets as strings in one order; `identical` finds items that are equal.
"""

from likewise.search.exact.bounds import Bounds, compared
from likewise.search.exact.explain import explain
from likewise.search.exact.identical import identical
from likewise.search.exact.index import ExactIndex as Index
from likewise.search.exact.pairs import pairs
from likewise.search.exact.prefixes import strings

Index.__module__, Index.__name__, Index.__qualname__ = __name__, "Index", "Index"  # as its users call it

__all__ = ["Bounds", "Index", "compared", "explain", "identical", "pairs", "strings"]
