"""The two jobs: `dedup` removes near-duplicates and explains each removal, `pairs` lists similar pairs."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.arrays import Ints, strings, to_arrow
from likewise.cluster import Keep, Removal, components, removals
from likewise.collection import Collection, collect, joined
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash, check_seed
from likewise.families.tuning import DEFAULT_MAX_SLOTS, check_recall, check_threshold
from likewise.kernels.hashing import mix
from likewise.matching import Matches, Observer, Record, Search, listed_pairs
from likewise.parallel import check_threads
from likewise.read import ReadOptions
from likewise.shingle import Shingler, parse_shingler
from likewise.write import prepare_directory, write_json, write_table

MOST_INPUTS = 100

mix(np.uint64(0))  # the first call of a kernel takes Numba a third of a second: let it be part of the import


@dataclass(frozen=True)
class Settings:
    """Everything the user can set that changes the answer, validated; `run.json` holds it."""

    shingle: str | Shingler = "words:5"
    threshold: float = 0.8
    recall: float = 0.99
    seed: int = 1
    method: str = "fast"
    bands: int | None = None
    rows: int | None = None
    max_slots: int = DEFAULT_MAX_SLOTS

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", check_threshold("dedup", self.threshold))
        object.__setattr__(self, "recall", check_recall("dedup", self.recall))
        check_seed("dedup", self.seed)
        parse_shingler(self.shingle)
        if (self.bands is None) != (self.rows is None):
            raise ParameterError("The 'bands' and 'rows' parameters of dedup go together: give both or neither.")

    def search(self, threads: int) -> Search:
        """Return the search these settings describe."""
        banding = Banding(self.bands, self.rows) if self.bands is not None and self.rows is not None else None
        minhash = MinHash(self.seed, self.method)
        return Search(self.threshold, self.recall, minhash, banding, self.max_slots, threads)

    def to_dict(self, shingler: Shingler | None) -> dict[str, Any]:
        """Return all parameters, for run.json."""
        return {
            **(shingler.to_dict() if shingler else {"shingle": None}),
            "threshold": self.threshold,
            "recall": self.recall,
            "seed": self.seed,
            "sketch": self.method,
            "bands": self.bands,
            "rows": self.rows,
            "max_slots": self.max_slots,
        }


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, or None where the system does not tell.

    Linux hands ru_maxrss down from the process that started this one, so its own file is asked first.
    """
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    with suppress(ImportError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return None


def statistics(
    command: str, parameters: dict[str, Any], collections: list[Collection], record: Record
) -> dict[str, Any]:
    """Return what a run says of itself."""
    aside = [entry for part in collections for entry in part.aside]
    inputs = [entry for part in collections for entry in part.describe()]
    if len(inputs) > MOST_INPUTS:
        inputs[MOST_INPUTS:] = [{"more_files": len(inputs) - MOST_INPUTS}]
    return {
        "likewise": version("likewise"),
        "command": command,
        "parameters": parameters,
        "input": inputs,
        "counts": {**record.counts, "set_aside": len(aside)},
        "set_aside": [vars(entry) for entry in aside[:100]],
        "seconds": {stage: round(seconds, 4) for stage, seconds in record.seconds.items()},
        "peak_memory_bytes": peak_memory(),
        **record.notes,
    }


def _pair_table(names_a: Any, names_b: Any, similarity: NDArray[np.float64]) -> Any:
    return pa.table({"id_a": names_a, "id_b": names_b, "similarity": to_arrow(similarity)})


class Dedup:
    """The answer of `dedup`: tables `.pairs`, `.removed`, `.clusters`, the rows `.kept`, `.stats`, and `.save(dir)`."""

    def __init__(
        self,
        collection: Collection,
        matches: Matches,
        removal: Removal,
        record: Record,
        parameters: dict[str, Any],
    ) -> None:
        self._collection = collection
        self._matches = matches
        self._removal = removal
        self._record = record
        self._parameters = parameters
        with record.stage("tables"):
            left, right, similarity, abridged = listed_pairs(matches)
            name = collection.name
            self.pairs = _pair_table(name(left), name(right), similarity)
            kinds = strings(["near", "identical"]).take(to_arrow(removal.identical.astype(np.int64)))
            self.removed = pa.table(
                {
                    "id": name(removal.rows),
                    "kept_id": name(removal.keepers),
                    "similarity": to_arrow(removal.similarity),
                    "kind": kinds,
                }
            )
            every = np.arange(len(collection.items))
            labels = components(matches.groups, matches.left, matches.right)
            self.clusters = pa.table({"id": name(every), "cluster": name(labels)})
        sizes = np.bincount(labels) if len(labels) else np.zeros(0, np.int64)
        record.counts["pairs"] = len(left)
        record.counts["identical"] = int(removal.identical.sum())
        record.counts["near"] = int((~removal.identical).sum())
        record.counts["removed"] = len(removal.rows)
        record.counts["kept"] = len(every) - len(removal.rows)
        record.counts["clusters"] = int((sizes > 1).sum())
        record.notes["largest_cluster"] = int(sizes.max()) if len(sizes) else 0
        if abridged:
            record.notes["abridged"] = abridged

    @cached_property
    def keep_mask(self) -> NDArray[np.bool_]:
        """One flag for every row read: is it kept?"""
        mask = np.ones(len(self._collection.items), bool)
        mask[self._removal.rows] = False
        return mask

    @cached_property
    def kept(self) -> Any:
        """The surviving rows with all their columns, as an Arrow table (as `Sets` if sets were given)."""
        source = self._collection.source
        if source is None:
            return self._collection.items.sets(np.flatnonzero(self.keep_mask), 1)
        return source.kept(self.keep_mask)

    @property
    def aside(self) -> list[Any]:
        """The rows that were set aside under on_error="skip": file, row and reason."""
        return self._collection.aside

    @property
    def stats(self) -> dict[str, Any]:
        """All that `run.json` holds: version, parameters, counts and seconds by stage, memory, predicted recall."""
        return statistics("dedup", self._parameters, [self._collection], self._record)

    def __repr__(self) -> str:
        counts = self._record.counts
        return f"<Dedup: {counts['items']:,} items, {counts['kept']:,} kept, {counts['removed']:,} removed>"

    def save(self, directory: str | Path) -> Path:
        """Write kept/, removed.parquet, pairs.parquet, clusters.parquet and run.json; return the folder."""
        source = self._collection.source
        folder = prepare_directory(directory, source.files if source else [])
        with self._record.stage("write"):
            for name in ("removed", "pairs", "clusters"):
                write_table(getattr(self, name), folder / f"{name}.parquet")
            if self.aside:
                rows = [vars(entry) for entry in self.aside]
                write_table(pa.Table.from_pylist(rows), folder / "aside.parquet")
            if source:
                source.write_kept(self.keep_mask, folder / "kept")
            else:
                rows = pa.table({"id": to_arrow(np.flatnonzero(self.keep_mask))})
                (folder / "kept").mkdir(exist_ok=True)
                write_table(rows, folder / "kept" / "part-0.parquet")
        write_json(self.stats, folder / "run.json")
        return folder


def dedup(
    source: Any,
    *,
    text: str = "text",
    id: str | None = None,
    shingle: str | Shingler = "words:5",
    threshold: float = 0.8,
    recall: float = 0.99,
    keep: str | Keep = "first",
    threads: int | None = None,
    seed: int = 1,
    sketch: str = "fast",
    bands: int | None = None,
    rows: int | None = None,
    max_slots: int = DEFAULT_MAX_SLOTS,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    lines: bool = False,
    batch_rows: int | None = None,
    progress: Observer | None = None,
) -> Dedup:
    """Find near-duplicates, keep one of each set of them, and say for each removed one which document stands for it.

    source: a path, a glob, or a list of them; a list of strings; a pandas, polars or pyarrow table; a Hugging Face
    dataset; `Sets`.
    text, id: the columns with the documents and their ids; without id, the row number (or the path, for text files).
    shingle: `Words(5)`, `Chars(9)` or "words:5", "chars:9".
    threshold, recall: a pair with this Jaccard similarity is found with at least this probability; every pair
        reported has at least this similarity, exactly computed.
    keep: first, last, longest, shortest, max:COLUMN, min:COLUMN. A removed document is always similar, by the
        threshold, to the very document that is kept for it; kept documents are not similar to each other.
    threads, batch_rows: change the speed, never the answer. seed: changes which few pairs are missed.
    bands, rows: take this banding instead of the one that follows from threshold and recall.
    on_error: "stop" at a broken row, or "skip" it (counted and listed in `.aside`). encoding_errors: "strict" or
    "replace".

    >>> result = dedup(["to be or not to be, that is it", "To be or not to be: that is it!", "hello"])
    >>> result.removed.to_pylist()
    [{'id': 1, 'kept_id': 0, 'similarity': 1.0, 'kind': 'near'}]
    """
    policy = Keep.parse(keep)
    chosen = Settings(shingle, threshold, recall, seed, sketch, bands, rows, max_slots)
    options = _read_options(text, id, policy.column, on_error, encoding_errors, lines, batch_rows)
    count = check_threads("dedup", threads)
    search = chosen.search(count)
    record = Record(progress) if progress else Record()
    collection = collect(source, options, chosen.shingle, record, count)
    matches = search.find(collection.items, record)
    with record.stage("cluster"):
        needs_length = policy.rule in ("longest", "shortest")
        lengths = collection.items.lengths if needs_length else np.zeros(len(collection.items), np.int64)
        ranks = policy.ranks(lengths, collection.scores)
        removal = removals(matches.groups, matches.left, matches.right, matches.similarity, ranks, matches.digests)
    parameters = {
        **chosen.to_dict(collection.shingler),
        "keep": str(policy),
        "text": text,
        "id": id,
        "threads": count,
        "on_error": on_error,
        "encoding_errors": encoding_errors,
    }
    return Dedup(collection, matches, removal, record, parameters)


def pairs(
    source: Any,
    other: Any = None,
    *,
    text: str = "text",
    id: str | None = None,
    shingle: str | Shingler = "words:5",
    threshold: float = 0.8,
    recall: float = 0.99,
    top: int | None = None,
    threads: int | None = None,
    seed: int = 1,
    sketch: str = "fast",
    bands: int | None = None,
    rows: int | None = None,
    max_slots: int = DEFAULT_MAX_SLOTS,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    lines: bool = False,
    batch_rows: int | None = None,
    progress: Observer | None = None,
) -> Any:
    """Return an Arrow table (id_a, id_b, similarity) of all pairs at or above the threshold, exact and sorted.

    With `other`, pairs of a document of `source` and one of `other`. With `top`, for every document of `source` its
    `top` most similar partners, best first (so a pair within one collection stands there from both sides).
    The table's schema metadata key b"likewise" holds the run's statistics as JSON. The other parameters are those of
    `dedup`.

    >>> pairs(["a b c d e f", "x", "a b c d e f"]).to_pylist()
    [{'id_a': 0, 'id_b': 2, 'similarity': 1.0}]
    """
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise ParameterError.of("pairs", "top", "a positive whole number", top)
    chosen = Settings(shingle, threshold, recall, seed, sketch, bands, rows, max_slots)
    options = _read_options(text, id, None, on_error, encoding_errors, lines, batch_rows)
    count = check_threads("pairs", threads)
    search = chosen.search(count)
    record = Record(progress) if progress else Record()
    here = collect(source, options, chosen.shingle, record, count)
    there = here if other is None else collect(other, options, here.shingler or chosen.shingle, record, count)
    split = 0 if other is None else len(here.items)
    items = here.items if other is None else joined(here.items, there.items)
    if other is not None and (split == 0 or len(items) == split):
        left = right = np.zeros(0, np.int64)
        similarity = np.zeros(0)
        abridged: dict[str, int] = {}
    else:
        left, right, similarity, abridged = listed_pairs(search.find(items, record, split), within=other is None)
    if top is not None:
        left, right, similarity = best_partners(left, right, similarity, top, both_ways=other is None)
    table = _pair_table(here.name(left), there.name(right - split), similarity)
    record.counts["pairs"] = len(left)
    if abridged:
        record.notes["abridged"] = abridged
    parameters = {**chosen.to_dict(here.shingler), "top": top, "text": text, "id": id, "threads": count}
    stats = statistics("pairs", parameters, [here] if there is here else [here, there], record)
    return table.replace_schema_metadata({"likewise": json.dumps(stats, default=str)})


def best_partners(
    left: Ints, right: Ints, similarity: NDArray[np.float64], top: int, *, both_ways: bool
) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Keep for every item its `top` most similar partners, best first, ties by row (L7)."""
    if both_ways:
        left, right = np.concatenate([left, right]), np.concatenate([right, left])
        similarity = np.concatenate([similarity, similarity])
    order = np.lexsort((right, -similarity, left))
    left, right, similarity = left[order], right[order], similarity[order]
    starts = np.flatnonzero(np.concatenate([[True], left[1:] != left[:-1]])) if len(left) else np.zeros(0, np.int64)
    rank = np.arange(len(left)) - np.repeat(starts, np.diff(np.append(starts, len(left))))
    chosen = rank < top
    return left[chosen], right[chosen], similarity[chosen]


def _read_options(
    text: str,
    id: str | None,
    score: str | None,
    on_error: str,
    encoding_errors: str,
    lines: bool,
    batch_rows: int | None,
) -> ReadOptions:
    more = {} if batch_rows is None else {"batch_rows": batch_rows}
    return ReadOptions(
        text=text, id=id, score=score, on_error=on_error, encoding_errors=encoding_errors, lines=lines, **more
    )
