"""What a run on a cluster works with: its session, its folder, the settings that apply, and the deposited input."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog, run_json
from likewise.errors import ColumnError, InputError, ParameterError
from likewise.io.read import Aside, ReadOptions
from likewise.jobs.inputs import SearchRequest
from likewise.jobs.result import aside_table
from likewise.search.cluster import NUMBER, Keep
from likewise.search.load import BYTES_A_WORD
from likewise.shingle import Shingler, Words, parse_shingler
from likewise.spark.context import check_machines, check_seen, is_connect, master_of, one_machine
from likewise.spark.corpus import MOST_JOINED, Corpus
from likewise.spark.direct import SIZE, TEXT
from likewise.spark.folder import RunFolder, folder_at, located
from likewise.spark.in_place import check_unchanged, deposited
from likewise.spark.output import write_arrow
from likewise.spark.result import SparkDedup, SparkResult, check_free, publish_frames
from likewise.spark.session import bounded, session_of, spark_errors
from likewise.spark.source import Deposit, SparkInput, open_input, quoted
from likewise.spark.store import WORK, Checkpoints, measuring

APART = (
    "owner", "source", "other", "tests", "out", "against", "progress", "threads", "memory", "spill", "fresh", "master",
)  # fmt: skip
"""Parameters that a run may change when it continues another, or whose content is compared instead."""
ANSWERING = ("explain",)
"""Parameters that Spark does not know, and without which a run would answer another question."""
LENGTH = "length"
Published = TypeVar("Published", bound=SparkResult)


@dataclass(frozen=True)
class ClusterRun:
    """One run."""

    session: Any
    request: SearchRequest
    folder: RunFolder
    scratch: Path
    checkpoints: Checkpoints
    inputs: list[SparkInput]
    log: RunLog

    def corpus(self, earlier: EarlierRuns | None = None) -> Corpus:
        """Write the input to the folder of the run, after the documents of earlier runs, and number its rows."""
        with self.log.stage("read"):
            short = short_bytes(self.request)
            parts = tuple(
                deposited(given, self.request.options, self.checkpoints, "read-other" if number else "read", short)
                for number, given in enumerate(self.inputs)
            )
            before = [] if earlier is None else earlier.deposits(self.checkpoints, Corpus(self.session, parts))
        corpus = Corpus(self.session, (*before, *parts), earlier is None, means=earlier.means() if earlier else ())
        self.log.counts["bytes"] = sum(part.numbering.bytes for part in parts)
        if self.request.id is not None:
            for part in parts:
                check_ids(part, self.request.id)
        return corpus

    def described(self) -> dict[str, Any]:
        """Return where the run ran and what its steps cost, for run.json."""
        where = {"master": master_of(self.session), "connect": is_connect(self.session)}
        return {**where, "version": self.session.version, "steps": self.checkpoints.metrics}

    def stats(self, command: str, parameters: dict[str, Any], inputs: list[Any]) -> dict[str, Any]:
        """Return the content of run.json."""
        self.log.details["spark"] = self.described()
        if self.checkpoints.resumed:
            self.log.details["resumed"] = self.checkpoints.resumed
        return run_json(command, parameters, inputs, self.log)

    def publish(
        self,
        part: Deposit,
        writers: dict[str, Callable[[RunFolder], None]],
        stats: Callable[[], dict[str, Any]],
        kind: type[Published],
        aside: list[Aside],
        state: Callable[[RunFolder], None] | None = None,
    ) -> Published:
        """Write the tables of the result and run.json, and remove the steps. part: what must not have changed."""
        if aside:
            writers = {**writers, "aside.parquet": lambda place: write_arrow(aside_table(aside), place)}
        found: dict[str, Any] = {}
        with ExitStack() as writing:
            writing.enter_context(self.log.stage("write"))
            measured = writing.enter_context(measuring(self.session, "write", self.checkpoints.progress))

            def finished() -> dict[str, Any]:
                check_unchanged(self.session, self.inputs[0], part)
                writing.close()
                self.checkpoints.metrics["write"] = measured.to_dict()
                found.update(stats())
                return found

            publish_frames(self.folder, writers, finished, state, kind)
        self.checkpoints.finish(self.folder / WORK)
        return kind(self.folder, found, aside)

    def shingler(self, corpus: Corpus) -> Shingler:
        """Return the shingler; where its k depends on the lengths of the documents, the k for these."""
        given = self.request.shingle
        if isinstance(given, str) and given.split(",")[0] == "chars":
            lengths = corpus.parts[-1 if corpus.earlier else 0].frame.selectExpr(f"percentile({SIZE}, 0.9)").first()[0]
            shingler = parse_shingler(given, np.array([lengths or 0.0]))
        else:
            shingler = parse_shingler(given)
        if isinstance(shingler, Words) and any(2 * part.short > part.numbering.rows for part in corpus.parts):
            self.log.notes.append(
                f"half of the documents are shorter than about {shingler.k} words, which makes a single shingle; "
                "shingle='chars' suits short texts better"
            )
        return shingler


def short_bytes(request: SearchRequest) -> int:
    """Return how many bytes a document has that is too short for several shingles of words; 0 for other shingles."""
    words = request.shingler
    return BYTES_A_WORD * words.k if isinstance(words, Words) else 0


class EarlierRuns(Protocol):
    """The documents that earlier runs kept."""

    def deposits(self, checkpoints: Checkpoints, new: Corpus) -> list[Deposit]:
        """Write them to the folder of this run. new: the documents that are compared with them."""

    def means(self) -> tuple[int | None, ...]:
        """Return the bytes that a set of each run is taken to have; None if the sizes of documents are those."""


class RankOrder:
    """The order in which rows are preferred by a policy."""

    def __init__(self, corpus: Corpus, policy: Keep) -> None:
        self._corpus = corpus
        self._policy = policy
        self._known: tuple[Ints, Ints] | None = None

    def __call__(self, rows: Ints) -> Ints:
        """Return the place of each of these rows, which ascend, among them: 0 for the most preferred."""
        if self._known is None or not np.array_equal(self._known[0], rows):
            self._known = rows, self._ranks(rows)
        return self._known[1]

    def _ranks(self, rows: Ints) -> Ints:
        from pyspark.sql import functions as F

        corpus, policy = self._corpus, self._policy
        old = int(np.searchsorted(rows, corpus.earlier))
        if old:
            return np.concatenate([np.arange(old), self._ranks(rows[old:]) + old])
        lengths, scores = np.zeros(len(rows), np.int64), []
        if policy.by_length:
            frame = corpus.texts.withColumn(LENGTH, F.char_length(TEXT).cast("bigint"))
            lengths = np.asarray(corpus.fetch(rows, [LENGTH], frame).column(LENGTH), np.int64)
        for rule in policy.rules if len(rows) else ():
            if rule.column is not None:
                check_scores(corpus.parts[-1], rule)
                scores.append(corpus.column(rows - corpus.earlier, rule.column, len(corpus.parts) - 1))
        return policy.ranks(lengths, scores)


def check_scores(part: Deposit, rule: Keep) -> bool:
    """Raise if scores are text of which some are numbers, for they have no order; tell whether all are such numbers."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    if not isinstance(part.frame.schema[rule.column].dataType, StringType):
        return False
    score = F.col(quoted(str(rule.column)))
    numbers, others = part.frame.agg(F.count_if(score.rlike(NUMBER)), F.count_if(~score.rlike(NUMBER))).first()
    if numbers and others:
        raise ColumnError(
            f"column '{rule.column}' of the keep policy '{rule}' mixes numbers ({numbers:,}) and text ({others:,})"
        )
    return bool(numbers)


def check_ids(part: Deposit, column: str) -> None:
    """Raise if an id is null or not unique: no result could name its row."""
    from pyspark.sql import functions as F

    direct = part.direct
    if direct is not None and direct.plain(column) and part.numbering.rows <= MOST_JOINED:
        found = direct.repeated(column)
    else:
        counted = part.frame.groupBy(F.col(quoted(column)).alias("id")).count()
        wrong = counted.where(F.col("id").isNull() | (F.col("count") > 1)).limit(1).collect()
        found = (wrong[0]["id"], wrong[0]["count"]) if wrong else None
    if found is None:
        return
    if found[0] is None:
        raise InputError(f"{part.kind}: the id of column '{column}' is null; leave such rows out of the input")
    raise InputError(
        f"{part.kind}: id {found[0]!r} of column '{column}' is in {found[1]:,} rows; ids must be "
        "unique: choose another column, or leave the id out to use row numbers"
    )


def check_parameters(request: SearchRequest) -> None:
    """Raise if something is asked for that only the local engine has."""
    local = request.only_local
    for name in ANSWERING:
        value, default = local.pop(name, (None, None))
        if value != default:
            rule = f"{default!r} on Spark; engine='local' takes others, of a DataFrame its toArrow() or its files"
            raise ParameterError.of(request.owner, name, rule, value)
    checks.unused(request.owner, local, "on Spark yet")


Opening = Callable[[Any, Any, ReadOptions, int], SparkInput]
"""Opens an input: session, source, options, and the memory that the driver may use."""


@contextmanager
def begun(
    request: SearchRequest,
    earlier: list[Any] | None = None,
    fresh: bool = False,
    opening: Opening = open_input,
    kind: type[SparkResult] = SparkDedup,
    log: RunLog | None = None,
) -> Iterator[ClusterRun]:
    """Open the session, the folder and the inputs of a run; close what it leaves behind.

    earlier: what tells the runs that documents are compared with, or further settings, from others. fresh: whether an
    interrupted run is begun anew. kind: the result, for what it may replace. log: of a run that has begun.
    """
    check_parameters(request)
    session, limit = session_of(request.owner, request.sources, request.master), request.resources.budget.total
    scratch = Path(tempfile.mkdtemp(prefix="likewise-spark-", dir=request.spill)).absolute()
    try:
        with bounded(session), spark_errors():
            if is_connect(session) or not one_machine(session):
                check_machines(session)
            inputs = [opening(session, source, request.options, limit) for source in request.sources]
            folder, lasting = _folder(session, request, scratch)
            if lasting:
                check_free(folder, [path for one in inputs for path in one.files], kind)
            check_seen(session, folder, folder / WORK)
            known = [one.identity for one in inputs]
            identity = None
            if lasting and all(one is not None for one in known):
                names = [field.name for field in fields(request) if field.name not in APART]
                shown = {name: str(value) for name, (value, _) in request.given(*names).items()}
                identity = {"parameters": shown, "earlier": earlier, "inputs": known}
            log = RunLog.of(request.progress) if log is None else log
            checkpoints = Checkpoints(folder / WORK / "spark", identity, fresh, lasting, limit, log.progress)
            yield ClusterRun(session, request, folder, scratch, checkpoints, inputs, log)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    if request.shared == ("out", None):  # DataFrames may read the result of such a run as long as this process lasts
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    else:
        shutil.rmtree(scratch, ignore_errors=True)


def _folder(session: Any, request: SearchRequest, scratch: Path) -> tuple[RunFolder, bool]:
    """Return the folder of a run that all machines see, and whether it lasts; a job without 'out' uses 'spill'."""
    name, given = request.shared
    if given is None and not master_of(session).startswith("local"):
        raise ParameterError(f"{request.owner} on a cluster needs '{name}', a folder that all its machines can reach")
    if given is None or name == "spill":
        return folder_at(session, str(scratch) if is_connect(session) else f"file://{scratch}"), False
    return folder_at(session, located(session, given)), True
