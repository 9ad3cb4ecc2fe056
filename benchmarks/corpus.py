"""Make the corpora the benchmarks run on, as Parquet files with the columns id, path and text.

python benchmarks/corpus.py                      the text of a big Python environment, 500 MB
python benchmarks/corpus.py --megabytes 20       the same, smaller
python benchmarks/corpus.py --newsgroups FILE    a Parquet file of your own, ids made row numbers
python benchmarks/corpus.py --template 100000    documents that share half of their words
python benchmarks/corpus.py --identical 100000   copies of one document
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = Path(__file__).parent
DATA = HERE / ".data"
SUFFIXES = (".py", ".md", ".txt", ".rst")
LARGEST_FILE = 5_000_000
ROWS_IN_GROUP = 10_000
SCHEMA = pa.schema([("id", pa.int64()), ("path", pa.string()), ("text", pa.string())])

Document = tuple[str, str]
"""A path and a text."""


class Member(NamedTuple):
    """A text file inside a wheel."""

    path: str
    wheel: Path
    name: str


def environment(megabytes: int, folder: Path = DATA) -> Path:
    """Every .py, .md, .txt and .rst file of the packages of environment.txt, in the order of their paths."""
    target = folder / f"environment-{megabytes}.parquet"
    if target.exists():
        return target
    members, skipped = _select(_wheels(folder / "wheels"), megabytes * 1_000_000)
    rows = write(((member.path, _read(member)) for member in members), target)
    reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
    print(f"{target.name}: {rows:,} documents; skipped: {reasons}")
    return target


def newsgroups(source: Path, folder: Path = DATA) -> Path:
    """A Parquet file with a text column, its ids replaced by row numbers."""
    target = folder / f"{source.stem}.parquet"
    if not target.exists():
        write(_rows(source), target)
    return target


def template(documents: int, folder: Path = DATA, share: int = 50) -> Path:
    """Documents of 200 words: a share (in per cent) that all of them have, in one piece, and the rest random.

    With more than half shared, every fiftieth document is a copy of the one before it, but for the last three words.
    """
    target = folder / (f"template-{documents}.parquet" if share == 50 else f"template-{share}-{documents}.parquet")
    if not target.exists():
        shared = list(_words(random.Random(0), 2 * share))
        write(((f"template/{i}", text) for i, text in enumerate(_filled(shared, documents, share > 50))), target)
    return target


def _filled(shared: list[str], documents: int, copies: bool) -> Iterator[str]:
    """Documents that begin with the shared words."""
    chance = random.Random(1)
    own: list[str] = []
    for i in range(documents):
        if copies and i % 50 == 49:
            own[-3:] = _words(chance, 3)
        else:
            own = list(_words(chance, 200 - len(shared)))
        yield " ".join([*shared, *own])


def identical(documents: int, folder: Path = DATA) -> Path:
    """Copies of one document of 200 words."""
    target = folder / f"identical-{documents}.parquet"
    if not target.exists():
        text = " ".join(_words(random.Random(0), 200))
        write(((f"identical/{i}", text) for i in range(documents)), target)
    return target


def write(documents: Iterable[Document], target: Path, compression: str = "zstd") -> int:
    """Write documents one row group at a time; the number of rows."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    rows, stream = 0, iter(documents)
    with pq.ParquetWriter(unfinished, SCHEMA, compression=compression) as writer:
        while group := list(islice(stream, ROWS_IN_GROUP)):
            ids = pa.array(range(rows, rows + len(group)), pa.int64())
            paths, texts = (pa.array(column, pa.string()) for column in zip(*group, strict=True))
            writer.write_table(pa.table([ids, paths, texts], schema=SCHEMA), row_group_size=ROWS_IN_GROUP)
            rows += len(group)
    unfinished.rename(target)
    return rows


def size(corpus: Path, column: str = "text") -> tuple[int, float]:
    """The number of documents and the megabytes of their text."""
    # without pre-buffering, which would keep the whole compressed column in memory
    batches = pq.ParquetFile(corpus, pre_buffer=False).iter_batches(columns=[column])
    sizes = [(batch.num_rows, pc.sum(pc.binary_length(batch.column(0))).as_py()) for batch in batches]
    return sum(rows for rows, _ in sizes), sum(length for _, length in sizes) / 1e6


def _wheels(folder: Path) -> Iterator[tuple[str, Path]]:
    """The name and the wheel of each package of environment.txt, downloaded when it is its turn."""
    folder.mkdir(parents=True, exist_ok=True)
    for line in (HERE / "environment.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, version = line.split("==")
        pattern = f"{name.replace('-', '_')}-{version}-*.whl"
        if not any(folder.glob(pattern)):
            download = ["pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
            subprocess.run([sys.executable, "-m", *download, line], check=True)
        yield name, min(folder.glob(pattern))


def _select(wheels: Iterable[tuple[str, Path]], enough: int) -> tuple[list[Member], dict[str, int]]:
    """Text files up to `enough` bytes in all, sorted by path, and how many were skipped and why."""
    members: list[Member] = []
    skipped = {f"over {LARGEST_FILE / 1e6:g} MB": 0, "not UTF-8": 0}
    total = 0
    for package, wheel in wheels:
        with ZipFile(wheel) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.filename):
                if total >= enough:
                    return sorted(members), skipped
                if not info.filename.endswith(SUFFIXES):
                    continue
                if info.file_size > LARGEST_FILE:
                    skipped[f"over {LARGEST_FILE / 1e6:g} MB"] += 1
                elif not _is_utf8(archive.read(info)):
                    skipped["not UTF-8"] += 1
                else:
                    members.append(Member(f"{package}/{info.filename}", wheel, info.filename))
                    total += info.file_size
    raise SystemExit(f"environment.txt holds only {total / 1e6:.0f} MB of text: ask for less, or add packages.")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_archives: dict[Path, ZipFile] = {}


def _read(member: Member) -> str:
    if member.wheel not in _archives:
        _archives[member.wheel] = ZipFile(member.wheel)
    return _archives[member.wheel].read(member.name).decode()


def _rows(source: Path) -> Iterator[Document]:
    row = 0
    for batch in pq.ParquetFile(source).iter_batches(columns=["text"]):
        for text in batch.column(0).to_pylist():
            yield f"{source.stem}/{row}", text
            row += 1


def _words(chance: random.Random, count: int) -> list[str]:
    return [f"w{number}" for number in chance.choices(range(1_000_000), k=count)]


def main() -> None:
    """Make the corpora asked for and say where they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, metavar="N", help="size of the environment corpus (500)")
    parser.add_argument("--newsgroups", type=Path, metavar="PATH")
    parser.add_argument("--template", type=int, metavar="N")
    parser.add_argument("--identical", type=int, metavar="N")
    asked = parser.parse_args()
    made = [
        make(value)
        for make, value in (
            (newsgroups, asked.newsgroups),
            (template, asked.template),
            (identical, asked.identical),
            (environment, asked.megabytes),
        )
        if value is not None
    ]
    for path in made or [environment(500)]:
        documents, megabytes = size(path)
        print(f"{path.name}: {documents:,} documents, {megabytes:,.0f} MB of text")


if __name__ == "__main__":
    main()
