"""Minhashing: signatures whose slots agree with probability equal to the Jaccard similarity of two sets (MMDS §3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, check_sets
from likewise.base.random import mix
from likewise.errors import IncompatibleError, ParameterError
from likewise.families import signatures as made
from likewise.families.algebra import StraightFamily
from likewise.families.buckets import equal_pairs
from likewise.families.explicit import ByFunctions, ByPermutations, ExplicitMinHash
from likewise.families.signatures import BitSignatures, Maker, Signatures, check_finished, maker_of, slots_of

METHODS = ("fast", "classic")
MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
MOST_ENTRIES = 100_000_000
"""More entries of one function than this are an error by default: they take 1.6 GB."""
WAITING = 1 << 22
"""Entries collected before they are counted, 32 MB."""


def seed_sequence(seed: int, n: int) -> Hashes:
    """Return n 64-bit seeds: the SplitMix64 stream that starts at `seed`, the same under every version of NumPy."""
    return mix(np.arange(1, n + 1, dtype=np.uint64) * np.uint64(STEP) + np.uint64(seed & MASK))


@dataclass(frozen=True, eq=False)
class PairEstimates:
    """The pairs that agree somewhere, left < right, sorted; `agree`: in how many of the functions."""

    left: Ints
    right: Ints
    agree: Ints
    functions: int

    def __len__(self) -> int:
        return len(self.left)

    @property
    def similarity(self) -> NDArray[np.float64]:
        """The estimated similarities, Y/M."""
        return self.agree / self.functions

    @property
    def error(self) -> NDArray[np.float64]:
        """The standard errors of the estimates, √(s·(1 − s)/M)."""
        s = self.similarity
        return np.sqrt(s * (1 - s) / self.functions)


@dataclass(frozen=True)
class MinHash(StraightFamily):
    """Minhash signatures of any length from a seed (MMDS §3.3).

    method="fast" (the default) is Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup, 2017): one pass over a large
    set, a few over a small one, whatever the number of slots. method="classic" hashes every element once per slot. Both
    are unbiased; the standard error of an estimate from n slots is at most sqrt(J (1 - J) / n), and smaller for the
    fast method on sets that are small compared to n. The arithmetic of both is spelled out in kernels/sketch.py. The
    slots of the classic method are numbered functions: a longer signature starts with the shorter one. Those of the
    fast method depend on n as a whole.

    >>> sets = Sets.from_lists([range(0, 900), range(100, 1000)])      # Jaccard similarity 0.8
    >>> signatures = MinHash(seed=1).signatures(sets, 1024)
    >>> signatures.shape, bool(abs(MinHash.estimate(*signatures) - 0.8) < 0.05)
    ((2, 1024), True)
    """

    seed: int = 1
    method: str = "fast"

    unit = "Jaccard distance"

    def __post_init__(self) -> None:
        checks.choice("MinHash", "method", self.method, METHODS)
        object.__setattr__(self, "seed", checks.seed("MinHash", self.seed))

    @property
    def code(self) -> int:
        """The number of the method in the kernels."""
        return METHODS.index(self.method)

    def seeds(self, n: int) -> Hashes:
        """Return the seeds of a signature of n slots: 2n for the fast method, one per round, and n for the classic."""
        return seed_sequence(self.seed, 2 * n if self.method == "fast" else n)

    def maker(self, n: int, kind: str = "signatures") -> Maker:
        """Return how signatures of n slots are made, or parts of them."""
        return Maker("MinHash", self.method, self.seed, n, kind)

    def signatures(self, sets: Sets | Sequence[Iterable[Any]], n: int) -> Signatures:
        """Return the signatures, a table with one row of n slots per set. An empty set has 2**32 - 1 in every slot.

        The table is a NumPy array of uint32 that knows how it was made: `estimate` and `merge` refuse signatures of
        another seed, method or length, and `save` writes it to a file that `Signatures.load` reads.
        """
        return Signatures(self.hashes(sets, n), self.maker(n))

    def parts(self, sets: Sets | Sequence[Iterable[Any]], n: int) -> Signatures:
        """Return signatures that can be merged with those of other parts of the same sets (MMDS Exercise 3.3.7).

        `merge` them, then `finish`: the result is the signature of the union, slot by slot. For the classic method
        these are the signatures themselves; for the fast one each slot also records the round in which it was filled.

        >>> minhash = MinHash()
        >>> whole = minhash.signatures([["a", "b", "c"]], 8)
        >>> merged = minhash.merge(minhash.parts([["a", "b"]], 8), minhash.parts([["b", "c"]], 8))
        >>> bool((minhash.finish(merged) == whole).all())
        True
        """
        if self.method == "classic":
            return self.signatures(sets, n)
        n, sets = checks.functions("MinHash.parts", n), _as_sets(sets)
        return Signatures(made.fast_parts(sets.values, sets.offsets, self.seeds(n), n), self.maker(n, "parts"))

    def merge(self, *parts: NDArray[Any]) -> NDArray[Any]:
        """Return what `parts` would return for the unions, row by row, of the sets that were sketched."""
        self._check_mine(*parts)
        if self.method == "fast" and any(slots_of("MinHash.merge", "parts", part).dtype != np.uint64 for part in parts):
            raise IncompatibleError(
                "signatures of the fast method cannot be merged once they are finished: "
                "merge what MinHash.parts returns, or use method='classic'"
            )
        return made.merge(*parts)

    def finish(self, parts: NDArray[Any]) -> NDArray[np.uint32]:
        """Return the signatures that merged parts represent."""
        self._check_mine(parts)
        if self.method == "classic":
            return parts
        table = slots_of("MinHash.finish", "parts", parts)
        if table.dtype != np.uint64:
            raise ParameterError.of("MinHash.finish", "parts", "what `parts` or `merge` returns", parts)
        whole = (table & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        maker = maker_of(parts)
        return whole if maker is None else Signatures(whole, replace(maker, kind="signatures"))

    def _check_mine(self, *parts: NDArray[Any]) -> None:
        """Raise if parts were made by a MinHash of another seed or method."""
        for maker in map(maker_of, parts):
            if maker is not None and (maker.family, maker.scheme, maker.seed) != ("MinHash", self.method, self.seed):
                raise IncompatibleError(f"signatures of {maker} cannot be merged by {self}")

    def skip(self, k: int) -> MinHash:
        """Return the same functions without the first k, to compute slots in portions; classic method only.

        >>> minhash, sets = MinHash(method="classic"), [["a", "b"]]
        >>> rest = minhash.skip(5).signatures(sets, 3)
        >>> bool((minhash.signatures(sets, 8)[:, 5:] == rest).all())
        True
        """
        if self.method == "fast":
            raise ParameterError(
                "MinHash.skip: a signature of the fast method is computed as a whole; use method='classic'"
            )
        return MinHash((self.seed + checks.whole("MinHash.skip", "k", k, 0) * STEP) & MASK, self.method)

    def bbit(self, sets: Sets | Sequence[Iterable[Any]], n: int, b: int) -> BitSignatures:
        """Return b-bit signatures, which keep only b bits per slot; see `likewise.families.signatures`."""
        return made.bbit(self.signatures(sets, n), b)

    def hashes(self, items: Any, n: int) -> NDArray[np.uint32]:
        """Return the signatures as an ordinary array."""
        from likewise.kernels.sketch import sketch_sets

        n, sets = checks.functions("MinHash.signatures", n), _as_sets(items)
        out = np.empty((len(sets), n), np.uint32)
        sketch_sets(sets.values, sets.offsets, self.code, self.seeds(n), out)
        return out

    def distances(self, items: Any, left: Ints, right: Ints) -> NDArray[np.float64]:
        """Return the Jaccard distances."""
        from likewise.measures import batch

        sets = _as_sets(items)
        return batch.jaccard_distance(sets.take(left), sets.take(right))

    def gather(self, items: Any, rows: Ints, queries: Any) -> Any:
        """Return these rows of a collection followed by the queries, as one collection."""
        return super().gather(items, rows, _as_sets(queries) if isinstance(items, Sets) else queries)

    @staticmethod
    def estimate(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> float:
        """Return the fraction of slots in which two signatures agree; an error if they were not made alike."""
        return made.agreement_of("MinHash.estimate", a, b)

    @staticmethod
    def pair_estimates(signatures: NDArray[Any], least: float = 0.0, most: int = MOST_ENTRIES) -> PairEstimates:
        """Return all pairs of a table of signatures that agree somewhere, with the fraction of slots, Y/M, that agree.

        This is the first-cut scheme, without bands: the pairs of equal values of each slot are listed, merged and
        counted. least: the least fraction. Banding replaced it, since a frequent value makes a long run, with a number
        of pairs quadratic in its length: more than `most` pairs in one slot are an error.

        >>> minhash = MinHash.from_permutations(["beadc", "abcde", "decba"], universe="abcde")
        >>> found = MinHash.pair_estimates(minhash.signatures(["ad", "c", "bde", "acd"]))
        >>> [(int(a), int(b), int(y)) for a, b, y in zip(found.left, found.right, found.agree)]
        [(0, 2, 1), (0, 3, 3), (2, 3, 1)]
        >>> found.similarity.round(3).tolist()
        [0.333, 1.0, 0.333]
        """
        owner = "MinHash.pair_estimates"
        table = slots_of(owner, "signatures", signatures)
        if table.ndim != 2 or not table.shape[1]:
            rule = "a table with one row per item and a column per function"
            raise ParameterError.of(owner, "signatures", rule, table)
        check_finished(owner, signatures)
        checks.number(owner, "least", least, 0, 1)
        most = checks.whole(owner, "most", most)
        n, functions = table.shape
        codes, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        waiting: list[Ints] = []
        for number, column in enumerate(table.T):
            waiting.append(equal_pairs(column, most, partial(_too_many, number, most)))
            if sum(map(len, waiting)) >= WAITING:
                codes, counts, waiting = *_counted(codes, counts, waiting), []
        codes, counts = _counted(codes, counts, waiting)
        kept = counts >= least * functions - 1e-9
        left, right = np.divmod(codes[kept], max(1, n))
        return PairEstimates(left, right, counts[kept], functions)

    @staticmethod
    def from_permutations(permutations: Iterable[Sequence[Any]], universe: Iterable[Any]) -> ByPermutations:
        """Return minhash functions by definition: the first element of the set under each explicit permutation."""
        return ExplicitMinHash.from_permutations(permutations, universe)

    @staticmethod
    def from_functions(functions: Iterable[Callable[[Any], int]], rows: Iterable[Any] | int) -> ByFunctions:
        """Return minhash functions by the one-pass algorithm with the given hash functions, such as x + 1 mod 5."""
        return ExplicitMinHash.from_functions(functions, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        return asdict(self)


def _as_sets(items: Any) -> Sets:
    if not isinstance(items, Sets):
        return Sets.from_lists(items)
    check_sets("MinHash", "sets", items)
    return items


def _too_many(number: int, most: int, total: int, largest: int) -> str:
    return (
        f"function {number} has {total:,} pairs of equal values, more than {most:,}: {largest:,} items share one; "
        "remove identical items first, use bands of several functions (`tune`, `pairs`), or raise `most`"
    )


def _counted(codes: Ints, counts: Ints, more: list[Ints]) -> tuple[Ints, Ints]:
    """Merge further entries, each of which counts once, into those counted so far."""
    added = np.concatenate([np.zeros(0, np.int64), *more])
    every, weights = np.concatenate([codes, added]), np.concatenate([counts, np.ones_like(added)])
    order = np.argsort(every, kind="stable")
    every, weights = every[order], weights[order]
    begins = np.flatnonzero(np.diff(every, prepend=-1))
    return every[begins], np.add.reduceat(weights, begins) if len(begins) else weights
