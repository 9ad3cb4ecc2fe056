"""Items to band keys: each signature is computed, cut into bands, hashed, and not kept (MMDS §3.3.5 and §3.4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Chunk, Hashes, Ints, Sets, Texts
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.kernels import sketch
from likewise.kernels.documents import key_documents
from likewise.search.band_keys import ShiftedKeys, WrittenKeys
from likewise.search.recall.sample import NO_HITS, NO_SAMPLE, Probe
from likewise.shingle import Shingler

SET_BATCH = 20_000
"""Sets that a thread sketches in one call."""
SAMPLE_SLOTS = 512
"""Slots of the signatures by which the similarities of a sample are estimated, each within about 0.02."""


@dataclass(frozen=True)
class SketchPlan:
    """How band keys are made, and where they go.

    out: where they are written. tick: called with the number of items just done. probe: is shown every item, if given.
    """

    minhash: MinHash
    banding: Banding
    out: WrittenKeys
    threads: int = 1
    tick: Tick = lambda done: None
    probe: Probe | None = None

    def shifted(self, start: int, items: int) -> SketchPlan:
        """Return the plan for some of the items of a collection, numbered from `start` in the whole."""
        probe = self.probe.shifted(start) if self.probe else None
        return replace(self, out=ShiftedKeys(self.out, start, items), probe=probe)


def key_texts(texts: Texts, rows: Ints, shingler: Shingler, common: Hashes | None, plan: SketchPlan) -> Hashes:
    """Write the band keys of these documents; return the fingerprints of their sets (0, 0 for an empty document).

    Text goes to keys in one kernel, and no set is kept. common: a table of shingles to leave out.
    """
    minhash, banding, out, probe = plan.minhash, plan.banding, plan.out, plan.probe
    digests = np.empty((len(rows), 2), np.uint64)
    seeds = minhash.seeds(banding.slots)

    def work(task: tuple[Chunk, Ints, slice]) -> int:
        stored, local, place = task
        chunk = shingler.prepare(stored.load())
        recipe = shingler.recipe_for(chunk, local)
        if common is not None:
            recipe = recipe._replace(common=common)
        keys, done = out.room(place), 0
        hits = probe.room() if probe else NO_HITS
        while done < len(local):
            more, count = key_documents(
                chunk.data,
                chunk.offsets,
                local[done:],
                recipe,
                minhash.code,
                seeds,
                banding.r,
                keys[done:],
                digests[place][done:],
                probe.index(place.start + done) if probe else NO_SAMPLE,
                hits,
            )
            if probe:
                probe.take(hits, count, place.start + done)
            done += more
        out.put(place, keys)
        return len(local)

    for done in in_order(work, texts.split(rows), plan.threads):
        plan.tick(done)
    return digests


def key_sets(sets: Sets, plan: SketchPlan) -> None:
    """Write the band keys of every set."""
    minhash, banding, out = plan.minhash, plan.banding, plan.out
    seeds = minhash.seeds(banding.slots)

    def work(start: int) -> int:
        part = slice(start, min(start + SET_BATCH, len(sets)))
        offsets = sets.offsets[part.start : part.stop + 1]
        keys = out.room(part)
        sketch.key_sets(sets.values, offsets, minhash.code, seeds, banding.r, keys)
        out.put(part, keys)
        return len(offsets) - 1

    for done in in_order(work, range(0, len(sets), SET_BATCH), plan.threads):
        plan.tick(done)


def sample_signatures(sets: Sets, minhash: MinHash, slots: int = SAMPLE_SLOTS) -> NDArray[np.uint16]:
    """Return 16 bits of each slot of the signatures of a sample."""
    return minhash.hashes(sets, slots).astype(np.uint16)


def agreement_counts(signatures: NDArray[np.uint16], threads: int) -> Ints:
    """Return the number of pairs of these signatures that agree in 0, 1, … slots, for tuning."""

    def count(first: int) -> Ints:
        counts = np.zeros(signatures.shape[1] + 1, np.int64)
        sketch.agreements(signatures, first, threads, counts)
        return counts

    total: Ints = np.sum(list(in_order(count, range(threads), threads)), axis=0)
    return total
