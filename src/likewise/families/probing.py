"""Where else a near item may be: the buckets beside a query's own (Lv, Josephson, Wang, Charikar, Li, 2007).

An item near the query has mostly the same values, and differs where the query itself nearly did: where it is close to
a hyperplane, or to the end of a segment. A move gives one function the value on the other side; its cost says how far
away that is. Probes are the cheapest moves of a table's functions, alone or two at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.base.random import uniform
from likewise.errors import InputError, ParameterError
from likewise.families.algebra import Family, Floats
from likewise.families.vectors import (
    BitSampling,
    CauchyLines,
    Hyperplanes,
    RandomLines,
    SignSketch,
    UnaryCode,
)

Ints = NDArray[np.int64]


class Moves(NamedTuple):
    """For every item and function the other values it may nearly have had, and how far away each is.

    Functions that look at the same `component` move together: what goes past one of them goes past the nearer ones too.
    """

    other: NDArray[Any]
    cost: Floats
    component: Ints | None = None


def probed(
    family: Family, items: Any, values: NDArray[Any], k: int, probes: int
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return, for every item and k neighbouring values of it, the values of so many other buckets, the nearest first.

    The shape is (items · tables, probes, k); the second array tells which exist.
    """
    moves = MOVES[type(family)](family, items, values)
    choices = moves.other.shape[2]
    own = values.reshape(-1, k)
    other, cost = moves.other.reshape(-1, k, choices), moves.cost.reshape(-1, k, choices)
    linked = (
        _linked(own, cost[:, :, 0], np.tile(moves.component, len(values)).reshape(-1, k))
        if moves.component is not None
        else None
    )
    if linked is not None:
        cost = np.where(_repeated(linked)[:, :, None], np.inf, cost)
    members, usable = _cheapest(cost, probes)
    rows = np.arange(len(own))
    out = np.repeat(own[:, None, :], probes, axis=1)
    for probe in range(members.shape[1]):
        for move in members[:, probe].T:
            there = rows[move >= 0]
            function, choice = np.divmod(move[there], choices)
            if linked is None:
                out[there, probe, function] = other[there, function, choice]
            else:
                part = linked[there, function]
                out[there, probe] = np.where(part, other[there, :, 0], out[there, probe])
    return out, usable


def check_probes(family: Family, probes: object, k: int) -> int:
    """Return the number of probes; raise unless the family has moves and k functions have so many."""
    if isinstance(probes, bool) or not isinstance(probes, (int, np.integer)) or probes < 0:
        raise ParameterError.of("near", "probes", "a whole number from 0", probes)
    if probes and type(family) not in MOVES:
        names = ", ".join(kind.__name__ for kind in MOVES)
        raise ParameterError(f"near: 'probes' works with {names}, not with {type(family).__name__}; leave it at 0")
    most = k + k * (k - 1) // 2
    if probes > most:
        raise ParameterError.of(
            "near", "probes", f"at most {most}, the sets of one or two of k = {k} functions", probes
        )
    return int(probes)


def _cheapest(cost: Floats, probes: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the cheapest sets of one move, or of two of different functions: their moves, −1 for none; and if any."""
    n, k, choices = cost.shape
    flat = cost.reshape(n, k * choices)
    few = min(probes, k * choices)
    best = np.argsort(flat, axis=1, kind="stable")[:, :few]
    price = np.take_along_axis(flat, best, axis=1)
    a, b = np.triu_indices(few, 1)
    pairs = np.where(best[:, a] // choices == best[:, b] // choices, np.inf, price[:, a] + price[:, b])
    first, second = np.concatenate([np.arange(few), a]), np.concatenate([np.full(few, -1), b])
    prices = np.concatenate([price, pairs], axis=1)
    chosen = np.argsort(prices, axis=1, kind="stable")[:, :probes]
    usable = np.isfinite(np.take_along_axis(prices, chosen, axis=1))
    members = np.stack(
        [
            np.where(place[chosen] >= 0, np.take_along_axis(best, np.maximum(place[chosen], 0), axis=1), -1)
            for place in (first, second)
        ],
        axis=2,
    )
    return np.where(usable[:, :, None], members, -1), usable


def _linked(own: NDArray[Any], cost: Floats, component: Ints) -> NDArray[np.bool_]:
    """Tell which functions move when one does: [item, the one, the other]."""
    same = (component[:, :, None] == component[:, None, :]) & (own[:, :, None] == own[:, None, :])
    found: NDArray[np.bool_] = same & (cost[:, None, :] <= cost[:, :, None])
    return found


def _repeated(linked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which functions move exactly when an earlier one does."""
    both = linked & linked.swapaxes(1, 2)
    found: NDArray[np.bool_] = np.any(np.tril(both, -1), axis=2)
    return found


def _along(family: Any, items: Any, n: int) -> Floats:
    table = np.asarray(items, np.float64)
    found: Floats = table @ family.directions(n, table.shape[1]).T
    return found


def _sides(family: Any, items: Any, values: NDArray[Any]) -> Moves:
    """The other side of a hyperplane: as far as the vector reaches from it."""
    return Moves((1 - values)[:, :, None], _along(family, items, values.shape[1])[:, :, None] ** 2)


def _segments(family: Any, items: Any, values: NDArray[Any]) -> Moves:
    """The segment before and the one after: as far as the border."""
    n = values.shape[1]
    place = _along(family, items, n) / family.a + uniform(family.seed, 5, 1, n)[0]
    part = place - np.floor(place)
    return Moves(np.stack([values - 1, values + 1], axis=2), np.stack([part, 1 - part], axis=2) ** 2)


def _bits(family: Any, items: Any, values: NDArray[Any]) -> Moves:
    """The other bit: all as far."""
    if len(values) and not ((values == 0) | (values == 1)).all():
        raise InputError("BitSampling: `probes` needs vectors of zeros and ones")
    return Moves((1 - values)[:, :, None], np.ones((*values.shape, 1)), family.places(values.shape[1]))


def _levels(family: Any, items: Any, values: NDArray[Any]) -> Moves:
    """The component on the other side of the number: as far as that is."""
    n = values.shape[1]
    component = (uniform(family.seed, 3, 1, n)[0] * family.dimensions).astype(np.int64)
    number = (uniform(family.seed, 4, 1, n)[0] * family.largest).astype(np.int64)
    over = np.asarray(items, np.float64)[:, component] - number
    return Moves((1 - values)[:, :, None], np.where(over > 0, over, 1 - over)[:, :, None], component)


MOVES: dict[type, Callable[[Any, Any, NDArray[Any]], Moves]] = {
    Hyperplanes: _sides,
    SignSketch: _sides,
    RandomLines: _segments,
    CauchyLines: _segments,
    BitSampling: _bits,
    UnaryCode: _levels,
}
