"""`likewise plan`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import options as shared
from likewise.cli import show
from likewise.errors import ParameterError

if TYPE_CHECKING:
    from likewise.jobs.plan import Cluster, Forecast, SparkForecast

ONLY_INPUT = (
    "text", "id", "method", "threads", "seed", "sketch", "ignore_common", "certify", "on_error", "encoding_errors",
    "lines", "html", "plain", "hidden", "memory", "spill",
)  # fmt: skip
ONLY_CLUSTER = ("documents", "mean_bytes", "machines", "cores_per_machine", "memory_per_machine")
OF_SPARK = ("machines", "cores_per_machine")
"""What a forecast of INPUT takes too, if it is for Spark."""


@click.command(
    epilog="""\b
Examples:
  likewise plan corpus.parquet
  likewise plan 'crawl/*.jsonl.gz' --text body --id url --threshold 0.8 --memory 4GiB
  likewise plan corpus.parquet --method lsh --json
  likewise plan --documents 1e10 --mean-bytes 5000 --machines 1000 --cores-per-machine 16
  likewise plan corpus.parquet --method lsh --engine spark --machines 4 --cores-per-machine 8

With INPUT, a sample of a few megabytes from all over it is read. The options are those of dedup; the forecast says
which method the run will use. With --documents nothing is read: the forecast is computed for a cluster of machines
whose cores are as fast as this one's. The speed of this machine is measured once, in about two seconds."""
)
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@shared.search
@click.option("--documents", type=float, metavar="N", help="Plan for a cluster instead: number of documents.")
@click.option("--mean-bytes", type=float, metavar="N", help="With --documents: mean size of a document in bytes.")
@click.option("--machines", type=float, metavar="N", help="With --documents or --engine spark: number of machines.")
@shared.whole("--cores-per-machine", 16, "With --documents or --engine spark: cores of each machine.", metavar="N")
@click.option("--memory-per-machine", metavar="SIZE", help="With --documents: memory of each machine.")
@shared.choice(
    "--engine", ["local", "spark"], "local", "spark: forecast time and shuffle of each step of the Spark engine."
)
@click.option("--calibrate", is_flag=True, help="Measure the speed of this machine again.")
@click.pass_context
def plan(context: click.Context, /, inputs: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Predict what a dedup run will need: time, memory and disk, here or on a cluster.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV, WARC or text files, compressed or not, folders, globs.
    """
    on_spark = options.pop("engine") == "spark"
    free = ("cores_per_machine", "machines") if on_spark else ("cores_per_machine",)
    wants_cluster = any(options[name] is not None for name in ONLY_CLUSTER if name not in free)
    if bool(inputs) == wants_cluster:
        raise ParameterError("plan needs either INPUT, or --documents, --mean-bytes and --machines for a cluster")
    shared.take_sets(context, options)
    show.announce_compilation()
    _announce_measuring(options)
    if inputs and on_spark:
        own = context.get_parameter_source("cores_per_machine") != click.core.ParameterSource.COMMANDLINE
        _of_spark(inputs, as_json, {**options, **({"cores_per_machine": None} if own else {})})
        return
    if inputs:
        _run(inputs, as_json, {name: value for name, value in options.items() if name not in ONLY_CLUSTER})
        return
    for name in ("documents", "mean_bytes", "machines"):
        if options[name] is None:
            raise ParameterError(f"plan for a cluster also needs --{name.replace('_', '-')}")
    for name in ONLY_INPUT:
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise ParameterError(f"--{name.replace('_', '-')} needs an INPUT, and --documents plans without one")
    wanted = {name: value for name, value in options.items() if name not in ONLY_INPUT}
    if on_spark:
        _spark_cluster(as_json, wanted)
    else:
        _cluster(as_json, wanted)


def _announce_measuring(options: dict[str, Any]) -> None:
    """Say so when the machine must be measured."""
    from likewise.base import checks
    from likewise.jobs.plan import Machine

    if show.quiet():
        return
    if options["calibrate"] or not Machine.is_known(checks.threads("plan", options["threads"])):
        click.echo("measuring this machine (once, about three seconds) …", err=True)


def _run(inputs: tuple[str, ...], as_json: bool, options: dict[str, Any]) -> None:
    import likewise
    from likewise.io.read import Files

    found = likewise.plan(Files(list(inputs)), **options)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
        return
    about = "" if found.exact else "about "
    rows = [
        ("documents", f"{about}{found.documents:,}, {_size(found.text_bytes)} of text"),
        ("shingles", f"{found.shingles:,.0f} per document"),
        ("method", found.method if found.banding is None else f"{found.method}, {found.banding}"),
        ("copies", show.count(found.documents - found.different, "document")),
        ("removed", show.count(found.removed, "document")),
        ("candidate pairs", f"{found.candidates:,}"),
        ("memory", f"{_size(found.memory)}, of {_size(found.budget)} allowed"),
        ("spilled to disk", _size(found.spill)),
        ("disk", f"{_size(found.disk)}, of which the result {_size(found.answer)}"),
    ]
    _print(rows, found.seconds)
    show.say(f"method: {found.method}, {found.why}")
    for note in found.notes:
        show.say(f"note: {note}")
    click.echo(_closing(found))


def _closing(found: Forecast) -> str:
    return (
        f"about {_time(found.total)} with {show.count(found.threads, 'thread')}, "
        f"{_size(found.memory)} of memory, {_size(found.disk)} of disk"
    )


def _of_spark(inputs: tuple[str, ...], as_json: bool, options: dict[str, Any]) -> None:
    import likewise
    from likewise.base import checks
    from likewise.io.read import Files
    from likewise.jobs.plan import Machine, of_input

    found = likewise.plan(
        Files(list(inputs)), **{name: value for name, value in options.items() if name not in ONLY_CLUSTER}
    )
    machine = Machine.measured(checks.threads("plan", options["threads"]))
    machines = 1 if options["machines"] is None else options["machines"]
    _tell_spark(of_input(found, options["shingle"], machine, machines, options["cores_per_machine"]), as_json)


def _spark_cluster(as_json: bool, options: dict[str, Any]) -> None:
    from likewise.jobs.plan import spark_cluster

    _tell_spark(spark_cluster(**_on_this_machine(options)), as_json)


def _on_this_machine(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the speed of this machine, measured again if that is asked for."""
    from likewise.base import checks
    from likewise.jobs.plan import Machine

    machine = Machine.measured(checks.threads("plan", None), again=options.pop("calibrate"))
    return {**options, "machine": machine}


def _tell_spark(found: SparkForecast, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
        return
    rows = [
        ("documents", f"{found.documents:,}, {_size(found.text_bytes)} of text"),
        ("shingles", f"{found.shingles:,.0f} per document"),
        ("banding", f"{found.banding} ({found.banding.slots} slots)"),
        ("candidate pairs", f"{found.candidates:,}"),
        *((f"shuffle: {name}", _size(step.shuffle_bytes)) for name, step in found.steps.items() if step.shuffle_bytes),
        ("time of all cores", _time(found.core_seconds)),
        ("memory per machine", f"{_size(found.memory)}, beside Java's"),
    ]
    _print(rows, {name: step.seconds for name, step in found.steps.items()})
    for note in found.notes:
        click.echo(f"assumed: {note}")
    cores = f"{show.count(found.machines, 'machine')} of {show.count(found.cores, 'core')}"
    click.echo(f"about {_time(found.total)} on {cores}, {_size(found.shuffle_bytes)} shuffled")


def _cluster(as_json: bool, options: dict[str, Any]) -> None:
    from likewise.jobs.plan import cluster

    found: Cluster = cluster(**_on_this_machine(options))
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
        return
    rows = [
        ("documents", f"{found.documents:,} of {_size(found.mean_bytes)}: {_size(found.text_bytes)} of text"),
        ("shingles", f"{found.shingles:,.0f} per document"),
        ("banding", f"{found.banding} ({found.banding.slots} slots)"),
        ("signatures", f"{_size(found.signature_bytes)}; band keys {_size(found.key_bytes)}"),
        ("candidate pairs", f"{found.candidates:,}, of which similar {found.pairs:,}"),
        *((f"shuffle: {kind}", _size(amount)) for kind, amount in found.shuffle.items()),
        ("disk per machine", _size(found.disk)),
        ("memory per machine", _size(found.memory)),
    ]
    _print(rows, found.seconds)
    for note in found.notes:
        click.echo(f"assumed: {note}")
    cores = f"{show.count(found.machines, 'machine')} of {show.count(found.cores, 'core')}"
    click.echo(f"about {_time(found.total)} on {cores}, {_size(found.shuffle_bytes)} through the network")


def _print(rows: list[tuple[str, str]], seconds: Any) -> None:
    """Print the numbers and the time of each stage side by side."""
    from rich.console import Console
    from rich.table import Table

    stages = [(stage, _time(time)) for stage, time in seconds.items()]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    empty = ("", "")
    for place in range(max(len(rows), len(stages))):
        table.add_row(
            *(rows[place] if place < len(rows) else empty), *(stages[place] if place < len(stages) else empty)
        )
    Console(highlight=False, width=120).print(table)


def _size(amount: float) -> str:
    """Write a number of bytes for people.

    >>> _size(5e13), _size(1_234_000), _size(0)
    ('50.0 TB', '1.2 MB', '0 bytes')
    """
    if amount < 1e12:
        return show.size(amount)
    return f"{amount / 1e12:,.1f} TB" if amount < 1e15 else f"{amount / 1e15:,.1f} PB"


def _time(seconds: float) -> str:
    """Write a time for people.

    >>> _time(0.034), _time(75), _time(8000), _time(200_000)
    ('0.03 s', '1 min 15 s', '2 h 13 min', '2 d 7 h')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"
