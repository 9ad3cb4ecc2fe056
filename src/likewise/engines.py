"""The public functions that either engine carries out, in this process or on a Spark cluster.

They stand above both: here it is decided which engine does a job, and what it is compared with is opened, a finished
run or an index. The jobs themselves take a typed request, and name no engine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from likewise.base import checks
from likewise.base.extras import need
from likewise.base.runlog import Progress
from likewise.errors import OutputError
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.disk import is_url, kept_in
from likewise.io.publish import MANIFEST
from likewise.io.remote import as_url
from likewise.io.upload import output
from likewise.shingle import Shingler

if TYPE_CHECKING:
    from likewise.apps.decontaminate import Decontamination
    from likewise.jobs.against import Against
    from likewise.jobs.reference_vectors import KnownVectors
    from likewise.jobs.result import Dedup, Pairs
    from likewise.search.cluster import Keep

ENGINES = ("auto", "local", "spark")
URLS = ("redis://", "rediss://", "unix://")
"""How the address of an index on a server begins."""


def dedup(
    source: Any,
    *,
    text: str = "text",
    id: str | None = None,
    shingle: str | Shingler = "words:5",
    threshold: float = 0.8,
    measure: str = "jaccard",
    within: float | None = None,
    vector: str = "vector",
    recall: float = 0.99,
    method: str = "auto",
    estimate: bool = False,
    keep: str | Keep | None = None,
    group: str | None = None,
    unit: str | None = None,
    min_words: int = 5,
    more_than: int = 1,
    min_left: int = 1,
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
    out: str | Path | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    fresh: bool = False,
    against: Any = None,
    add: bool = False,
    state: bool = True,
    batch_rows: int | None = None,
    progress: Progress | None = None,
    engine: str = "auto",
    master: str | None = None,
) -> Dedup:
    """Find near-duplicates, keep one document of each group, and record for each removed one which was kept.

    source: a path, a URL, a glob, or a list of them; a list of strings; a pandas, polars or pyarrow table; a Hugging
        Face dataset; `Sets`; a Spark DataFrame. Or a stream, which may be larger than the memory: an iterator of
        strings, of dicts or of tables, an Arrow reader, dataset or scanner, a polars LazyFrame, a DuckDB relation, a
        Hugging Face IterableDataset or DatasetDict (with a column `split`); "-": JSON lines or Arrow on standard input.
    text, id: the columns with the documents and their ids; without id, the row number (or the path, for text files).
    shingle: how a document becomes a set. `Words(5)` or "words:5", `Chars(9)` or "chars:9"; `Tokens()` or "tokens" for
        sets of tokens, one per line of a text file or per row of a list column; `StopWords("en")` or "stopwords:en" for
        web pages with an article among other text; `Urls()` or "urls" for URLs, one per line of a text file.
    threshold, recall: a pair with this Jaccard similarity is found with at least this probability; every pair
        reported has at least this similarity, computed exactly.
    measure: "jaccard"; or "containment": a document goes if at least the share `threshold` of its shingles is in one
        kept document, however long that is. A pair is then id_a in id_b, and the search is exact.
    method: "lsh" finds pairs by locality-sensitive hashing, with the requested recall; "exact" finds all of them, and
        is faster for high thresholds and short documents; "auto" uses the one that is predicted to be cheaper
        (`.stats["method"]`).
    estimate: of the pairs that LSH proposes, take those whose signatures agree in at least the fraction `threshold` of
        their slots, and do not compare the sets; see `pairs`. Tables then have the columns estimated_similarity and
        standard_error in place of similarity, and what is said of similarity below holds for the estimates.
    keep: first, last, longest, shortest, max:COLUMN, min:COLUMN; by default first, or by containment longest. Of two
        documents of which only one contains the other, that one is kept, whatever the rule. A removed document is
        always similar, by the threshold, to the document that is kept in its place; kept documents are not similar to
        each other. "none": every document that is similar to another is removed, and kept_id names one similar to it.
        Several rules, such as "max:date,longest": the next one decides what the one before does not; then the order of
        the input.
    group: a column, such as the repository, the host or the book. Documents with the same value are one item: their
        texts are joined in the order of the input, with blank lines between them, and compared, kept and removed as a
        whole. The ids in the tables are the values of the column; of a score of `keep`, the best in a group counts.
    threads, batch_rows: change the speed, never the result. seed: changes which few pairs are missed.
    sketch: "fast" or "classic" MinHash signatures. bands, rows: this banding instead of the one that follows from
        threshold and recall. max_slots: the longest signature to consider.
    ignore_common: ignore shingles that more than this fraction of the documents contain (menus, licences,
        templates) before similarity is computed. A document that has no others keeps them.
    certify: measure the recall of the run on a sample of this many documents (`.stats["certificate"]`); by default as
        many as cost about 5 % of the run, 0 for none.
    on_error: "stop" at a broken row, or "skip" it (counted, and listed in `.aside`). encoding_errors: what to do with
        invalid UTF-8, "strict" (it is an error) or "replace".
    lines: text files hold one document per line. html: documents are HTML pages, and their text is compared (needs
        `pip install 'likewise[html]'`). plain: every file is text, whatever its name and its bytes. hidden: also read
        files and folders whose names begin with a dot.
    out: a folder for the result, or its URL. An interrupted run of files there is resumed; `fresh` starts over.
    memory: how much to use, such as "4GiB"; by default half of the free memory. Data that does not fit is kept in
        files, in the folder `spill`, or in `out`, or in the folder of temporary files; so are all streams. What is
        fetched from a URL, or on its way to one, is in `spill`, too, or in the user's cache.
    against: the folder of a finished run, an `Index`, the folder or URL of one, or a list of these. Documents that are
        similar to one that was kept there, or that the index holds, are removed too. The settings must be the same.
    add: add the documents that are kept to the index in `against`, when the result is written; they need ids. Vectors
        without ids are numbered: row 0 is the first number that the index has free (`.stats["details"]["added_from"]`).
    state: write to `out` what `rethreshold` and a later `against` need.
    progress: called with (stage, done, total).
    engine: "local", in this process; "spark", on a Spark cluster, with the same answer and tables that are Spark
        DataFrames (needs `pip install 'likewise[spark]'` and Java 17); "auto", local but for Spark DataFrames.
    master: of Spark, such as "local[4]" or "spark://host:7077", or the address of Spark Connect, "sc://host:15002"; by
        default that of the running session, or "local[*]".

    A parameter that has no effect in a call is an error.

    Vectors: with measure "angle" (degrees), "l2", "l1" or "hamming", vectors at most `within` apart are near, and one
        of them is kept. source: what `pairs` takes; `vector` is the column that has them. recall, method, certify,
        keep (but for longest and shortest) and what is about resources mean the same. The result is a `DedupVectors`,
        with a distance in place of the similarity.

    >>> dedup([[0, 0], [3, 4], [9, 9]], measure="l2", within=5).removed.to_pylist()
    [{'id': 1, 'kept_id': 0, 'distance': 5.0, 'kind': 'near'}]

    unit: "lines" or "paragraphs" (text between blank lines) are compared and cut instead of whole documents: one that
        an earlier document has, too, word for word but for case, punctuation and blanks. Units of fewer than
        `min_words` words stay, and so do those that at most `more_than` documents have. With keep="none" a unit is also
        cut from the first document that has it. Documents that then have fewer than `min_left` words are removed. The
        result is a `DedupUnits`. No parameter of the search for similar documents has an effect.

    >>> result = dedup(["to be or not to be, that is it", "To be or not to be: that is it!", "hello"])
    >>> result.removed.to_pylist()
    [{'id': 1, 'kept_id': 0, 'similarity': 1.0, 'kind': 'near'}]
    """
    from likewise.jobs import dedup as job

    against = list(against) if isinstance(against, list) else [] if against is None else [against]
    request = job.DedupRequest(
        source=source, text=text, id=id, shingle=shingle, threshold=threshold, measure=measure, recall=recall,
        method=method, estimate=estimate, keep=keep, group=group, threads=threads, seed=seed, sketch=sketch,
        bands=bands, rows=rows, max_slots=max_slots, ignore_common=ignore_common, certify=certify, on_error=on_error,
        encoding_errors=encoding_errors, lines=lines, html=html, plain=plain, hidden=hidden, out=out, memory=memory,
        spill=spill, fresh=fresh, against=tuple(against), add=add, state=state, batch_rows=batch_rows,
        progress=progress, master=master, within=within, vector=vector,
    )  # fmt: skip
    checks.choice("dedup", "engine", engine, ENGINES)
    on_spark = _on_spark("dedup", engine, master, source)
    if unit is not None:
        from likewise.apps.units import UnitRules, dedup_units

        checks.unused("dedup", {"group": (group, None)}, "with 'unit'")
        chosen = "first" if keep is None else str(request.policy)
        rules = UnitRules(unit, min_words, more_than, min_left, chosen)
        if on_spark:
            from likewise.spark.units import dedup_units as units_on_spark

            return cast("Dedup", units_on_spark(request, rules))
        with kept_in(spill), output(out) as folder:
            return cast("Dedup", dedup_units(replace(request, out=folder), rules))
    of_units = {"min_words": (min_words, 5), "more_than": (more_than, 1), "min_left": (min_left, 1)}
    checks.unused("dedup", of_units, "without 'unit'")
    if request.of_vectors:
        if on_spark:
            from likewise.spark.vector_dedup import dedup_vectors as vectors_on_spark

            return cast("Dedup", vectors_on_spark(request))
        from likewise.jobs.vector_dedup import dedup_vectors

        with kept_in(spill), output(out) as folder, known_vectors(request.against) as vectors:
            return dedup_vectors(replace(request, out=folder), vectors)
    if not on_spark:
        with kept_in(spill), output(out) as folder, known_items(request.against) as known:
            return job.dedup(replace(request, out=folder), known)
    from likewise.spark.dedup import dedup as spark_dedup

    return cast("Dedup", spark_dedup(request, index_items))


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
    from likewise.jobs import pairs as job

    request = job.PairsRequest(
        source=source, other=other, measure=measure, threshold=threshold, within=within, below=below, beyond=beyond,
        k=k, text=text, vector=vector, id=id, shingle=shingle, recall=recall, method=method, estimate=estimate,
        explain=explain, threads=threads, seed=seed, sketch=sketch, bands=bands, rows=rows, max_slots=max_slots,
        ignore_common=ignore_common, certify=certify, on_error=on_error, encoding_errors=encoding_errors, lines=lines,
        html=html, plain=plain, hidden=hidden, memory=memory, spill=spill, batch_rows=batch_rows, progress=progress,
        master=master,
    )  # fmt: skip
    if not _on_spark("pairs", engine, master, source, other):
        with kept_in(spill):
            return job.pairs(request)
    from likewise.spark.pairs import pairs as on_spark

    return on_spark(request)


def decontaminate(
    corpus: Any, *, tests: Any, out: str | Path | None = None, action: str = "drop", text: str = "text",
    id: str | None = None, columns: Sequence[str] | None = None, test_id: str | None = None, test_lines: bool = False,
    length: int = 8, share: float = 0.5, common: int | None = None, rare: int = 3, lines: bool = False,
    html: bool = False, plain: bool = False, hidden: bool = False, on_error: str = "stop",
    encoding_errors: str = "strict", threads: int | None = None, memory: str | int | None = None,
    batch_rows: int | None = None, progress: Progress | None = None, engine: str = "auto", master: str | None = None,
) -> Decontamination:  # fmt: skip
    """Find items of test sets that training documents contain, and remove these documents or cut the passages out.

    corpus: files, folders, globs, lists of strings, tables, streams, a Spark DataFrame; see `likewise.dedup`. They
        are read batch by batch.
    tests: files and folders; each file is a test set, and so is each file and folder in a folder. Or a dictionary of
        test sets by name, each of them files, a table or a list of strings. They are held in memory.
    action: "drop" removes documents with a hit, "cut" removes the passages (and documents of which no word is left),
        "report" only lists them.
    text, id: the columns of the corpus. columns: those of the test sets that hold items; by default question, answer,
        text, prompt and the like. Every text of a row is an item of its own. test_id: the column with their ids; by
        default the row number. test_lines: text files of tests hold one item per line, not one item each.

    Words are compared as the shinglers make them: without regard to case, punctuation, blanks and line breaks. Every
    run of at least `length` words that a document shares with an item is found, and compared letter by letter. It
    counts if it is rare, and enough of the item:

    - rare: at least one window of `length` words in it is in at most `common` documents of the corpus; by default in
      one of 1,000, but not less than 10 and not more than 1,000 documents. What more documents have is a frequent
      phrase.
    - enough: all rare runs that the document shares with the item cover at least the fraction `share` of the item's
      words (fewer than 13 words only if at most `rare` documents have them), or this run alone has 25 words.

    An item of 5 to `length` - 1 words counts if a document has it as a whole and at most `rare` documents do. Shorter
    items are not looked for.

    out: a folder for the result, or its URL; it is replaced when everything is written, and not before. lines, html,
    plain, hidden, on_error, encoding_errors: how the corpus is read, see `likewise.dedup`. engine, master: as there; on
    Spark the driver reads the tests, and the tables of the result are Spark DataFrames.

    >>> corpus = ["They asked: How many apples\\nare left if Tom eats two of them?", "Nothing of the kind."]
    >>> result = decontaminate(corpus, tests=["How many apples are left, if Tom eats two of them?"])
    >>> result.hits.select(["id", "start", "end", "words", "why"]).to_pylist()
    [{'id': 0, 'start': 12, 'end': 60, 'words': 11, 'why': 'whole'}]
    >>> result.kept.to_pylist()
    [{'text': 'Nothing of the kind.'}]
    """
    from likewise.apps import decontaminate as job

    request = job.DecontaminateRequest(
        source=corpus, tests=tests, rules=job.ContaminationRules(length, share, common, rare), out=out, action=action,
        text=text, id=id, columns=columns, test_id=test_id, test_lines=test_lines, lines=lines, html=html, plain=plain,
        hidden=hidden, on_error=on_error, encoding_errors=encoding_errors, threads=threads, memory=memory,
        batch_rows=batch_rows, progress=progress, master=master,
    )  # fmt: skip
    if not _on_spark("decontaminate", engine, master, corpus):
        with output(out) as folder:
            return job.decontaminate(replace(request, out=folder))
    from likewise.spark.decontaminate import decontaminate as on_spark

    return cast("Decontamination", on_spark(request))


def rethreshold(
    directory: str | Path,
    threshold: float | None = None,
    *,
    keep: str | Keep | None = None,
    out: str | Path | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    master: str | None = None,
) -> Dedup:
    """Re-cluster a finished run of `dedup` with a higher threshold, or another keep policy, without comparing again.

    directory: the folder of the run. threshold, keep: by default those of the run. out: a folder for the result; by
    default it replaces the one in `directory`.

    The pairs of the original run stay in `state/`, so that any threshold from that run's upwards can be used, in any
    order. The input files must still be there, unchanged: documents that are kept now are taken from them.

    A run that was made on Spark is re-clustered there: master, such as "local[4]" or "spark://host:7077", is that of
    Spark; by default that of the running session, or "local[*]".
    """
    from likewise.jobs import rethreshold as job
    from likewise.jobs.finished_run import engine_of_run

    request = job.RethresholdRequest(directory, threshold, keep, out, threads, progress, master)
    if not _on_spark("rethreshold", engine_of_run(directory), master):
        if out is None and isinstance(directory, str | os.PathLike) and is_url(directory):
            raise OutputError(f"{as_url(directory)}: a result in a store is not replaced; name another folder (--out)")
        with output(out) as folder:
            return job.rethreshold(replace(request, out=folder))
    from likewise.spark.rethreshold import rethreshold as on_spark

    return cast("Dedup", on_spark(request))


def _on_spark(owner: str, engine: str, master: str | None, *sources: object) -> bool:
    """Tell whether a job is done on Spark; a Spark DataFrame chooses that by itself."""
    checks.choice(owner, "engine", engine, ENGINES)
    if engine == "auto":
        engine = "spark" if any(map(checks.is_spark_frame, sources)) else "local"
    if engine == "local":
        checks.unused(owner, {"master": (master, None)}, "without engine='spark'")
        return False
    need(f"{owner} on Spark", "spark")
    return True


def is_index(given: object) -> bool:
    """Tell whether this is an index: an object, the URL of one, or a folder that holds one."""
    if isinstance(given, str) and given.startswith(URLS):
        return True
    if isinstance(given, str | os.PathLike):
        if is_url(given):
            return False  # the database of an index is read in place, and not in a store
        folder = Path(given)
        return not (folder / MANIFEST).exists() and any(folder.glob("[0-9]*/data.mdb"))
    from likewise.index import Index

    return isinstance(given, Index)


def index_items(given: Any) -> Any:
    """Open an index of documents; None if this is no index."""
    if is_index(given):
        from likewise.index.reference_index import ReferenceIndex

        return ReferenceIndex(given)
    return None


def known_items(given: Sequence[Any]) -> Against:
    """Open what new documents are compared with, finished runs and indexes; `close` lets go of it."""
    from likewise.jobs.against import Against, EarlierRun

    return Against(given, lambda one: index_items(one) or EarlierRun(one))


def known_vectors(given: Sequence[Any]) -> KnownVectors:
    """Open what new vectors are compared with, finished runs and indexes; `close` lets go of it."""
    from likewise.jobs.reference_vectors import EarlierVectors, KnownVectors

    def opened(one: Any) -> Any:
        if not is_index(one):
            return EarlierVectors(one)
        from likewise.index.reference_index import ReferenceVectorIndex

        return ReferenceVectorIndex(one)

    return KnownVectors(given, opened)
