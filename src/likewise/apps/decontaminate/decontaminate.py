"""`decontaminate`: find items of test sets in training documents, and remove the documents or the passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.cut_documents import check_cuttable, check_unchanged
from likewise.apps.decontaminate.item_sets import OWNER, SHORTEST, ItemSets, WindowIndex, read_sets
from likewise.apps.decontaminate.result import Decontamination, ItemHits, hit_table, set_table
from likewise.apps.decontaminate.search import ALL_WORDS, AT, DOCUMENT, END, ITEM, ITEM_AT, START, WORDS, search_chunk
from likewise.apps.passages.passages import DocumentReader
from likewise.base import checks
from likewise.base.arrays import TextChunk
from likewise.base.parallel import in_order
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.base.words import counted, size
from likewise.errors import InputError
from likewise.io.read import ReadOptions, open_source
from likewise.io.read.base import Flags
from likewise.io.read.cuts import TextCuts
from likewise.io.read.find import files_of
from likewise.io.streams import spool_folder
from likewise.io.upload import to_store
from likewise.jobs.settings import Resources
from likewise.kernels.literal_runs import check_words, covered_words, rarest_windows
from likewise.shingle import Words

ACTIONS = ("drop", "cut", "report")
LONG_RUN = 25
"""Words in a row from which a run counts, however long the item is: nobody writes the same 25 words by chance."""
LEAST_COMMON, MOST_COMMON, PART_COMMON = 10, 1000, 1000
"""By default a phrase is frequent if one document in 1,000 has it, and more than 10; or more than 1,000 in all."""
BYTES_A_RUN = 200
"""Memory that a run takes besides its text, until it is decided which of them count."""
WHOLE, MOST, LONG, SHORT = range(4)
"""Why a hit counts: see `Decontamination`."""


@dataclass(frozen=True)
class ContaminationRules:
    """Which runs of words count; `decontaminate` says what each parameter means."""

    length: int = 8
    share: float = 0.5
    common: int | None = None
    rare: int = 3

    def __post_init__(self) -> None:
        checks.whole(OWNER, "length", self.length, SHORTEST, 1000)
        checks.number(OWNER, "share", self.share, 0, 1, open_left=True)
        if self.common is not None:
            checks.whole(OWNER, "common", self.common)
        checks.whole(OWNER, "rare", self.rare)

    @property
    def most_common(self) -> int:
        """In how many documents a phrase can be at most that is not frequent, whatever the corpus."""
        return MOST_COMMON if self.common is None else self.common

    def limit(self, documents: int) -> int:
        """Return in how many documents of a corpus of this size a phrase can be that is not frequent.

        >>> ContaminationRules().limit(500), ContaminationRules().limit(200_000), ContaminationRules(common=5).limit(1)
        (10, 200, 5)
        """
        return min(max(LEAST_COMMON, documents // PART_COMMON), MOST_COMMON) if self.common is None else self.common


@to_store("out")
def decontaminate(
    corpus: Any,
    *,
    tests: Any,
    out: str | Path | None = None,
    action: str = "drop",
    text: str = "text",
    id: str | None = None,
    columns: Sequence[str] | None = None,
    test_id: str | None = None,
    test_lines: bool = False,
    length: int = ContaminationRules.length,
    share: float = ContaminationRules.share,
    common: int | None = None,
    rare: int = ContaminationRules.rare,
    lines: bool = False,
    html: bool = False,
    plain: bool = False,
    hidden: bool = False,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    threads: int | None = None,
    memory: str | int | None = None,
    batch_rows: int = 10_000,
    progress: Progress | None = None,
) -> Decontamination:
    """Find items of test sets that training documents contain, and remove these documents or cut the passages out.

    corpus: files, folders, globs, lists of strings, tables, streams; see `likewise.dedup`. It is read batch by batch.
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
      words, or this run alone has 25 words.

    An item of 5 to `length` - 1 words counts if a document has it as a whole and at most `rare` documents do. Shorter
    items are not looked for.

    out: a folder for the result; it is replaced when everything is written, and not before. lines, html, plain,
    hidden, on_error, encoding_errors: how the corpus is read, see `likewise.dedup`.

    >>> corpus = ["They asked: How many apples\\nare left if Tom eats two of them?", "Nothing of the kind."]
    >>> result = decontaminate(corpus, tests=["How many apples are left, if Tom eats two of them?"])
    >>> result.hits.select(["id", "start", "end", "words", "why"]).to_pylist()
    [{'id': 0, 'start': 12, 'end': 60, 'words': 11, 'why': 'whole'}]
    >>> result.kept.to_pylist()
    [{'text': 'Nothing of the kind.'}]
    """
    rules = ContaminationRules(length, share, common, rare)
    checks.choice(OWNER, "action", action, ACTIONS)
    checks.flag(OWNER, "test_lines", test_lines)
    resources = Resources.of(OWNER, threads, memory)
    budget = resources.budget
    shared: dict[str, Any] = {"on_error": on_error, "encoding_errors": encoding_errors, "hidden": hidden}
    sizes: dict[str, Any] = {"batch_bytes": budget.batch, "row_bytes": budget.row, "batch_rows": batch_rows}
    sizes["spool"] = spool_folder(None, out)  # nothing that run.json need have
    options = ReadOptions(text, id, lines=lines, html=html, plain=plain, owner=OWNER, **shared, **sizes)
    log = RunLog.of(progress)
    reader = DocumentReader(open_source(files_of(corpus) or corpus, options), options)
    if action == "cut":
        refused = f"The 'action' parameter of {OWNER} cannot be 'cut'"
        check_cuttable(reader.source.describe(), html, refused, " Use 'drop' or 'report'.")
    named = None if columns is None else tuple(checks.listed(OWNER, "columns", columns, "a list of columns"))
    with log.stage("tests"):
        reading = ReadOptions(id=test_id, lines=test_lines, owner=OWNER, **shared, **sizes)
        items = read_sets(tests, reading, named, budget, resources.threads)
        index = WindowIndex.of(items.chunk, length)
    if out is not None:
        Decontamination.check_folder(
            out, [*reader.source.files, *(one for tests in items.sources for one in tests.files)]
        )
    before = reader.source.identity(content=False)
    hits = _judged(_found(reader, index, rules, resources, log), items, index, rules, reader.rows)
    with log.stage("tables"):
        listed = hit_table(hits, items, np.diff(index.offsets), reader.names())
        per_set = set_table(hits, items, np.diff(index.offsets))
    keep, cuts = _remains(hits, reader.rows, action)
    log.counts |= {"documents": reader.rows, "bytes": reader.bytes, "test_sets": len(items.names)}
    log.counts |= {"items": len(items.ids), "hits": len(listed), "kept": int(keep.sum())}
    log.counts["documents_hit"] = len(np.unique(hits.runs[:, DOCUMENT]))
    for name in ("items_hit", "items_frequent", "items_too_short"):
        log.counts[name] = sum(per_set[name].to_pylist())
    log.details["frequent_phrase"] = {"documents": hits.limit}
    _note(log, hits.limit)
    reported: dict[str, Any] = {
        "text": text,
        "id": id,
        "columns": None if named is None else list(named),
        "test_id": test_id,
    }
    reported |= {"test_lines": test_lines, "lines": lines, "html": html, "plain": plain, **shared}
    parameters = {"action": action, **asdict(rules), **reported, **resources.used}
    check_unchanged(reader.source, before)
    stats = run_json(OWNER, parameters, [reader.source, items], log)
    aside = [*reader.source.aside, *items.aside]
    result = Decontamination(listed, per_set, action != "report", stats, reader.source, keep, cuts, aside, log)
    if out is not None:
        result.save(out)
    return result


def _found(
    reader: DocumentReader, index: WindowIndex, rules: ContaminationRules, resources: Resources, log: RunLog
) -> ItemHits:
    """Search the corpus; count in how many documents each window of an item is."""
    most, threads = resources.budget.total // 4, resources.threads
    runs, places, texts, held = [np.empty((0, 5), np.int64)], [np.empty((0, 5), np.int64)], [], 0

    def search(task: tuple[int, TextChunk]) -> Any:
        return search_chunk(*task, index, rules.most_common, rules.rare)

    with log.stage("search", reader.source.total_rows or 0) as tick:
        for part in in_order(search, reader.numbered(threads), threads):
            np.add.at(index.counts, part.seen, 1)
            runs.append(part.runs)
            places.append(part.places)
            texts += part.texts
            held += sum(map(len, part.texts)) + BYTES_A_RUN * len(part.runs)
            if held > most:
                raise InputError(
                    f"what the corpus has in common with the tests takes more than {size(most)} of memory; allow more "
                    "with memory='SIZE', or let fewer phrases count with a smaller 'common'"
                )
            tick(part.documents)
    return ItemHits(np.concatenate(runs), np.concatenate(places), texts)


def _judged(
    found: ItemHits, items: ItemSets, index: WindowIndex, rules: ContaminationRules, documents: int
) -> ItemHits:
    """Keep the runs that count: rare ones, equal letter by letter, that are enough of their item; say why."""
    sizes, limit = np.diff(index.offsets), rules.limit(documents)
    least = np.empty(len(found), np.int64)
    rarest_windows(found.runs, rules.length, index.offsets, index.counters, index.counts, least)
    found = replace(found, documents=least, limit=limit)
    short = sizes[found.runs[:, ITEM]] < rules.length
    found = found.some(least <= np.where(short, rules.rare, limit))
    found = found.some(_same_words(found, items.chunk))
    runs = found.runs
    order = np.lexsort((runs[:, ITEM_AT], runs[:, ITEM], runs[:, DOCUMENT]))
    found, runs = found.some(order), runs[order]
    _, groups = np.unique(runs[:, DOCUMENT] * len(sizes) + runs[:, ITEM], return_inverse=True)
    covered = np.empty(len(runs), np.int64)
    covered_words(groups, runs[:, ITEM_AT], runs[:, WORDS], covered)
    size_of = sizes[runs[:, ITEM]]
    why = np.select(
        [
            size_of < rules.length,
            runs[:, WORDS] == size_of,
            covered >= rules.share * size_of,
            runs[:, WORDS] >= LONG_RUN,
        ],
        [SHORT, WHOLE, MOST, LONG],
        -1,
    )
    found = replace(found, shares=covered / np.maximum(size_of, 1), why=why).some(why >= 0)
    order = np.lexsort((found.runs[:, ITEM], found.runs[:, WORDS], found.runs[:, AT], found.runs[:, DOCUMENT]))
    return replace(found.some(order), frequent=_frequent(index, rules, limit, found))


def _same_words(found: ItemHits, chunk: TextChunk) -> Flags:
    """Compare the words of runs with those of their items, letter by letter: equal hashes are not taken for equal."""
    same = np.zeros(len(found), bool)
    if len(found):
        passages = TextChunk.from_arrow(pa.array(found.texts, pa.large_binary()).view(pa.large_string()))
        units = Words(1).recipe().units
        check_words(passages.data, passages.offsets, chunk.data, chunk.offsets, found.runs, units, same)
    return same


def _frequent(index: WindowIndex, rules: ContaminationRules, limit: int, hits: ItemHits) -> Flags:
    """Return which texts of items are in documents, in part or whole, only as frequent phrases."""
    sizes = np.diff(index.offsets)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    known = np.flatnonzero(index.counters[:-1] >= 0)
    most = np.where(sizes[owners[known]] < rules.length, rules.rare, limit)
    flags = np.zeros(len(sizes), bool)
    flags[owners[known[index.counts[index.counters[known]] > most]]] = True
    flags[hits.runs[:, ITEM]] = False
    return flags


def _remains(hits: ItemHits, documents: int, action: str) -> tuple[Flags, TextCuts | None]:
    """Return which documents are kept, and what is cut out of them."""
    keep = np.ones(documents, bool)
    rows = hits.runs[:, DOCUMENT]
    if action == "drop":
        keep[rows] = False
    if action != "cut":
        return keep, None
    gone = np.empty(len(rows), np.int64)
    covered_words(rows, hits.runs[:, AT], hits.runs[:, WORDS], gone)
    empty = gone == hits.places[:, ALL_WORDS]
    keep[rows[empty]] = False
    left = keep[rows]
    return keep, TextCuts.of(rows[left], hits.places[left, START], hits.places[left, END])


def _note(log: RunLog, limit: int) -> None:
    """Tell the user what does not count."""
    counts = log.counts
    if counts["items_frequent"]:
        log.notes.append(
            f"{counted(counts['items_frequent'], 'item')} of the tests found as frequent phrases only, in more than "
            f"{counted(limit, 'document')}, which do not count. A larger 'common' counts more."
        )
    if counts["items_too_short"]:
        log.notes.append(
            f"{counted(counts['items_too_short'], 'item')} of the tests not looked for: fewer than {SHORTEST} words."
        )
