"""Two-level perfect hashing of a static key set: linear space, and at most two probes per lookup.

One level is not enough. With n slots for n keys, some slot gets about log n/log log n of them, and avoiding all
collisions by chance takes about n² slots. Fredman, Komlós and Szemerédi (1984) use quadratic space only for small
buckets:

1. A function drawn from a weakly universal family distributes the n keys over n buckets, of sizes bᵢ. It is redrawn
   until Σ bᵢ² ≤ β·n. The expected sum is below 2n, so by Markov's inequality a draw fails with probability below
   2/β; at β = 4 the expected number of draws is at most two.
2. Bucket i gets α·bᵢ² slots and its own function, redrawn until no two of its keys share a slot. Each of its
   bᵢ·(bᵢ − 1)/2 pairs collides with probability at most 1/(α·bᵢ²), so a draw fails with probability below 1/(2α);
   at α = 2 the expected number of draws is at most 4/3.

The slots of all buckets together number at most α·β·n, always, and fewer than 2α·n on average.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from likewise.base.checks import listed, number, seeded, whole
from likewise.base.words import counted
from likewise.errors import ParameterError

Key = int | str
PRIME = 2**89 - 1
"""A Mersenne prime above every key number (below 2^66), as the universal family requires."""
LEAST, MOST = -(2**63), 2**64 - 1
"""The range of integer keys: signed and unsigned 64-bit integers."""


class Tries(NamedTuple):
    """The number of functions drawn: for the first level, and for each non-empty bucket."""

    first: int
    second: tuple[int, ...]


class Function(NamedTuple):
    """x → ((a·x + b) mod p) mod m with p = 2^89 − 1: two keys collide with probability at most 1/m."""

    a: int
    b: int
    m: int

    def __call__(self, x: int) -> int:
        """Return the hash value of x."""
        return (self.a * x + self.b) % PRIME % self.m


class PerfectHash(Mapping[Key, int]):
    """An immutable dictionary that maps fixed keys, 64-bit integers or strings, to their positions in the given list.

    `h[key]` is that position, `h.slot(key)` the slot of the key; a missing key raises KeyError. It is a Mapping: `in`,
    `len`, `get`, `items` and the rest work as in a dict.

    >>> months = PerfectHash("jan feb mar apr may jun jul aug sep oct nov dec".split())
    >>> months["mar"], "mar" in months, "smarch" in months, len(months)
    (2, True, False, 12)
    >>> months.space <= months.most_space
    True
    """

    def __init__(self, keys: Iterable[Key], seed: int = 1, *, alpha: int = 2, beta: float = 4) -> None:
        self._alpha = whole("PerfectHash", "alpha", alpha, 1)
        self._beta = number("PerfectHash", "beta", beta, 2, open_left=True)
        if not isinstance(keys, Mapping):
            keys = listed("PerfectHash", "keys", keys, "a list of whole numbers or strings")
        stream = seeded("PerfectHash", seed)
        self._keys = tuple(_checked(key) for key in keys)
        _check_distinct(self._keys)
        self._salt, numbers = _numbered(self._keys)
        self._first, buckets, tries = self._first_level(numbers, stream)
        self._functions: list[Function | None] = []
        self._starts: list[int] = []
        self._slots: list[int] = []
        second = []
        for bucket in buckets:
            function, draws = self._second_level([numbers[i] for i in bucket], stream)
            self._functions.append(function)
            self._starts.append(len(self._slots))
            if function is not None:
                cells = [-1] * function.m
                for position in bucket:
                    cells[function(numbers[position])] = position
                self._slots += cells
                second.append(draws)
        self._buckets = tuple(len(bucket) for bucket in buckets)
        self._tries = Tries(tries, tuple(second))

    def _first_level(self, numbers: list[int], stream: random.Random) -> tuple[Function, list[list[int]], int]:
        """Draw functions until the squared bucket sizes sum to at most β·n."""
        n, tries = len(numbers), 0
        while True:
            tries += 1
            function = _drawn(max(n, 1), stream)
            buckets: list[list[int]] = [[] for _ in range(n)]
            for position, x in enumerate(numbers):
                buckets[function(x)].append(position)
            if sum(len(bucket) ** 2 for bucket in buckets) <= self._beta * n:
                return function, buckets, tries

    def _second_level(self, numbers: list[int], stream: random.Random) -> tuple[Function | None, int]:
        """Draw functions until one maps the keys of a bucket to different slots; an empty bucket needs none."""
        if not numbers:
            return None, 0
        tries = 0
        while True:
            tries += 1
            function = _drawn(self._alpha * len(numbers) ** 2, stream)
            if len({function(x) for x in numbers}) == len(numbers):
                return function, tries

    def slot(self, key: Key) -> int:
        """Return the slot of a key, at least 0 and below α·β·n; no two keys share a slot.

        Two functions are evaluated and one key is compared, however many keys there are.
        """
        found = self._find(key)
        if found is None:
            raise KeyError(key)
        return found

    def __getitem__(self, key: Key) -> int:
        return self._slots[self.slot(key)]

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<PerfectHash of {counted(len(self), 'key')} in {counted(self.space, 'cell')}>"

    def _find(self, key: object) -> int | None:
        plain = _plain(key)
        if plain is None or not self._keys:
            return None
        x = _number(plain, self._salt)
        bucket = self._first(x)
        function = self._functions[bucket]
        if function is None:
            return None
        slot = self._starts[bucket] + function(x)
        position = self._slots[slot]
        return slot if position >= 0 and self._keys[position] == plain else None

    @property
    def buckets(self) -> tuple[int, ...]:
        """The number of keys in each bucket of the first level, which a one-level table would have to search."""
        return self._buckets

    @property
    def space(self) -> int:
        """The number of cells: one per bucket, plus all slots."""
        return len(self) + len(self._slots)

    @property
    def most_space(self) -> int:
        """The upper bound of `space`: (1 + α·β)·n."""
        return len(self) + math.floor(self._alpha * self._beta * len(self))

    @property
    def expected_space(self) -> int:
        """The upper bound of the mean of `space` over seeds: n + α·(2n − 1)."""
        return len(self) + self._alpha * (2 * len(self) - 1) if self._keys else 0

    @property
    def tries(self) -> Tries:
        """The number of functions drawn, for the first level and for each non-empty bucket."""
        return self._tries

    @property
    def expected_tries(self) -> tuple[float, float]:
        """The upper bounds of the mean number of draws: β/(β − 2) for the first level, 2α/(2α − 1) for a bucket."""
        return self._beta / (self._beta - 2), 2 * self._alpha / (2 * self._alpha - 1)


def _drawn(m: int, stream: random.Random) -> Function:
    return Function(stream.randrange(1, PRIME), stream.randrange(PRIME), m)


def _plain(key: object) -> Key | None:
    """Return a key as a Python int or str; None if it is neither, or out of range."""
    if isinstance(key, str):
        return str(key)
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and LEAST <= key <= MOST:
        return int(key)
    return None


def _checked(key: object) -> Key:
    plain = _plain(key)
    if plain is None:
        raise ParameterError.of("PerfectHash", "keys", "strings or whole numbers from −2^63 to 2^64 − 1", key)
    return plain


def _check_distinct(keys: tuple[Key, ...]) -> None:
    places: dict[Key, int] = {}
    for place, key in enumerate(keys):
        if places.setdefault(key, place) != place:
            got = f"{key!r} at {places[key]} and at {place}"
            raise ParameterError(f"The 'keys' parameter of PerfectHash must be distinct keys. Got {got} instead.")


def _numbered(keys: tuple[Key, ...]) -> tuple[int, list[int]]:
    """Return the first salt that gives all keys different numbers, and the numbers."""
    salt = 0
    while True:
        numbers = [_number(key, salt) for key in keys]
        if len(set(numbers)) == len(keys):
            return salt, numbers
        salt += 1


def _number(key: Key, salt: int) -> int:
    """Return a number below 2^66 for a key: integers come first, then strings by a 64-bit digest."""
    return key - LEAST if isinstance(key, int) else 2**65 + _digest(key, salt)


def _digest(text: str, salt: int) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, salt=salt.to_bytes(8, "little")).digest(), "little")
