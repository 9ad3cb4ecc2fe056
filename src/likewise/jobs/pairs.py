"""The two jobs: `dedup` removes near-duplicates and explains each removal, `pairs` lists similar pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.memory import Budget
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import ParameterError
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.read import Files
from likewise.io.workspace import Workspace
from likewise.jobs.result import Pairs, pair_table
from likewise.jobs.settings import Settings, read_options
from likewise.search.expand import listed_pairs, nearest_rows
from likewise.search.load import collect, joined
from likewise.search.matches import Sides
from likewise.search.prepare import METHODS
from likewise.shingle import Shingler

OWNER = "pairs"


def pairs(
    source: Any,
    other: Any = None,
    *,
    measure: str | None = None,
    within: float | None = None,
    vector: str = "vector",
    text: str = "text",
    id: str | None = None,
    shingle: str | Shingler = "words:5",
    threshold: float = 0.8,
    recall: float = 0.99,
    method: str = "auto",
    k: int | None = None,
    threads: int | None = None,
    seed: int = 1,
    sketch: str = "fast",
    bands: int | None = None,
    rows: int | None = None,
    max_slots: int = DEFAULT_MAX_SLOTS,
    ignore_common: float | None = None,
    certify: int | None = None,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    lines: bool = False,
    html: bool = False,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    batch_rows: int | None = None,
    progress: Progress | None = None,
) -> Pairs:
    """Return a table (id_a, id_b, similarity) of all pairs at or above the threshold, exact and sorted.

    With `other`, pairs of a document of `source` and one of `other`. With `k`, for every document of `source` its
    `k` most similar partners, best first (so a pair within one collection stands there from both sides).
    The other parameters are those of `dedup`.

    >>> pairs(["a b c d e f", "x", "a b c d e f"]).to_pylist()
    [{'id_a': 0, 'id_b': 2, 'similarity': 1.0}]

    Vectors: measure="angle" (degrees), "l2", "l1" or "hamming" and `within`, the largest distance; the table is
    (id_a, id_b, distance). source: an array with one row a vector (floats or integers of any size, a memory map too;
    for hamming, bool or packed bits in unsigned integers), a .npy file, or a table with a column `vector` of lists. A
    pair at that distance is found with probability `recall` at least, or for certain with method="exact".

    >>> pairs([[0, 0], [3, 4], [9, 9]], measure="l2", within=5).to_pylist()
    [{'id_a': 0, 'id_b': 1, 'distance': 5.0}]
    """
    if measure is not None or within is not None:
        if measure is None or within is None:
            raise ParameterError("The 'measure' and 'within' parameters of pairs go together: vectors need both.")
        if threshold != 0.8:
            raise ParameterError("The 'threshold' parameter of pairs is for documents and sets; vectors take 'within'.")
        return _vector_pairs(
            source, other, measure=measure, within=within, vector=vector, id=id, recall=recall, method=method, k=k,
            threads=threads, seed=seed, memory=memory, spill=spill, progress=progress,
        )  # fmt: skip
    paths = source.paths if isinstance(source, Files) else [source]
    if isinstance(source, np.ndarray) or any(
        str(path).endswith(".npy") for path in paths if isinstance(path, str | Path)
    ):
        raise ParameterError("Vectors are compared by a measure: pairs(vectors, measure='angle', within=15).")
    if k is not None:
        checks.whole("pairs", "k", k)
    chosen = Settings(
        "pairs", shingle, threshold, recall, seed, sketch, bands, rows, max_slots, ignore_common, certify, method
    )
    budget = Budget.of("pairs", memory)
    options = read_options(shingle, text, id, None, on_error, encoding_errors, lines, html, batch_rows, budget, OWNER)
    count = checks.threads("pairs", threads)
    search = chosen.search(count, budget)
    log = RunLog.of(progress)
    space = Workspace.temporary(Path(spill) if spill is not None else None)
    limit = budget.texts if other is None else budget.texts // 2
    here = collect(source, options, chosen.shingle, log, count, space, limit)
    there = here
    if other is not None:
        there = collect(other, options, here.shingler or chosen.shingle, log, count, space, limit, "read-other")
    assert here.items is not None
    assert there.items is not None
    split = 0 if other is None else here.rows
    items = here.items if other is None else joined(here.items, there.items)
    if other is not None and (split == 0 or len(items) == split):
        left = right = np.zeros(0, np.int64)
        similarity = np.zeros(0)
        abridged: dict[str, int] = {}
    else:
        matches = search.find(items, log, space, None if other is None else Sides(split, across=True))
        if k is None:
            left, right, similarity, abridged = listed_pairs(matches, within=other is None)
        else:
            within_one, abridged = other is None, {}
            here_groups = int(np.searchsorted(matches.groups.first, split))
            left, right, similarity = nearest_rows(
                matches.groups, matches.left, matches.right, matches.similarity, k, here_groups,
                across=not within_one, same=1.0, both=within_one,
            )  # fmt: skip
    table = pair_table(here.name(left), there.name(right - split), similarity)
    log.counts["pairs"] = len(left)
    if abridged:
        log.details["abridged"] = abridged
    parameters = {**chosen.to_dict(here.shingler), "k": k, "text": text, "id": id, "threads": count}
    stats = run_json("pairs", parameters, [here] if there is here else [here, there], log)
    space.finish()
    return Pairs(table, stats)


def _vector_pairs(
    source: Any,
    other: Any,
    *,
    measure: str,
    within: object,
    vector: str,
    id: str | None,
    recall: float,
    method: str,
    k: int | None,
    threads: int | None,
    seed: int,
    memory: str | int | None,
    spill: str | Path | None,
    progress: Progress | None,
) -> Pairs:
    """Return the pairs of vectors within a distance."""
    from threadpoolctl import threadpool_limits

    from likewise.jobs.nearest import distance_table
    from likewise.search.vectors.load import space_of, vectors
    from likewise.search.vectors.pairs import VectorAim
    from likewise.search.vectors.pairs import joined as joined_vectors
    from likewise.search.vectors.spaces import check_measure, check_within

    check_measure(OWNER, measure)
    checks.seed(OWNER, seed)
    checks.recall(OWNER, recall)
    checks.choice(OWNER, "method", method, METHODS)
    if k is not None:
        checks.whole(OWNER, "k", k)
    budget = Budget.of(OWNER, memory)
    count = checks.threads(OWNER, threads)
    log = RunLog.of(progress)
    folder = Path(spill) if spill is not None else None
    with log.stage("read"):
        parts = [vectors(source, vector, id, budget.texts, folder)]
        if other is not None:
            parts.append(vectors(other, vector, id, budget.texts, folder))
        space = space_of(measure, parts, budget.texts, folder)
    split = len(parts[0].table) if other is not None else 0
    aim = VectorAim(check_within(OWNER, space, within), recall, seed, method, count, budget.total, folder)
    with threadpool_limits(1, "blas"):
        left, right, distance = joined_vectors(space, split, other is not None, aim, log, k)
    log.counts["pairs"] = len(left)
    parameters = {
        "measure": measure, "within": aim.within, "recall": recall, "method": method, "seed": seed, "k": k,
        "vector": vector, "id": id, "threads": count, "memory": budget.total,
    }  # fmt: skip
    return Pairs(distance_table(parts, split, left, right, distance), run_json(OWNER, parameters, parts, log))
