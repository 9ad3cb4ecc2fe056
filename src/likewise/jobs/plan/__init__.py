"""`plan`: what a run needs, before it runs: time by stage, memory and disk, here or on a cluster.

`plan` looks at an input of `dedup` and at this machine, `plan_link` at tables for `link`. `cluster` needs no input: it
does the arithmetic for machines you name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.disk import with_spill
from likewise.io.read import Source, open_source
from likewise.io.read.glimpse import SIZE
from likewise.jobs.inputs import SearchRequest
from likewise.jobs.plan.fleet import cluster, of_input, spark_cluster
from likewise.jobs.plan.linkage import LinkForecast, plan_link
from likewise.jobs.plan.machine import Machine
from likewise.jobs.plan.model import forecast
from likewise.jobs.plan.result import Cluster, Forecast, SparkForecast
from likewise.jobs.plan.sample import InputSample
from likewise.search.local import Search
from likewise.shingle import Shingler

__all__ = [
    "Cluster", "Forecast", "InputSample", "LinkForecast", "Machine", "SparkForecast", "cluster", "forecast", "of_input",
    "plan", "plan_link", "predicted", "spark_cluster",
]  # fmt: skip

OWNER = "plan"
SLOWER = 16
"""Classic signatures take about this many times longer: that many times less of the input is looked at."""


@with_spill
def plan(
    source: Any,
    *,
    text: str = "text",
    id: str | None = None,
    shingle: str | Shingler = "words:5",
    threshold: float = 0.8,
    recall: float = 0.99,
    method: str = "auto",
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
    calibrate: bool = False,
) -> Forecast:
    """Predict what `dedup` of this source needs here: seconds by stage, memory, disk. A sample of the source is read.

    The parameters are those of `dedup`; with method="auto" the forecast says which method the run will use. `spill` is
    a folder on the disk that will be used. The speed of this machine is measured once, in about two seconds;
    `calibrate` measures it again.

    >>> forecast = plan(["to be or not to be, that is the question"] * 1000)
    >>> forecast.documents, forecast.different, forecast.method, forecast.spill, forecast.total > 0
    (1000, 1, 'exact', 0, True)
    """
    request = SearchRequest(
        OWNER, shingle, threshold, recall, seed, sketch, bands, rows, max_slots, ignore_common, certify, method,
        source=source, text=text, id=id, threads=threads, on_error=on_error, encoding_errors=encoding_errors,
        lines=lines, html=html, plain=plain, hidden=hidden, memory=memory, spill=spill,
    )  # fmt: skip
    search, folder = request.search(request.resources), request.resources.spill
    return predicted(open_source(source, request.options), shingle, search, folder, calibrate)


def predicted(
    source: Source, shingle: str | Shingler, search: Search, folder: str | Path | None = None, calibrate: bool = False
) -> Forecast:
    """Predict what this search over a source needs on this machine; `folder` is where it works.

    The source can still be read from its beginning.
    """
    size = SIZE if search.minhash.method == "fast" else SIZE // SLOWER
    sample = InputSample.of(source, shingle, size)
    place = None if folder is None else Path(folder)
    return forecast(sample, Machine.measured(search.threads, place, again=calibrate), search)
