"""Identical items: by a hash of everything, or by a few fixed random positions first (MMDS §3.9.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, Texts, check_sets
from likewise.base.copies import Groups, set_digests
from likewise.base.parallel import in_order
from likewise.base.random import bits, mix
from likewise.base.words import counted
from likewise.errors import ParameterError
from likewise.kernels.hashing import digest_strings

OWNER = "identical"
STREAM = 41
"""The stream of random numbers from which positions are drawn."""
MOST_POSITIONS = 1000
"""More positions than this are no saving."""


@dataclass(frozen=True, eq=False)
class Identical:
    """Which items are identical: `groups` of two or more row numbers, in the order of their first rows.

    of: for every item the number of its group, those of single items included. examined: how many items were read as a
    whole. positions: the positions that were compared first; empty if none were.
    """

    of: Ints
    examined: int
    positions: tuple[int, ...] = ()

    @cached_property
    def groups(self) -> list[list[int]]:
        """The groups of two items or more."""
        known = Groups.by_label(self.of)
        starts = [(known.offsets[g], known.offsets[g + 1]) for g in np.flatnonzero(known.sizes > 1)]
        return [known.members[low:high].tolist() for low, high in starts]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.groups)

    def __repr__(self) -> str:
        groups = counted(len(self), "group")
        return f"<Identical: {groups} among {counted(len(self.of), 'item')}, {self.examined:,} read as a whole>"


def identical(
    items: Any, *, positions: int | Sequence[int] | None = None, seed: int = 1, threads: int | None = None
) -> Identical:
    """Find the items that are identical, character for character (MMDS §3.9.1).

    items: strings, as a list or an Arrow column; or sets, as `Sets` or lists of tokens.

    Without `positions`, every item is hashed as a whole. With it, only the length and the bytes at these positions are
    hashed at first, and an item is read as a whole only if another one agrees with it there: one that is unique need
    not be read. A number draws that many random positions below the median length, the same for all items; a list gives
    them. Random positions are better than the first ones, because many documents begin in the same way.

    Hashes have 128 bits: two different items are taken for identical with probability 2**-128.

    >>> identical(["a rose", "a name", "a rose", "a nose"]).groups
    [[0, 2]]
    >>> identical(["a rose", "a name", "a rose", "a nose"], positions=[2, 3])
    <Identical: 1 group among 4 items, 2 read as a whole>
    """
    checks.seed(OWNER, seed)
    workers = checks.threads(OWNER, threads)
    chosen = _checked(positions)
    if isinstance(items, Sets) or _is_lists(items):
        if chosen is not None:
            raise ParameterError("The 'positions' parameter of identical has no effect for sets. Leave it out.")
        sets = items if isinstance(items, Sets) else Sets.from_lists(items)
        check_sets(OWNER, "items", sets)
        return Identical(Groups.by_digest(set_digests(sets)).of, len(sets))
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable | pa.Array | pa.ChunkedArray):
        raise ParameterError.of(OWNER, "items", "a list of strings or of sets", items)
    try:
        texts = Texts.of(items)
    except ParameterError as error:
        raise ParameterError(f"identical: {error}") from error
    digests = np.empty((len(texts), 2), np.uint64)
    if chosen is None:
        _digest(texts, np.ones(len(texts), bool), digests, workers)
        return Identical(Groups.by_digest(digests).of, len(texts))
    places = chosen if isinstance(chosen, tuple) else _drawn(texts, chosen, seed)
    looks = list(in_order(lambda chunk: _looks(chunk.load(), places), texts.chunks, workers))
    samples = np.concatenate([np.zeros(0, np.uint64), *looks])
    _, place, counts = np.unique(samples, return_inverse=True, return_counts=True)
    suspect = counts[place] > 1
    digests[:, 0], digests[:, 1] = samples, ~samples
    _digest(texts, suspect, digests, workers)
    return Identical(Groups.by_digest(digests).of, int(suspect.sum()), places)


def _checked(positions: int | Sequence[int] | None) -> int | tuple[int, ...] | None:
    """Return how many positions to draw, or which were given."""
    if positions is None:
        return None
    if isinstance(positions, int | np.integer):
        return checks.whole(OWNER, "positions", positions, 1, MOST_POSITIONS)
    rule = "a number of positions, or a list of them, from 0"
    given = checks.listed(OWNER, "positions", positions, rule)
    if not given:
        raise ParameterError.of(OWNER, "positions", rule, positions)
    return tuple(checks.whole(OWNER, "positions", place, 0, rule=rule) for place in given)


def _is_lists(items: Any) -> bool:
    """Tell whether items are lists of tokens."""
    if isinstance(items, pa.Array | pa.ChunkedArray):
        return bool(pa.types.is_list(items.type) or pa.types.is_large_list(items.type))
    first = next(iter(items), "") if isinstance(items, list | tuple) else ""
    return isinstance(first, list | tuple | set | frozenset)


def _drawn(texts: Texts, count: int, seed: int) -> tuple[int, ...]:
    """Draw positions below the median length."""
    lengths = [np.diff(chunk.load().offsets) for chunk in texts.chunks]
    middle = int(np.median(np.concatenate(lengths))) if lengths else 0
    drawn = bits(seed, STREAM, 1, count)[0] % np.uint64(max(1, middle))
    return tuple(sorted(set(drawn.astype(np.int64).tolist())))


def _looks(chunk: TextChunk, places: tuple[int, ...]) -> Hashes:
    """Hash the length and the bytes at some positions of every document; those beyond its end do not count."""
    starts, lengths = chunk.offsets[:-1], np.diff(chunk.offsets)
    hashes = mix(lengths.astype(np.uint64) + np.uint64(1))
    for place in places:
        inside: NDArray[np.bool_] = lengths > place
        found = np.zeros(len(lengths), np.uint64)
        found[inside] = chunk.data[starts[inside] + place] + np.uint64(1)
        hashes = mix(hashes ^ found)
    return hashes


def _digest(texts: Texts, chosen: NDArray[np.bool_], digests: Hashes, threads: int) -> None:
    """Write the hashes of the chosen documents as a whole."""

    def work(number: int) -> None:
        place = slice(int(texts.starts[number]), int(texts.starts[number + 1]))
        rows = np.flatnonzero(chosen[place])
        if len(rows):
            chunk = texts.chunks[number].load()
            digest_strings(chunk.eights, chunk.data, chunk.offsets, rows, digests[place])

    for _ in in_order(work, range(len(texts.chunks)), threads):
        pass
