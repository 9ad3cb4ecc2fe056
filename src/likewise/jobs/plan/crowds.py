"""What crowds will cost: those of the sample are compared as a run compares its own, and the seconds are taken."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

import numpy as np

from likewise.base.arrays import Ints
from likewise.kernels.graph import keepers
from likewise.search.candidates import Wanted
from likewise.search.crowds.gather import Gathering
from likewise.search.items import Items
from likewise.search.local import Search
from likewise.search.scored import ScoredPairs, no_pairs

FEW = 8
"""Documents of a first crowd, whose time does not count: kernels are loaded."""


@dataclass(frozen=True)
class CrowdTrial:
    """share: of the different documents, those in crowds; members: their number in the sample. For each of these:
    seconds of one core, pairs listed, and the share that is kept."""

    share: float = 0.0
    members: int = 0
    seconds: float = 0.0
    pairs: float = 0.0
    kept: float = 1.0

    @classmethod
    def of(cls, items: Items, rows: Ints, crowds: list[Ints], known: ScoredPairs, search: Search) -> CrowdTrial:
        """Compare the crowds of a sample: numbers in `rows`, as are those of the known pairs."""
        if not crowds:
            return cls()
        few = [crowds[0][:FEW]]
        _gathered(items, rows, few, no_pairs(), search)
        begun = process_time()
        left, right, _ = _gathered(items, rows, crowds, known, search)
        seconds = process_time() - begun
        members = np.sort(np.concatenate(crowds))
        kept = keepers(np.arange(len(rows)), left, right) < 0
        n = len(members)
        return cls(n / len(rows), n, seconds / n, (len(left) - len(known[0])) / n, float(kept[members].mean()))


def _gathered(items: Items, rows: Ints, crowds: list[Ints], known: ScoredPairs, search: Search) -> ScoredPairs:
    gathering = Gathering(
        items,
        rows,
        crowds,
        ranks=np.arange(len(rows)),
        wanted=Wanted(0, len(rows)),
        threshold=search.threshold,
        seed=search.minhash.seed,
        threads=1,
    )
    pairs, _, _ = gathering.pairs(known)
    return pairs
