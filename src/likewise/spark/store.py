"""The folder of a run on any file system that Hadoop knows: what a step has written, and small JSON files."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from likewise.base.runlog import Progress
from likewise.errors import IncompatibleError, InputError
from likewise.spark.context import is_connect
from likewise.spark.exchange import KIND, ROWS, WORDS
from likewise.spark.folder import RunFolder

QUANTILES = (0.49, 0.5, 1.0)
"""Spark takes the later of two middle tasks for the median; here it is the mean of both, for few tasks exactly."""
PAUSE = 0.5
"""Seconds between two looks at what is done."""
TOTALS = ("input_bytes", "shuffle_read_bytes", "shuffle_write_bytes", "spill_bytes")
"""Numbers of stages that are added up."""
STAGES = {
    "read": "read", "read-other": "read", "earlier": "read", "asked": "ask", "known": "ask",
    "copies": "identical", "common": "common",
    "sketch": "sketch", "groups": "sketch", "buckets": "candidates", "candidates": "candidates",
    "meetings": "candidates", "verify": "verify",
    "write": "write", "members": "cluster", "ranks": "cluster", "edges": "cluster", "keepers": "cluster",
    "components": "cluster", "rows": "cluster", "listed": "tables",
    "names": "tables", "items": "read", "alone": "narrow", "outer": "narrow", "units": "count", "cuts": "cut",
    "runs": "search", "hits": "search",
}  # fmt: skip
"""The stage of a run that a step belongs to, for progress bars."""


class StepMetrics:
    """What the jobs of a step did, as far as the session tells."""

    totals: tuple[str, ...] = TOTALS

    def __init__(self, session: Any, step: str, progress: Progress | None = None) -> None:
        self._session = session
        self._progress = progress
        self._step = step
        self._bar = STAGES[step.rstrip("-0123456789")]
        self._stages: list[dict[str, Any]] = []
        self._seconds = 0.0

    def __enter__(self) -> StepMetrics:
        self._begun = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self._seconds = time.perf_counter() - self._begun
        total = sum(stage["tasks"] for stage in self._stages)
        if error[0] is None and self._progress is not None and total:
            self._progress(self._bar, total, total)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for run.json."""
        total = {name: sum(stage[name] for stage in self._stages) for name in self.totals}
        return {"seconds": round(self._seconds, 3), **total, "stages": self._stages}


class ConnectMetrics(StepMetrics):
    """What the server of Spark Connect reports while it works: tasks, and the bytes that they read.

    It does so every two seconds, unless it is told otherwise, so that nothing is known of the stages of a short step.
    """

    totals = ()

    def __enter__(self) -> StepMetrics:
        self._known: dict[int, Any] = {}
        self._session.registerProgressHandler(self._seen)
        return super().__enter__()

    def _seen(self, stages: Any, **_: Any) -> None:
        self._known |= {one.stage_id: one for one in stages or ()}
        total = sum(one.num_tasks for one in self._known.values())
        if self._progress is not None and total:
            self._progress(self._bar, sum(one.num_completed_tasks for one in self._known.values()), total)

    def __exit__(self, *error: object) -> None:
        self._session.removeProgressHandler(self._seen)
        self._stages = [
            {"tasks": one.num_tasks, "input_bytes": one.num_bytes_read}
            for _, one in sorted(self._known.items())
            if one.num_completed_tasks
        ]
        super().__exit__(*error)


class ClassicMetrics(StepMetrics):
    """Runs the jobs of a step as one group, and asks Spark afterwards what they did."""

    def __init__(self, session: Any, step: str, progress: Progress | None = None) -> None:
        super().__init__(session, step, progress)
        self._done = threading.Event()
        self._context = session.sparkContext
        self._jvm = session._jvm
        self._group = f"likewise-{step}-{time.monotonic_ns()}"

    def __enter__(self) -> StepMetrics:
        self._context.setJobGroup(self._group, f"likewise: {self._step}")
        if self._progress is not None:
            self._watcher = threading.Thread(target=self._watch, args=(self._progress,), daemon=True)
            self._watcher.start()
        return super().__enter__()

    def _watch(self, progress: Progress) -> None:
        """Report how many of the tasks known so far are done, until the step ends."""
        tracker = self._context.statusTracker()
        with suppress(Exception):  # if Java has ended: whoever waits for the step is told
            while not self._done.wait(PAUSE):
                jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
                stages = [tracker.getStageInfo(number) for job in jobs if job for number in job.stageIds]
                known = [one for one in stages if one]
                total = sum(one.numTasks for one in known)
                if total:
                    progress(self._bar, sum(one.numCompletedTasks for one in known), total)

    def __exit__(self, *error: object) -> None:
        seconds = time.perf_counter() - self._begun
        self._done.set()
        if self._progress is not None:
            self._watcher.join()
        self._context.setLocalProperty("spark.jobGroup.id", None)
        self._context.setLocalProperty("spark.job.description", None)
        if error[0] is None:
            self._stages = self._collected()
        super().__exit__(*error)
        self._seconds = seconds

    def _collected(self) -> list[dict[str, Any]]:
        """Return the numbers of every stage that ran."""
        core = self._context._jsc.sc()
        core.listenerBus().waitUntilEmpty()
        store, tracker = core.statusStore(), self._context.statusTracker()
        found = []
        for job in sorted(tracker.getJobIdsForGroup(self._group)):
            info = tracker.getJobInfo(job)
            for stage in sorted(info.stageIds if info else []):
                try:
                    data = store.lastStageAttempt(stage)
                except Exception:  # a stage that was skipped has no attempt
                    continue
                if str(data.status()) == "COMPLETE":
                    found.append({**self._numbers(data), **self._tasks(store, data)})
        return found

    def _numbers(self, data: Any) -> dict[str, Any]:
        return {
            "tasks": int(data.numTasks()),
            "input_rows": int(data.inputRecords()) + int(data.shuffleReadRecords()),
            "input_bytes": int(data.inputBytes()),
            "shuffle_read_bytes": int(data.shuffleReadBytes()),
            "shuffle_write_bytes": int(data.shuffleWriteBytes()),
            "spill_bytes": int(data.diskBytesSpilled()),
        }

    def _tasks(self, store: Any, data: Any) -> dict[str, Any]:
        quantiles = self._context._gateway.new_array(self._jvm.double, len(QUANTILES))
        for place, value in enumerate(QUANTILES):
            quantiles[place] = value
        summary = store.taskSummary(data.stageId(), data.attemptId(), quantiles)
        if summary.isEmpty():
            return {}
        low, high, most = (float(summary.get().executorRunTime().apply(place)) / 1000 for place in range(3))
        return {"task_seconds_median": round((low + high) / 2, 3), "task_seconds_most": round(most, 3)}


def measuring(session: Any, step: str, progress: Progress | None = None) -> StepMetrics:
    """Return what measures the jobs of a step, and reports how many of their tasks are done."""
    return (ConnectMetrics if is_connect(session) else ClassicMetrics)(session, step, progress)


DONE = "_SUCCESS"
WORK = ".likewise"
IDENTITY = "identity.json"
COPIED = 3
"""How often the driver has the numbers of a step while it works with them."""
AT_ONCE = 1 << 12
"""Rows of a step that the driver reads together."""
PACKED = 6
"""Bytes of memory for each byte of a compressed step: numbers shrink to about half, and the driver has them thrice."""


def read_files(folder: str, columns: list[str], where: Any = None) -> Any:
    """Return columns of the Parquet files in a folder of this machine: for the driver that costs less than a job.

    where: a condition for rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = (os.path.join(folder, name) for name in parquet_files(folder))
    return pa.concat_tables([pq.read_table(path, columns=columns, filters=where) for path in paths])


def parquet_files(folder: str) -> list[str]:
    """Return the names of the Parquet files in a folder of this machine."""
    return sorted(name for name in os.listdir(folder) if name.endswith(".parquet"))


def check_room(step: str, folder: RunFolder, limit: int) -> None:
    """Raise if the result of a step needs more memory than the driver may use."""
    check_bytes(step, PACKED * folder.bytes, limit)


def check_bytes(step: str, needed: int, limit: int) -> None:
    """Raise if so many bytes are more than the driver may use."""
    if needed > limit:
        have = f"and may use {limit / 1e9:,.1f} GB; give it more with 'memory' and run again"
        raise InputError(
            f"step '{step}': the driver would need {needed / 1e9:,.1f} GB for the rows with duplicates, {have}"
        )


class Checkpoints:
    """The steps that a run has finished, each a Parquet dataset; those of an interrupted run with the same identity are
    taken over."""

    def __init__(
        self,
        folder: RunFolder,
        identity: Mapping[str, Any] | None,
        fresh: bool,
        lasting: bool = True,
        limit: int = 1 << 60,
        progress: Progress | None = None,
    ) -> None:
        self.folder = folder
        self.progress = progress
        self.limit = limit
        self.lasting = lasting
        self.session = folder.session
        self.resumed: list[str] = []
        self.metrics: dict[str, Any] = {}
        wanted = None if identity is None else json.dumps(identity, sort_keys=True, default=str)
        known = (folder / IDENTITY).read()
        if known is not None and wanted is not None and known != wanted and not fresh:
            raise IncompatibleError(
                f"{folder.path}: there is an unfinished run with other inputs or parameters; "
                "run it again as it was, or start over: with fresh=True, or when this folder is removed"
            )
        if fresh or wanted is None or known is None:
            folder.remove()
        folder.make()
        if wanted is not None:
            (folder / IDENTITY).write(wanted)

    def frame(self, step: str, make: Callable[[], Any]) -> Any:
        """Return the result of a step: that of an interrupted run, or what `make` returns, written to the folder."""
        place = self.folder / step
        notes = self.folder / f"{step}.json"
        if (place / DONE).exists() and (text := notes.read()) is not None:
            self.resumed.append(step)
            known = json.loads(text)
        else:
            frame = make()
            with measuring(self.session, step, self.progress) as measured:
                frame.write.mode("overwrite").option("compression", "zstd").parquet(place.path)
            known = {"schema": frame.schema.jsonValue(), "metrics": measured.to_dict()}
            notes.write(json.dumps(known))
        self.metrics[step] = known["metrics"]
        return self._read(step, known)

    def _read(self, step: str, known: dict[str, Any]) -> Any:
        from pyspark.sql.types import StructType

        return self.session.read.schema(StructType.fromJson(known["schema"])).parquet((self.folder / step).path)

    def recalled(self, step: str) -> bool:
        """Take over the numbers of a finished step that another one has used up; tell whether there is one."""
        text = (self.folder / f"{step}.json").read()
        if text is None:
            return False
        self.resumed.append(step)
        self.metrics[step] = json.loads(text)["metrics"]
        return True

    def table(self, step: str, make: Callable[[], Any]) -> Any:
        """Return the result of a step that is small enough for the driver as an Arrow table."""
        if self.lasting:
            frame = self.frame(step, make)
            place = self.folder / step
            check_room(step, place, self.limit)
            return frame.toArrow() if place.local is None else read_files(place.local, frame.columns)
        frame = make()
        with measuring(self.session, step, self.progress) as measured:
            table = frame.toArrow()
        self.metrics[step] = measured.to_dict()
        return table

    def kinds(self, step: str, kinds: tuple[int, ...]) -> Any:
        """Return the parcels of some kinds, of a finished step, as an Arrow table, if the driver has the memory."""
        place, frame = self.folder / step, self.known(step)
        chosen = frame.where(frame[KIND].isin(*kinds))
        size = chosen.selectExpr(f"coalesce(sum(length({ROWS}) + length({WORDS})), 0)").first()[0]
        check_bytes(step, COPIED * int(size), self.limit)
        return (
            chosen.toArrow() if place.local is None else read_files(place.local, frame.columns, [(KIND, "in", kinds)])
        )

    def batches(self, step: str, columns: list[str]) -> Iterator[Any]:
        """Yield columns of a finished step, some rows at a time: neither Python nor Java here holds many."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        place = self.folder / step
        if place.local is not None:
            for name in parquet_files(place.local):
                with pq.ParquetFile(os.path.join(place.local, name)) as file:
                    yield from file.iter_batches(AT_ONCE, columns=columns)
            return
        frame = self.known(step).select(*columns)
        kinds = frame.limit(0).toArrow().schema
        rows = frame.toLocalIterator()
        while some := [row.asDict() for row in islice(rows, AT_ONCE)]:
            yield pa.RecordBatch.from_pylist(some, kinds)

    def known(self, step: str) -> Any:
        """Return the result of a finished step."""
        return self._read(step, json.loads((self.folder / f"{step}.json").read() or ""))

    def columns(self, step: str, columns: list[str]) -> Any:
        """Return columns of a finished step that are small enough for the driver as an Arrow table."""
        place = self.folder / step
        if place.local is not None:
            return read_files(place.local, columns)
        return self.known(step).select(*columns).toArrow()

    def sums(self, step: str, by: str, columns: list[str]) -> dict[str, list[Any]]:
        """Return the sums of columns of a finished step for each value of another one."""
        found = self.columns(step, [by, *columns]).group_by(by).aggregate([(name, "sum") for name in columns])
        return {name: found.column(name if name == by else f"{name}_sum").to_pylist() for name in (by, *columns)}

    def finish(self, above: RunFolder) -> None:
        """Remove all steps, and the folder above them if nothing else is there."""
        self.folder.remove()
        if not above.names():
            above.remove()
