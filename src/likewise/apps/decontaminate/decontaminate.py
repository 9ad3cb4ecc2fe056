"""The job of `decontaminate`: find items of test sets in training documents, and remove documents or passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.cut_documents import check_cuttable, check_unchanged
from likewise.apps.decontaminate.item_sets import OWNER, SHORTEST, ItemSets, WindowIndex, read_sets
from likewise.apps.decontaminate.result import Decontamination, ItemHits, hit_table, set_table
from likewise.apps.decontaminate.search import ALL_WORDS, AT, DOCUMENT, END, ITEM, ITEM_AT, START, WORDS, search_chunk
from likewise.apps.passages.passages import DocumentReader
from likewise.base import checks
from likewise.base.arrays import Ints, TextChunk
from likewise.base.parallel import in_order
from likewise.base.runlog import RunLog, run_json
from likewise.base.words import counted, size
from likewise.errors import InputError
from likewise.io.read import open_source
from likewise.io.read.base import Flags
from likewise.io.read.cuts import TextCuts
from likewise.io.read.find import files_of
from likewise.jobs.inputs import FolderRequest
from likewise.jobs.settings import Resources
from likewise.kernels.literal_runs import check_words, covered_words, rarest_windows
from likewise.shingle import Words

ACTIONS = ("drop", "cut", "report")
LONG_RUN = 25
"""Words in a row from which a run counts, however long the item is: nobody writes the same 25 words by chance."""
FEW_WORDS = 13
"""Words of an item that a document has from which a part of it counts, even if it is not rare: sentences share the
beginnings and ends that everybody writes, such as "does anyone know where I can find a"."""
LEAST_COMMON, MOST_COMMON, PART_COMMON = 10, 1000, 1000
"""By default a phrase is frequent if one document in 1,000 has it, and more than 10; or more than 1,000 in all."""
BYTES_A_RUN = 200
"""Memory that a run takes besides its text, until it is decided which of them count."""
TOO_MUCH = (
    "what the corpus has in common with the tests takes more than {} of memory; allow more with memory='SIZE', or let "
    "fewer phrases count with a smaller 'common'"
)
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


@dataclass(frozen=True, kw_only=True)
class DecontaminateRequest(FolderRequest):
    """What `decontaminate` is asked for; see there. The corpus is the source; of a search it has no settings."""

    owner: str = OWNER
    tests: Any = None
    rules: ContaminationRules = ContaminationRules()
    action: str = "drop"
    columns: Sequence[str] | None = None
    test_id: str | None = None
    test_lines: bool = False

    def __post_init__(self) -> None:
        checks.choice(OWNER, "action", self.action, ACTIONS)
        checks.flag(OWNER, "test_lines", self.test_lines)
        super().__post_init__()
        _ = self.named_columns

    @cached_property
    def named_columns(self) -> tuple[str, ...] | None:
        """The columns of the test sets that hold items, if the user names them."""
        columns = self.columns
        return None if columns is None else tuple(checks.listed(OWNER, "columns", columns, "a list of columns"))

    def check_cuttable(self, inputs: list[dict[str, Any]]) -> None:
        """Raise if passages are to be cut out of texts that are not stored as they are compared."""
        if self.action == "cut":
            refused = f"The 'action' parameter of {OWNER} cannot be 'cut'"
            check_cuttable(inputs, self.html, refused, " Use 'drop' or 'report'.")

    def read_tests(self, log: RunLog) -> tuple[ItemSets, WindowIndex]:
        """Read the items of all test sets, and make their index."""
        with log.stage("tests"):
            reading = replace(
                self.options, text="text", id=self.test_id, lines=self.test_lines, html=False, plain=False
            )
            items = read_sets(self.tests, reading, self.named_columns, self.resources.budget, self.resources.threads)
            return items, WindowIndex.of(items.chunk, self.rules.length)

    def described(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        columns = None if self.named_columns is None else list(self.named_columns)
        names = ("test_id", "test_lines", "lines", "html", "plain", "on_error", "encoding_errors", "hidden")
        reported = {"text": self.text, "id": self.id, "columns": columns}
        reported |= {name: getattr(self, name) for name in names}
        return {"action": self.action, **asdict(self.rules), **reported, **self.resources.used}


def decontaminate(request: DecontaminateRequest) -> Decontamination:
    """Do what was asked for in this process."""
    options, resources, log = request.options, request.resources, RunLog.of(request.progress)
    reader = DocumentReader(open_source(files_of(request.source) or request.source, options), options)
    request.check_cuttable(reader.source.describe())
    items, index = request.read_tests(log)
    if request.out is not None:
        Decontamination.check_folder(
            request.out, [*reader.source.files, *(one for tests in items.sources for one in tests.files)]
        )
    before = reader.source.identity(content=False)
    hits = judged(_found(reader, index, request.rules, resources, log), items, index, request.rules, reader.rows)
    with log.stage("tables"):
        listed = hit_table(hits, items, np.diff(index.offsets), reader.names())
        per_set = set_table(hits, items, np.diff(index.offsets))
    gone, cuts = leftover(hits, request.action)
    keep = np.ones(reader.rows, bool)
    keep[gone] = False
    log.counts |= {"documents": reader.rows, "bytes": reader.bytes}
    note_hits(log, hits, items, listed, per_set, int(keep.sum()))
    check_unchanged(reader.source, before)
    stats = run_json(OWNER, request.described(), [reader.source, items], log)
    aside = [*reader.source.aside, *items.aside]
    writes = request.action != "report"
    result = Decontamination(listed, per_set, writes, stats, reader.source, keep, cuts, aside, log)
    if request.out is not None:
        result.save(request.out)
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
                raise InputError(TOO_MUCH.format(size(most)))
            tick(part.documents)
    return ItemHits(np.concatenate(runs), np.concatenate(places), texts)


def judged(found: ItemHits, items: ItemSets, index: WindowIndex, rules: ContaminationRules, documents: int) -> ItemHits:
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
    rarest = np.full(len(runs), documents, np.int64)
    np.minimum.at(rarest, groups, found.documents)
    told = (covered >= FEW_WORDS) | (rarest[groups] <= rules.rare)
    size_of = sizes[runs[:, ITEM]]
    why = np.select(
        [
            size_of < rules.length,
            runs[:, WORDS] == size_of,
            (covered >= rules.share * size_of) & told,
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


def leftover(hits: ItemHits, action: str) -> tuple[Ints, TextCuts | None]:
    """Return which documents go, and what is cut out of others."""
    rows = hits.runs[:, DOCUMENT]
    if action != "cut":
        return np.unique(rows[: len(rows) if action == "drop" else 0]), None
    cut = np.empty(len(rows), np.int64)
    covered_words(rows, hits.runs[:, AT], hits.runs[:, WORDS], cut)
    gone = np.unique(rows[cut == hits.places[:, ALL_WORDS]])
    left = ~np.isin(rows, gone)
    return gone, TextCuts.of(rows[left], hits.places[left, START], hits.places[left, END])


def note_hits(log: RunLog, hits: ItemHits, items: ItemSets, listed: pa.Table, per_set: pa.Table, kept: int) -> None:
    """Count what was found."""
    log.counts |= {"test_sets": len(items.names), "items": len(items.ids), "hits": len(listed), "kept": kept}
    log.counts["documents_hit"] = len(np.unique(hits.runs[:, DOCUMENT]))
    for name in ("items_hit", "items_frequent", "items_too_short"):
        log.counts[name] = sum(per_set[name].to_pylist())
    log.details["frequent_phrase"] = {"documents": hits.limit}
    _note(log, hits.limit)


def _note(log: RunLog, limit: int) -> None:
    """Tell the user what does not count."""
    counts = log.counts
    if counts["items_frequent"]:
        log.notes.append(
            f"{counted(counts['items_frequent'], 'item')} of the tests found only as frequent phrases (in more than "
            f"{counted(limit, 'document')}), which do not count. A larger 'common' counts more of them."
        )
    if counts["items_too_short"]:
        log.notes.append(
            f"{counted(counts['items_too_short'], 'item')} of the tests not looked for: fewer than {SHORTEST} words."
        )
