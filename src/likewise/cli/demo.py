"""`likewise demo`: near-duplicates among the Python source files on this machine, real data without a download."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

SHOWN = 8
"""Removals that are printed as examples."""


@click.command(
    epilog="""\b
Examples:
  likewise demo
  likewise demo --out demo/        # and write the tables and a report: demo/report.html"""
)
@click.option("--out", metavar="DIR", type=shared.TARGET, help="Folder for the result.")
@shared.report
@shared.threads
@shared.quiet
def demo(out: Path | None, threads: int | None) -> None:
    """Find near-duplicates among the Python files on this machine: its library and all installed packages."""
    import likewise
    from likewise.jobs.result import Dedup

    if out:
        Dedup.check_folder(out)
    files, roots = python_files()
    silent = out is not None and show.quiet()
    if not silent:
        click.echo(f"{show.count(len(files), 'Python file')} below " + ", ".join(str(root) for root in roots))
    show.announce_compilation()
    with show.progress() as observer:
        result = likewise.dedup(files, on_error="skip", encoding_errors="replace", threads=threads, progress=observer)
        if out:
            result.save(out)
    if silent:
        return
    stats = result.stats
    for line in show.opening(stats):
        show.say(line)
    counts = stats["counts"]
    click.echo(
        f"{show.count(counts['identical'], 'file is a copy', 'files are copies')} and "
        f"{show.count(counts['near'], 'a near-copy', 'near-copies')} of another; "
        f"{show.count(counts['clusters'], 'cluster')}, the largest of {stats['details']['largest_cluster']:,}"
    )
    click.echo("\nsome near-duplicates, each with the file that was kept:")
    for row in examples(result.removed):
        show.say(f"  {row['similarity']:.3f}  {shorten(row['id'], roots)}")
        show.say(f"         {shorten(row['kept_id'], roots)}")
    click.echo()
    where = out or "nothing written (use --out DIR to write the tables)"
    show.at_the_end(stats, where, show.page(where))


def python_files() -> tuple[list[Path], list[Path]]:
    """Return the .py files of the standard library and of the installed packages, and the folders they are in."""
    paths = sysconfig.get_paths()
    candidates = [Path(paths[name]) for name in ("stdlib", "purelib", "platlib")]
    candidates += [Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    roots: list[Path] = []
    for folder in sorted({path.resolve() for path in candidates if path.is_dir()}, key=lambda path: len(path.parts)):
        if not any(folder.is_relative_to(root) for root in roots):
            roots.append(folder)
    return sorted({path for root in roots for path in root.rglob("*.py") if path.is_file()}), roots


def examples(removed: Any) -> list[dict[str, Any]]:
    """Choose near-duplicates that are not copies, spread over the similarities."""
    import pyarrow.compute as pc

    near = removed.filter(pc.and_(pc.equal(removed["kind"], "near"), pc.less(removed["similarity"], 1.0)))
    near = near.sort_by([("similarity", "descending"), ("id", "ascending")])
    step = max(1, near.num_rows // SHOWN)
    rows: list[dict[str, Any]] = near.take(list(range(0, near.num_rows, step))[:SHOWN]).to_pylist()
    return rows


def shorten(path: str, roots: list[Path]) -> str:
    """Write a path relative to the folder it was found under."""
    for root in roots:
        if Path(path).is_relative_to(root):
            return str(Path(path).relative_to(root))
    return path
