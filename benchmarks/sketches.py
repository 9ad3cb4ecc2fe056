"""Classic minhash (M3) beside Fast Similarity Sketching (M4): bias, variance against theory, speed.

python benchmarks/sketches.py

Pairs of random sets of one size share 80 % of their elements, so that their Jaccard similarity is 2/3. Theory for n
slots: the mean error is 0, its variance J (1 - J) / n. Each number comes with its standard error.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from likewise.base.arrays import Sets
from likewise.families.minhash import MinHash

SIZES = (5, 50, 400, 5_000, 200_000)
SLOTS = (64, 128, 256)
METHODS = ("classic", "fast")


@dataclass(frozen=True)
class Quality:
    """What was measured for sets of one size, one signature length and one method."""

    bias: float
    bias_error: float
    variance: float
    variance_error: float
    documents_per_second: float


def pairs(size: int, count: int, seed: int = 1) -> tuple[Sets, float]:
    """Return `count` pairs of sets, one behind the other, and their similarity."""
    shared = size * 4 // 5
    union = 2 * size - shared
    values = np.random.default_rng(seed).integers(0, 2**64, (count, union), dtype=np.uint64)
    both = np.concatenate([values[:, :size], values[:, union - size :]], axis=1)
    return Sets(both.ravel(), np.arange(2 * count + 1) * size), shared / union


def measure(method: str, size: int, slots: int) -> Quality:
    """Sketch enough pairs to tell a bias from chance, few enough to finish in seconds."""
    count = max(20, min(2000, 2_000_000 // size))
    sets, similarity = pairs(size, count)
    minhash = MinHash(seed=7, method=method)
    minhash.signatures(sets.take(np.arange(1)), slots)  # compiled before the clock starts
    seconds: list[float] = []
    while sum(seconds) < 0.1:
        start = time.process_time()
        signatures = minhash.signatures(sets, slots)
        seconds.append(time.process_time() - start)
    errors = (signatures[0::2] == signatures[1::2]).mean(axis=1) - similarity
    theory = similarity * (1 - similarity) / slots
    squares = errors**2 / theory
    return Quality(
        float(errors.mean()),
        float(errors.std() / count**0.5),
        float(squares.mean()),
        float(squares.std() / count**0.5),
        len(sets) / min(seconds),
    )


def main() -> None:
    """Print the table; the last column is the speed relative to the classic method."""
    heads = f"{'set size':>8} {'slots':>5} {'method':>7} {'bias':>19} {'variance / theory':>18}"
    print(f"{heads} {'documents/s':>12} {'×':>6}")
    for size in SIZES:
        for slots in SLOTS:
            measured = {method: measure(method, size, slots) for method in METHODS}
            for method, q in measured.items():
                bias = f"{q.bias:+.5f} ± {q.bias_error:.5f}"
                variance = f"{q.variance:.2f} ± {q.variance_error:.2f}"
                ratio = q.documents_per_second / measured["classic"].documents_per_second
                line = f"{size:>8,} {slots:>5} {method:>7} {bias:>19} {variance:>18}"
                print(f"{line} {q.documents_per_second:>12,.0f} {ratio:>6.1f}", flush=True)


if __name__ == "__main__":
    main()
