"""Draw docs/families.svg: what an AND before an OR, an OR before an AND, and both in turn do to a probability.

    python benchmarks/curves.py

The first two curves are those of figures 3.10 and 3.11 of the chapter, the third is the cascade of example 3.20.
"""

from __future__ import annotations

from pathlib import Path

from likewise import MinHash
from likewise.families.algebra import plot_many

FAMILIES = {
    "all of 4, any of 4": MinHash().all_of(4).any_of(4),
    "any of 4, all of 4": MinHash().any_of(4).all_of(4),
    "both, one after the other": MinHash().all_of(4).any_of(4).any_of(4).all_of(4),
}

if __name__ == "__main__":
    target = Path(__file__).parent.parent / "docs" / "families.svg"
    plot_many(list(FAMILIES.values()), target, labels=list(FAMILIES))
    for name, family in FAMILIES.items():
        print(f"{name}: {family.functions} functions, fixed point {family.fixed_point():.4f}, {family.steepest()}")
