"""`likewise plan`."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import options as shared
from likewise.cli import show
from likewise.errors import ParameterError

if TYPE_CHECKING:
    from likewise.jobs.plan import Forecast

ONLY_INPUT = (
    "text", "id", "method", "threads", "seed", "sketch", "ignore_common", "certify", "on_error", "encoding_errors",
    "lines", "html", "plain", "hidden", "memory", "spill",
)  # fmt: skip
FOR_LINK = ("inputs", "link", "records", "mean_bytes", "threads", "memory", "spill", "calibrate", "as_json")
"""What can be given with --link."""
ONLY_CLUSTER = ("documents", "mean_bytes", "machines", "cores_per_machine", "memory_per_machine")


@click.command(
    epilog="""\b
Examples:
  likewise plan corpus.parquet
  likewise plan 'crawl/*.jsonl.gz' --text body --id url --threshold 0.8 --memory 4GiB
  likewise plan corpus.parquet --method lsh --json
  likewise plan --documents 1e10 --mean-bytes 5000 --machines 1000 --cores-per-machine 16
  likewise plan corpus.parquet --method lsh --engine spark --machines 4 --cores-per-machine 8
  likewise plan --link people.parquet --memory 8GiB
  likewise plan --link --records 1e7

With INPUT, a sample of a few megabytes from all over it is read. The options are those of dedup; the forecast says
which method the run will use. With --documents nothing is read: the forecast is computed for a cluster of machines
whose cores are as fast as this one's. With --link, the forecast is for link of one INPUT or of two, or of so many
--records; of the options, --threads, --memory and --spill count. The speed of this machine is measured once, in about
two seconds."""
)
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@shared.search
@click.option("--documents", type=float, metavar="N", help="Plan for a cluster instead: number of documents.")
@click.option("--mean-bytes", type=float, metavar="N", help="With --documents or --records: mean size of one in bytes.")
@click.option("--machines", type=float, metavar="N", help="With --documents or --engine spark: number of machines.")
@shared.whole("--cores-per-machine", 16, "With --documents or --engine spark: cores of each machine.", metavar="N")
@click.option("--memory-per-machine", metavar="SIZE", help="With --documents: memory of each machine.")
@shared.choice(
    "--engine", ["local", "spark"], "local", "spark: forecast time and shuffle of each step of the Spark engine."
)
@click.option("--link", is_flag=True, help="Plan for link: INPUT are one or two tables of records.")
@click.option("--records", type=float, metavar="N", help="With --link, in place of INPUT: number of records.")
@click.option("--calibrate", is_flag=True, help="Measure the speed of this machine again.")
@click.pass_context
def plan(context: click.Context, /, inputs: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Predict what a run of dedup or link will need: time, memory and disk, here or on a cluster.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV, WARC or text files, compressed or not, folders, globs.
    """
    if options.pop("link"):
        _plan_link(context, inputs, as_json, options)
        return
    if options.pop("records") is not None:
        raise ParameterError("--records is for --link; of documents, give --documents")
    on_spark = options.pop("engine") == "spark"
    free = ("cores_per_machine", "machines") if on_spark else ("cores_per_machine",)
    wants_cluster = any(options[name] is not None for name in ONLY_CLUSTER if name not in free)
    if bool(inputs) == wants_cluster:
        raise ParameterError("plan needs either INPUT, or --documents, --mean-bytes and --machines for a cluster")
    shared.take_sets(context, options)
    show.announce_compilation()
    _announce_measuring(options)
    found = (_for_input if inputs else _for_cluster)(context, inputs, options, on_spark)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
        return
    if inputs and not on_spark:
        _tell_run(found)
    else:
        _tell_cluster(found, on_spark)


def _plan_link(context: click.Context, inputs: tuple[str, ...], as_json: bool, options: dict[str, Any]) -> None:
    """Print the forecast of a run of link."""
    from likewise.io.read import Files
    from likewise.jobs.plan import plan_link

    for name, source in ((name, context.get_parameter_source(name)) for name in context.params):
        if name not in FOR_LINK and source == click.core.ParameterSource.COMMANDLINE:
            raise ParameterError(f"--{name.replace('_', '-')} has no effect on a plan with --link")
    if len(inputs) > 2:
        raise ParameterError("plan --link takes one INPUT or two, as link does; name several files by a glob")
    show.announce_compilation()
    _announce_measuring(options)
    settings = {name: options[name] for name in ("records", "mean_bytes", "threads", "memory", "spill", "calibrate")}
    found = plan_link(*(Files([one]) for one in inputs), **settings)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
        return
    about, memory, disk = "" if found.exact else "about ", show.size(found.memory), show.size(found.disk)
    rows = [
        ("records", f"{about}{found.records:,} of {show.size(found.record_bytes)}"),
        ("columns", f"{found.fields}"),
        ("candidate pairs", f"{found.candidates:,}"),
        ("memory", f"{memory}, of {show.size(found.budget)} allowed"),
        ("spilled to disk", show.size(found.spill)),
        ("disk", f"{disk}, of which the result {show.size(found.answer)}"),
    ]
    _print(rows, found.seconds)
    for note in found.notes:
        show.say(f"note: {note}")
    threads = show.count(found.threads, "thread")
    click.echo(f"about {_time(found.total)} with {threads}, {memory} of memory, {disk} of disk")


def _announce_measuring(options: dict[str, Any]) -> None:
    """Say so when the machine must be measured."""
    from likewise.base import checks
    from likewise.jobs.plan import Machine

    if show.quiet():
        return
    if options["calibrate"] or not Machine.is_known(checks.threads("plan", options["threads"])):
        click.echo("measuring this machine (once, about three seconds) …", err=True)


def _for_input(context: click.Context, inputs: tuple[str, ...], options: dict[str, Any], on_spark: bool) -> Any:
    """Return the forecast of a run over an input, here or on Spark."""
    import likewise
    from likewise.base import checks
    from likewise.io.read import Files
    from likewise.jobs.plan import Machine, of_input

    settings = {name: value for name, value in options.items() if name not in ONLY_CLUSTER}
    found = likewise.plan(Files(list(inputs)), **settings)
    if not on_spark:
        return found
    machine = Machine.measured(checks.threads("plan", options["threads"]))
    given = context.get_parameter_source("cores_per_machine") == click.core.ParameterSource.COMMANDLINE
    cores, machines = options["cores_per_machine"] if given else None, options["machines"]
    return of_input(found, options["shingle"], machine, 1 if machines is None else machines, cores)


def _for_cluster(context: click.Context, inputs: tuple[str, ...], options: dict[str, Any], on_spark: bool) -> Any:
    """Return the forecast for so many documents on so many machines, with Spark or without."""
    from likewise.base import checks
    from likewise.jobs.plan import Machine, cluster, spark_cluster

    for name in ("documents", "mean_bytes", "machines"):
        if options[name] is None:
            raise ParameterError(f"plan for a cluster also needs --{name.replace('_', '-')}")
    for name in ONLY_INPUT:
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise ParameterError(f"--{name.replace('_', '-')} needs an INPUT, and --documents plans without one")
    machine = Machine.measured(checks.threads("plan", None), again=options.pop("calibrate"))
    settings = {name: value for name, value in options.items() if name not in ONLY_INPUT}
    return (spark_cluster if on_spark else cluster)(**settings, machine=machine)


def _tell_run(found: Forecast) -> None:
    about, memory, disk = "" if found.exact else "about ", show.size(found.memory), show.size(found.disk)
    rows = [
        ("documents", f"{about}{found.documents:,}, {show.size(found.text_bytes)} of text"),
        ("shingles", f"{found.shingles:,.0f} per document"),
        ("method", found.method if found.banding is None else f"{found.method}, {found.banding}"),
        ("copies", show.count(found.documents - found.different, "document")),
        ("removed", show.count(found.removed, "document")),
        ("candidate pairs", f"{found.candidates:,}"),
        ("memory", f"{memory}, of {show.size(found.budget)} allowed"),
        ("spilled to disk", show.size(found.spill)),
        ("disk", f"{disk}, of which the result {show.size(found.answer)}"),
    ]
    _print(rows, found.seconds)
    show.say(f"method: {found.method}, {found.why}")
    for note in found.notes:
        show.say(f"note: {note}")
    threads = show.count(found.threads, "thread")
    click.echo(f"about {_time(found.total)} with {threads}, {memory} of memory, {disk} of disk")


def _tell_cluster(found: Any, on_spark: bool) -> None:
    """Print the forecast for a cluster, with Spark or without."""
    shingles = ("shingles", f"{found.shingles:,.0f} per document")
    banding = ("banding", f"{found.banding} ({found.banding.slots} slots)")
    text, memory = show.size(found.text_bytes), show.size(found.memory)
    if on_spark:
        shuffled = {name: step.shuffle_bytes for name, step in found.steps.items() if step.shuffle_bytes}
        seconds = {name: step.seconds for name, step in found.steps.items()}
        rows = [("documents", f"{found.documents:,}, {text} of text"), shingles, banding]
        rows.append(("candidate pairs", f"{found.candidates:,}"))
        last = [("time of all cores", _time(found.core_seconds)), ("memory per machine", f"{memory}, beside Java's")]
    else:
        shuffled, seconds = found.shuffle, found.seconds
        signatures, keys = show.size(found.signature_bytes), show.size(found.key_bytes)
        rows = [
            ("documents", f"{found.documents:,} of {show.size(found.mean_bytes)}: {text} of text"),
            shingles,
            banding,
        ]
        rows.append(("signatures", f"{signatures}; band keys {keys}"))
        rows.append(("candidate pairs", f"{found.candidates:,}, of which similar {found.pairs:,}"))
        last = [("disk per machine", show.size(found.disk)), ("memory per machine", memory)]
    _print([*rows, *((f"shuffle: {kind}", show.size(amount)) for kind, amount in shuffled.items()), *last], seconds)
    for note in found.notes:
        click.echo(f"assumed: {note}")
    cores = f"{show.count(found.machines, 'machine')} of {show.count(found.cores, 'core')}"
    sent = f"{show.size(found.shuffle_bytes)} {'shuffled' if on_spark else 'through the network'}"
    click.echo(f"about {_time(found.total)} on {cores}, {sent}")


def _print(rows: list[tuple[str, str]], seconds: Any) -> None:
    """Print the numbers and the time of each stage side by side."""
    from rich.console import Console
    from rich.table import Table

    stages = [(stage, _time(spent)) for stage, spent in seconds.items()]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for left, right in zip_longest(rows, stages, fillvalue=("", "")):
        table.add_row(*left, *right)
    Console(highlight=False, width=120).print(table)


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
