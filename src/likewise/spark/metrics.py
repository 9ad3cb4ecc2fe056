"""What Spark measures of a step: rows, bytes of shuffles, spills, and how uneven its tasks are."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

from likewise.base.runlog import Progress

QUANTILES = (0.49, 0.5, 1.0)
"""Spark takes the later of two middle tasks for the median; here it is the mean of both, for few tasks exactly."""
PAUSE = 0.5
"""Seconds between two looks at what is done."""
STAGES = {
    "read": "read", "read-other": "read", "earlier": "read", "copies": "identical", "common": "common",
    "sketch": "sketch", "groups": "sketch", "buckets": "candidates", "candidates": "candidates",
    "meetings": "candidates", "verify": "verify",
    "write": "write", "members": "cluster", "ranks": "cluster", "edges": "cluster", "keepers": "cluster",
    "components": "cluster", "rows": "cluster", "listed": "tables",
    "names": "tables",
}  # fmt: skip
"""The stage of a run that a step belongs to, for progress bars."""


class StepMetrics:
    """Runs the jobs of a step as one group, and asks Spark afterwards what they did."""

    def __init__(self, session: Any, step: str, progress: Progress | None = None) -> None:
        self._progress = progress
        self._done = threading.Event()
        self._context = session.sparkContext
        self._jvm = session._jvm
        self._group = f"likewise-{step}-{time.monotonic_ns()}"
        self._step = step
        self._bar = STAGES[step.rstrip("-0123456789")]
        self._stages: list[dict[str, Any]] = []
        self._seconds = 0.0

    def __enter__(self) -> StepMetrics:
        self._begun = time.perf_counter()
        self._context.setJobGroup(self._group, f"likewise: {self._step}")
        if self._progress is not None:
            self._watcher = threading.Thread(target=self._watch, args=(self._progress,), daemon=True)
            self._watcher.start()
        return self

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
        self._seconds = time.perf_counter() - self._begun
        self._done.set()
        if self._progress is not None:
            self._watcher.join()
        self._context.setLocalProperty("spark.jobGroup.id", None)
        self._context.setLocalProperty("spark.job.description", None)
        if error[0] is None:
            self._stages = self._collected()
            total = sum(stage["tasks"] for stage in self._stages)
            if self._progress is not None and total:
                self._progress(self._bar, total, total)

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

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for run.json."""
        total = {
            name: sum(stage[name] for stage in self._stages)
            for name in ("input_bytes", "shuffle_read_bytes", "shuffle_write_bytes", "spill_bytes")
        }
        return {"seconds": round(self._seconds, 3), **total, "stages": self._stages}
