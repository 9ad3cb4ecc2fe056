"""Minhashing (§3.3): signatures whose slots agree with a probability equal to the Jaccard similarity of two sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.random import mix
from likewise.errors import IncompatibleError, ParameterError
from likewise.families import sketches
from likewise.families.algebra import Family, check_distance
from likewise.families.explicit import ByFunctions, ByPermutations, ExplicitMinHash
from likewise.families.sketches import BitSignatures

METHODS = ("fast", "classic")
MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15


def seed_sequence(seed: int, n: int) -> Hashes:
    """Return n seeds of 64 bits: the SplitMix64 stream that starts at `seed`; the same under every version of NumPy."""
    return mix(np.arange(1, n + 1, dtype=np.uint64) * np.uint64(STEP) + np.uint64(seed & MASK))


@dataclass(frozen=True)
class MinHash(Family):
    """Minhash signatures of any length from a seed (M3, M4).

    method="fast" (the default) is Fast Similarity Sketching: one pass for a large set, a few for a small one, whatever
    the number of slots. method="classic" hashes every element once for every slot. Both are unbiased; the standard
    error of an estimate from n slots is at most sqrt(J (1 - J) / n), and for the fast one less on sets that are small
    beside n. The arithmetic of both is written out in kernels/sketch.py. The slots of the classic method are numbered
    functions: a longer signature begins like a shorter one. Those of the fast one depend on n as a whole.

    >>> sets = Sets.from_lists([range(0, 900), range(100, 1000)])      # Jaccard similarity 0.8
    >>> signatures = MinHash(seed=1).signatures(sets, 1024)
    >>> signatures.shape, bool(abs(MinHash.estimate(*signatures) - 0.8) < 0.05)
    ((2, 1024), True)
    """

    seed: int = 1
    method: str = "fast"

    unit = "Jaccard distance"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError.of("MinHash", "method", f"one of {', '.join(METHODS)}", self.method)
        check_seed("MinHash", self.seed)

    @property
    def code(self) -> int:
        """The number by which kernels know the method."""
        return METHODS.index(self.method)

    def seeds(self, n: int) -> Hashes:
        """Return the seeds of a signature of n slots: 2n for the fast method, one a round, and n for the classic."""
        return seed_sequence(self.seed, 2 * n if self.method == "fast" else n)

    def signatures(self, sets: Sets | Sequence[Iterable[Any]], n: int) -> NDArray[np.uint32]:
        """Return one row of n slots for every set. An empty set has 2**32 - 1 in every slot."""
        from likewise.kernels.sketch import sketch_sets

        n, sets = check_functions("MinHash.signatures", n), _as_sets(sets)
        out = np.empty((len(sets), n), np.uint32)
        sketch_sets(sets.values, sets.offsets, self.code, self.seeds(n), out)
        return out

    def parts(self, sets: Sets | Sequence[Iterable[Any]], n: int) -> NDArray[Any]:
        """Return signatures that can be merged with those of other parts of the same sets (M5, exercise 3.3.7).

        `merge` them, then `finish`: the result is the signature of the union, slot by slot. For the classic method
        these are the signatures themselves; for the fast one each slot tells also in which round it was filled.

        >>> minhash = MinHash()
        >>> whole = minhash.signatures([["a", "b", "c"]], 8)
        >>> merged = minhash.merge(minhash.parts([["a", "b"]], 8), minhash.parts([["b", "c"]], 8))
        >>> bool((minhash.finish(merged) == whole).all())
        True
        """
        if self.method == "classic":
            return self.signatures(sets, n)
        n, sets = check_functions("MinHash.parts", n), _as_sets(sets)
        return sketches.fast_parts(sets.values, sets.offsets, self.seeds(n), n)

    def merge(self, *parts: NDArray[Any]) -> NDArray[Any]:
        """Return what `parts` would give for the unions, row by row, of the sets that were sketched."""
        if self.method == "fast" and any(np.asarray(part).dtype != np.uint64 for part in parts):
            raise IncompatibleError(
                "signatures of the fast method cannot be merged once they are finished: "
                "merge what MinHash.parts gives, or use method='classic'"
            )
        return sketches.merge(*parts)

    def finish(self, parts: NDArray[Any]) -> NDArray[np.uint32]:
        """Return the signatures that merged parts stand for."""
        return (parts & np.uint64(0xFFFFFFFF)).astype(np.uint32) if self.method == "fast" else parts

    def skip(self, k: int) -> MinHash:
        """Return the same functions without the first k, so that slots can be made in portions: classic method only.

        >>> minhash, sets = MinHash(method="classic"), [["a", "b"]]
        >>> rest = minhash.skip(5).signatures(sets, 3)
        >>> bool((minhash.signatures(sets, 8)[:, 5:] == rest).all())
        True
        """
        if self.method == "fast":
            raise ParameterError(
                "MinHash.skip: a signature of the fast method is made as a whole; use method='classic'"
            )
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
            raise ParameterError.of("MinHash.skip", "k", "a whole number from 0 on", k)
        return MinHash((self.seed + int(k) * STEP) & MASK, self.method)

    def bbit(self, sets: Sets | Sequence[Iterable[Any]], n: int, b: int) -> BitSignatures:
        """Return signatures of which only b bits a slot are kept (M7): see `likewise.families.sketches`."""
        return sketches.bbit(self.signatures(sets, n), b, made_by=str(self))

    def collision(self, d: Any) -> Any:
        """Return 1 − d: two sets at Jaccard distance d agree in a slot with that probability."""
        return 1 - check_distance("MinHash", d, 1)

    def hashes(self, items: Any, n: int) -> NDArray[np.uint32]:
        """Return the signatures."""
        return self.signatures(items, n)

    def distances(self, items: Any, left: Ints, right: Ints) -> NDArray[np.float64]:
        """Return the Jaccard distances."""
        from likewise.measures import batch

        sets = _as_sets(items)
        return batch.jaccard_distance(sets.take(left), sets.take(right))

    @staticmethod
    def estimate(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> float:
        """Return the fraction of slots in which two signatures agree."""
        if a.shape != b.shape:
            raise IncompatibleError(f"signatures of {a.size} and of {b.size} slots cannot be compared")
        return float(np.mean(a == b))

    @staticmethod
    def from_permutations(permutations: Iterable[Sequence[Any]], universe: Iterable[Any]) -> ByPermutations:
        """Minhash by its definition: the first element of the set under each permutation written out (M1)."""
        return ExplicitMinHash.from_permutations(permutations, universe)

    @staticmethod
    def from_functions(functions: Iterable[Callable[[Any], int]], rows: Iterable[Any] | int) -> ByFunctions:
        """Minhash by the one-pass algorithm with the hash functions given, such as x + 1 mod 5 (M2)."""
        return ExplicitMinHash.from_functions(functions, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        return asdict(self)


def check_seed(owner: str, seed: object) -> None:
    """Raise unless the seed is a whole number from 0 to 2**64 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MASK:
        raise ParameterError.of(owner, "seed", "a whole number from 0 to 2**64 - 1", seed)


def check_functions(owner: str, n: object) -> int:
    """Raise unless n is a positive whole number; return it as an int."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ParameterError.of(owner, "n", "a positive whole number", n)
    return int(n)


def _as_sets(items: Any) -> Sets:
    return items if isinstance(items, Sets) else Sets.from_lists(items)
