"""`pairs`: all similar pairs of documents, sets or vectors, within one collection or across two."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from threadpoolctl import threadpool_limits

from likewise.base import checks
from likewise.base.arrays import Hashes, Sets, to_arrow
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import InputError, ParameterError
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.read import Files, ReadOptions
from likewise.io.workspace import Workspace
from likewise.jobs.engines import cluster_engine
from likewise.jobs.explain.traces import SetTrace, VectorTrace
from likewise.jobs.inputs import opened, reading, reading_given
from likewise.jobs.result import Pairs
from likewise.jobs.rows import Rows, estimate_table, pair_table
from likewise.jobs.settings import HASHING, Resources, Settings
from likewise.jobs.vectors import VectorSettings, aimed, distance_table, read_vectors
from likewise.search.estimate import standard_errors
from likewise.search.exact.bounds import MEASURES as SET_MEASURES
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.explain import explain as explain_filters
from likewise.search.exact.listing import HeldPairs, PairList, pairs_below
from likewise.search.exact.pairs import JoinTask, join_sets
from likewise.search.expand import listed_pairs, nearest_rows
from likewise.search.items import Items
from likewise.search.load import Collection, collect, joined
from likewise.search.matches import Sides, VerifiedPairs
from likewise.search.prepare import PreparedSearch, prepare
from likewise.search.scored import Scores, no_pairs
from likewise.search.vectors.pairs import joined as joined_vectors
from likewise.search.vectors.spaces import SPACES
from likewise.shingle import Shingler

OWNER = "pairs"


def pairs(
    source: Any,
    other: Any = None,
    *,
    measure: str = "jaccard",
    threshold: float = 0.8,
    within: float | None = None,
    below: float | None = None,
    beyond: float | None = None,
    k: int | None = None,
    text: str = "text",
    vector: str = "vector",
    id: str | None = None,
    shingle: str | Shingler = "words:5",
    recall: float = 0.99,
    method: str = "auto",
    estimate: bool = False,
    explain: bool = False,
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
    plain: bool = False,
    hidden: bool = False,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    batch_rows: int | None = None,
    progress: Progress | None = None,
    engine: str = "auto",
    master: str | None = None,
) -> Pairs:
    """Find all similar pairs of documents, sets or vectors; every similarity is exact, unless you ask for estimates.

    source: what `dedup` takes, or vectors. other: a second collection; then pairs have one item of each.
    k: only the `k` most similar partners of each item of `source`, best first (a pair within one collection is then
        listed from both sides).

    Documents and sets: `measure` is a similarity, and `threshold` the least similarity of a pair. The table has the
    columns id_a, id_b, similarity. "jaccard" |a ∩ b| / |a ∪ b|; "containment" |a ∩ b| / |a|, of id_a's set in id_b's;
    "cosine" |a ∩ b| / √(|a|·|b|); "dice" 2|a ∩ b| / (|a| + |b|); "overlap" |a ∩ b| / min(|a|, |b|). For all but jaccard
    the search is exact.

    >>> pairs(["a b c d e f", "x", "a b c d e f"]).to_pylist()
    [{'id_a': 0, 'id_b': 2, 'similarity': 1.0}]
    >>> pairs(["milk bread", "milk bread eggs tea"], shingle="tokens", measure="containment").to_pylist()
    [{'id_a': 0, 'id_b': 1, 'similarity': 1.0}]

    Vectors: `measure` is a distance, "angle" (degrees), "l2", "l1" or "hamming", and `within` the largest distance of a
    pair. The table has the columns id_a, id_b, distance. source: an array with one vector per row (floats or integers
    of any size, also a memory map; for hamming bool, or bits packed in unsigned integers), a stack of images of shape
    (n, height, width) or (n, height, width, channels), each a vector of its pixels, a .npy file, or a table or Spark
    DataFrame with a column `vector` of lists.

    >>> pairs([[0, 0], [3, 4], [9, 9]], measure="l2", within=5).to_pylist()
    [{'id_a': 0, 'id_b': 1, 'distance': 5.0}]

    below, beyond: only pairs with a similarity below `below`, or a distance above `beyond`: similar, but likely no
        copies or mirrors of each other. With k, the k most similar of these.

    >>> pairs([[0, 0], [0, 0.1], [3, 4]], measure="l2", within=5, beyond=4.95).to_pylist()
    [{'id_a': 0, 'id_b': 2, 'distance': 5.0}]

    recall: a pair at the threshold, or at the distance `within`, is found with at least this probability.
    method: "lsh" (locality-sensitive hashing, with that recall), "exact" (no pair is missed), or "auto", whichever is
        predicted to be cheaper; `.stats["method"]` says which and why.
    estimate: of the pairs that LSH proposes, take those whose signatures agree in at least the fraction `threshold` of
        their slots, and do not compare the sets (MMDS §3.4.3, step 6). The columns are then id_a, id_b,
        estimated_similarity and standard_error. A pair at the threshold is accepted with a probability of about a half.
        Signatures have bands · rows slots if these are given, else 256 or more.
    explain: also count the pairs that each filter of the exact join leaves (MMDS §3.9), in
        `.stats["details"]["explained"]`; the search is then exact.
    The other parameters are those of `dedup`. A parameter that has no effect in a call is an error.
    """
    given = dict(locals())
    on_cluster = cluster_engine(OWNER, engine, master, source, other)
    if on_cluster is not None:
        return cast(Pairs, on_cluster(given))
    checks.choice(OWNER, "measure", measure, (*SET_MEASURES, *SPACES))
    if k is not None:
        checks.whole(OWNER, "k", k)
    resources = Resources.of(OWNER, threads, memory, spill)
    settings = Settings(
        OWNER, shingle, threshold, recall, seed, sketch, bands, rows, max_slots, ignore_common, certify, method,
        estimate,
    )  # fmt: skip
    options = reading(
        settings, resources, text, id, on_error, encoding_errors, lines, html, batch_rows, None, plain, hidden
    )
    log = RunLog.of(progress)
    if measure in SPACES:
        return _vector_pairs(source, other, vector_settings(given, settings, options), resources, log)
    _check_sets(source, measure, settings, explain)
    distances = {"within": (within, None), "beyond": (beyond, None), "vector": (vector, "vector")}
    checks.unused(OWNER, distances, f"with measure={measure!r}, which compares sets")
    if below is not None:
        rule = f"above the threshold, {settings.threshold:g}, and at most 1"
        checks.number(OWNER, "below", below, settings.threshold, 1, open_left=True, rule=rule)
    return _set_pairs(source, other, measure, k, below, explain, settings, options, resources, log)


def vector_settings(given: dict[str, Any], settings: Settings, options: ReadOptions) -> VectorSettings:
    """Return the settings of a search for vectors; raise if one is missing, or given and has no effect."""
    measure = given["measure"]
    if given["within"] is None:
        raise ParameterError(
            f"The 'within' parameter of pairs is needed with measure={measure!r}: the largest distance of a pair."
        )
    documents = settings.given("shingle", "threshold", *HASHING[1:], "ignore_common")
    others = {"explain": (given["explain"], False), "below": (given["below"], None)}
    unused = {**documents, **reading_given(settings, options), **others}
    checks.unused(OWNER, unused, f"with measure={measure!r}, which compares vectors")
    names = ("measure", "vector", "id", "recall", "seed", "method", "k", "within", "beyond")
    return VectorSettings(OWNER, **{name: given[name] for name in names})


def _check_sets(source: Any, measure: str, settings: Settings, explain: bool) -> None:
    """Raise if vectors are given without a measure of distance, or if hashing is asked for where it cannot serve."""
    paths = source.paths if isinstance(source, Files) else [source]
    arrays = (str(path).endswith(".npy") for path in paths if isinstance(path, str | Path))
    if isinstance(source, np.ndarray) or any(arrays):
        raise ParameterError("Vectors are compared by a distance: use measure='angle' and within=15, for example.")
    if measure == "jaccard" and not explain:
        return
    why = "explain=True" if measure == "jaccard" else f"measure={measure!r}"
    if settings.method == "lsh":
        raise ParameterError.of(OWNER, "method", f"'auto' or 'exact' with {why}", settings.method)
    checks.unused(OWNER, settings.given(*HASHING), f"with {why}, which is an exact search")


def _set_pairs(
    source: Any,
    other: Any,
    measure: str,
    k: int | None,
    below: float | None,
    explain: bool,
    settings: Settings,
    options: ReadOptions,
    resources: Resources,
    log: RunLog,
) -> Pairs:
    """Read, search, and list the pairs of documents or sets."""
    space = Workspace.temporary(resources.spill)
    try:
        parts = _read(source, other, settings, options, resources, space, log)
        whole = _Whole(parts)
        found = _found(whole, k, below, explain, measure, settings, resources, space, log)
    finally:
        space.finish()
    log.counts["pairs"] = len(found)
    parameters = {
        "measure": measure, **settings.to_dict(parts[0].shingler), "below": below, "k": k, "text": options.text,
        "id": options.id, "on_error": options.on_error, "encoding_errors": options.encoding_errors,
        "lines": options.lines, "sets": options.sets, "html": options.html, "plain": options.plain,
        "hidden": options.hidden, "threads": resources.threads, "memory": resources.budget.total,
    }  # fmt: skip
    result = Pairs(_named(found, parts), run_json(OWNER, parameters, parts, log))
    result.traced(SetTrace.of(parts, whole.common))
    return result


def _named(found: PairList, parts: list[Collection]) -> Any:
    """Return the table of the pairs with the ids of their items; of pairs in a file, as rows made when needed."""
    if isinstance(found, EstimatedPairs):
        names = parts[0].name(found.left), parts[-1].name(found.right)
        return estimate_table(*names, found.similarity, found.error)
    if isinstance(found, HeldPairs):
        return pair_table(parts[0].name(found.left), parts[-1].name(found.right), found.similarity)
    return Rows(
        len(found),
        {
            "id_a": lambda part: parts[0].name(found.part(part)[0]),
            "id_b": lambda part: parts[-1].name(found.part(part)[1]),
            "similarity": lambda part: to_arrow(found.part(part)[2]),
        },
    )


def _read(
    source: Any,
    other: Any,
    settings: Settings,
    options: ReadOptions,
    resources: Resources,
    space: Workspace,
    log: RunLog,
) -> list[Collection]:
    """Read one collection or two; the second is shingled like the first."""
    inputs = opened(settings, options, source, *([] if other is None else [other]))
    limit = resources.budget.texts // len(inputs)
    shingle = settings.shingle
    parts: list[Collection] = []
    for number, one in enumerate(inputs):
        step = "read-other" if number else "read"
        parts.append(collect(one, options, shingle, log, resources.threads, space, limit, step))
        shingle = parts[0].shingler or shingle
    return parts


@dataclass(frozen=True)
class EstimatedPairs(HeldPairs):
    """Pairs whose similarity is estimated, with the standard error of each; 0 for equal sets."""

    error: Scores


class _Whole:
    """The items of one collection or two, end to end; the second begins at row `split`. common: shingles left out."""

    def __init__(self, parts: list[Collection]) -> None:
        items = [part.items for part in parts if part.items is not None]
        self.across = len(parts) == 2
        self.split = parts[0].rows if self.across else 0
        self.items: Items = joined(*items) if self.across else items[0]
        self.sides = Sides(self.split, across=True) if self.across else None
        self.one_sided = self.across and not 0 < self.split < len(self.items)
        self.common: Hashes | None = None

    def sets(self, items: Items, threads: int, log: RunLog) -> list[Sets]:
        """Return the sets of each collection."""
        with log.stage("sets", len(items)) as tick:
            every = items.sets(np.arange(len(items)), threads)
            tick(len(items))
        if not self.across:
            return [every]
        cut = every.offsets[self.split]
        here = Sets(every.values[:cut], every.offsets[: self.split + 1])
        return [here, Sets(every.values[cut:], every.offsets[self.split :] - cut)]


def _found(
    whole: _Whole,
    k: int | None,
    below: float | None,
    explain: bool,
    measure: str,
    settings: Settings,
    resources: Resources,
    space: Workspace,
    log: RunLog,
) -> PairList:
    """Search in the way that is asked for or cheaper; by another measure than Jaccard similarity, by an exact join."""
    if whole.one_sided:
        nothing = no_pairs()
        return EstimatedPairs(*nothing, np.zeros(0)) if settings.estimate else HeldPairs(*nothing)
    search = settings.search(resources.threads, resources.budget)
    if explain or measure != "jaccard":
        search = replace(search, method="exact")
    prepared = prepare(search, whole.items, log, whole.sides)
    whole.common = prepared.common
    if measure != "jaccard" and settings.method == "auto":
        log.method = {"asked": "auto", "taken": "exact", "why": f"{measure} has no hash family"}
    if measure != "jaccard" or (k is not None and below is None and prepared.banding is None):
        few = k if below is None else None
        found = _joined(whole, prepared, few, explain, measure, settings, resources, space, log)
        both = not whole.across and Bounds(measure, settings.threshold, OWNER).symmetric
        return found if below is None else pairs_below(found, below, k, both)
    matches = search.find(whole.items, log, space, whole.sides, prepared=prepared)
    if explain:
        _explain(whole.sets(prepared.items, resources.threads, log), measure, settings, resources, log)
    return _listed(whole, matches, k, below, settings, log)


def _listed(
    whole: _Whole, matches: VerifiedPairs, k: int | None, below: float | None, settings: Settings, log: RunLog
) -> PairList:
    """List the pairs of rows: all of them, or the k best of each row. Copies are pairs unless `below` is given."""
    if below is not None:
        kept = matches.similarity < below
        left, right, similarity = matches.left[kept], matches.right[kept], matches.similarity[kept]
        matches = replace(matches, left=left, right=right, similarity=similarity)
    copies = not whole.across and below is None
    if k is None:
        left, right, similarity, abridged = listed_pairs(matches, within=copies)
        if abridged:
            log.details["abridged"] = abridged
    else:
        here = int(np.searchsorted(matches.groups.first, whole.split)) if whole.across else len(matches.groups)
        left, right, similarity = nearest_rows(
            matches.groups, matches.left, matches.right, matches.similarity, k, here,
            across=not copies, same=1.0, both=not whole.across,
        )  # fmt: skip
    if settings.estimate:
        errors = standard_errors(similarity, log.details["estimate"]["slots"])
        error = np.where(matches.same_sets(left, right), 0.0, errors)
        return EstimatedPairs(left, right - whole.split, similarity, error)
    return HeldPairs(left, right - whole.split, similarity)


def _joined(
    whole: _Whole,
    prepared: PreparedSearch,
    k: int | None,
    explain: bool,
    measure: str,
    settings: Settings,
    resources: Resources,
    space: Workspace,
    log: RunLog,
) -> PairList:
    """Join the sets. Pairs that do not fit in memory are in files; with k, never more than k of each item are kept."""
    sets = whole.sets(prepared.items, resources.threads, log)
    if explain:
        _explain(sets, measure, settings, resources, log)
    task = JoinTask(Bounds(measure, settings.threshold, OWNER), resources.threads, resources.budget.total, k=k)
    with log.stage("join", len(whole.items)) as tick:
        found = join_sets(sets[0], sets[1] if whole.across else None, task, space, tick)
    log.counts["groups"] = found.groups
    log.counts["candidates"] = found.counts["compared"]
    log.counts["verified"] = found.counts["pairs"]
    log.details["filters"] = {name: found.counts[name] for name in ("length", "suffix", "bitmap")}
    log.details["predicted_recall"] = 1.0
    return found.pairs


def _explain(sets: list[Sets], measure: str, settings: Settings, resources: Resources, log: RunLog) -> None:
    """Count the pairs that each filter of the exact join leaves."""
    if not all(map(len, sets)):
        raise InputError("nothing to explain: the input is empty")
    with log.stage("explain"):
        other = sets[1] if len(sets) == 2 else None
        table = explain_filters(sets[0], settings.threshold, measure, other=other, threads=resources.threads)
    log.details["explained"] = table.to_pylist()
    log.details["explained_sets"] = json.loads(table.schema.metadata[b"likewise"])


def _vector_pairs(source: Any, other: Any, settings: VectorSettings, resources: Resources, log: RunLog) -> Pairs:
    """Find the pairs of vectors within a distance."""
    parts, space, split = read_vectors(source, other, settings, resources, log)
    aim = aimed(settings, resources, space)
    with threadpool_limits(1, "blas"):
        left, right, distance = joined_vectors(space, split, other is not None, aim, log, settings.k, settings.beyond)
    log.counts["pairs"] = len(left)
    parameters = {
        **settings.to_dict(), "within": aim.within, "threads": resources.threads, "memory": resources.budget.total,
    }  # fmt: skip
    found = Pairs(distance_table(parts, split, left, right, distance), run_json(OWNER, parameters, parts, log))
    found.traced(VectorTrace(tuple(parts)))
    return found
