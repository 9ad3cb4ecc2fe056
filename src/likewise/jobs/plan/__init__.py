"""What a run will take, before it runs (X6): time by stage, memory and disk, here or on a cluster.

`plan` looks at an input and at this machine. `cluster` needs no input: it does the arithmetic for machines you name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.base import checks
from likewise.base.memory import Budget
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.read import ReadOptions, Source, open_source
from likewise.io.read.glimpse import SIZE
from likewise.jobs.plan.fleet import Cluster, cluster
from likewise.jobs.plan.machine import Machine
from likewise.jobs.plan.model import Forecast, forecast
from likewise.jobs.plan.sample import Sample
from likewise.search.common_shingles import check_fraction
from likewise.search.recall.sample import check_sample
from likewise.search.search import Search
from likewise.shingle import Shingler, Tokens, parse_shingler

__all__ = ["Cluster", "Forecast", "Machine", "Sample", "cluster", "forecast", "plan", "predicted"]

SLOWER = 16
"""Of an input to be sketched in the classic way so many times less is looked at."""


def plan(
    source: Any,
    *,
    text: str = "text",
    id: str | None = None,
    shingle: str | Shingler = "words:5",
    threshold: float = 0.8,
    recall: float = 0.99,
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
    memory: str | int | None = None,
    spill: str | Path | None = None,
    calibrate: bool = False,
) -> Forecast:
    """Predict what `dedup` of this source will take here: seconds by stage, memory, disk; a sample of it is read.

    The parameters are those of `dedup`. `spill` is a folder on the disk that will be used. The speed of this machine is
    measured once, in about two seconds; `calibrate` measures it again.

    >>> forecast = plan(["to be or not to be, that is the question"] * 1000)
    >>> forecast.documents, forecast.different, forecast.spill, forecast.total > 0
    (1000, 1, 0, True)
    """
    if (bands is None) != (rows is None):
        raise ParameterError("The 'bands' and 'rows' parameters of plan go together: give both or neither.")
    checks.seed("plan", seed)
    parse_shingler(shingle, owner="plan")
    count = checks.threads("plan", threads)
    search = Search(
        checks.threshold("plan", threshold),
        checks.recall("plan", recall),
        MinHash(seed, sketch),
        Banding(bands, rows) if bands is not None and rows is not None else None,
        max_slots,
        count,
        Budget.of("plan", memory),
        check_fraction("plan", ignore_common),
        certify=check_sample("plan", certify),
    )
    sets = isinstance(parse_shingler(shingle), Tokens)
    options = ReadOptions(
        text=text,
        id=id,
        on_error=on_error,
        encoding_errors=encoding_errors,
        lines=lines or sets,
        sets=sets,
        owner="plan",
    )
    return predicted(open_source(source, options), shingle, search, spill, calibrate)


def predicted(
    source: Source, shingle: str | Shingler, search: Search, folder: str | Path | None = None, calibrate: bool = False
) -> Forecast:
    """Look at a source and at this machine, and predict what this search over it will take; `folder` is where it works.

    The source can still be read from its beginning.
    """
    size = SIZE if search.minhash.method == "fast" else SIZE // SLOWER
    sample = Sample.of(source, shingle, size)
    place = None if folder is None else Path(folder)
    return forecast(sample, Machine.measured(search.threads, place, again=calibrate), search)
