"""Inputs of every format, made of documents whose lengths vary."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def documents(count: int, seed: int = 0, mean: int = 60) -> list[str]:
    """Unrelated documents whose numbers of words vary: from a fifth of the mean on, and exponentially."""
    return list(_documents(count, seed, mean))


@cache
def _documents(count: int, seed: int, mean: int) -> list[str]:
    random = np.random.default_rng(seed)
    lengths = (mean / 5 + random.exponential(0.8 * mean, count)).astype(int)
    words = random.integers(0, 30_000, int(lengths.sum()))
    ends = np.cumsum(lengths)
    return [
        " ".join(f"w{word}" for word in words[stop - size : stop])
        for stop, size in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]


def jsonl(texts: list[str]) -> bytes:
    return "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)).encode()


def as_csv(texts: list[str], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["id", "text"])
    # every third document has quotes and line feeds, as text does
    writer.writerows((i, text.replace(" ", '\n"x", ', 3) if i % 3 == 0 else text) for i, text in enumerate(texts))
    return out.getvalue().encode()


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data))


def write_arrow(path: Path, texts: list[str], stream: bool, compression: str | None = None) -> None:
    table = pa.table({"id": range(len(texts)), "text": texts})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=500)


def make(folder: Path, name: str, texts: list[str]) -> Path:
    """Write documents in the format that a name tells."""
    path = folder / name
    table = pa.table({"id": range(len(texts)), "text": texts})
    if name == "folder":
        path.mkdir()
        for i, text in enumerate(texts):
            (path / f"{i:06}.txt").write_text(text)
    elif name == "a.parquet":
        pq.write_table(table, path, row_group_size=700)
    elif name == "one-group.parquet":
        pq.write_table(table, path, compression="zstd")
    elif name == "file.arrow":
        write_arrow(path, texts, stream=False)
    elif name == "packed.feather":
        write_arrow(path, texts, stream=False, compression="zstd")
    elif name == "stream.arrow":
        write_arrow(path, texts, stream=True)
    else:
        whole = as_csv(texts) if ".csv" in name else as_csv(texts, "\t") if ".tsv" in name else jsonl(texts)
        if name.endswith("lines.txt"):
            whole = "\n".join(texts).encode()
        packers: dict[str, Callable[[bytes], bytes]] = {
            ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lambda data: lzma.compress(data, preset=0), ".zst": zstd,
        }  # fmt: skip
        path.write_bytes(packers.get(path.suffix, lambda data: data)(whole))
    return path


def write_for_applications(folder: Path) -> None:
    """Write an input for each command that does not take documents: vectors, people, URLs, ratings, fingerprints."""
    chance = np.random.default_rng(1)
    np.save(folder / "vectors.npy", chance.normal(size=(60, 8)).astype(np.float32))
    names = ["ann lee", "bob ray", "cy fox"] * 7
    people = [f"p{i},{name},{i} oak street,19{50 + i}-01-02" for i, name in enumerate(names)]
    urls = [f"http://{host}/docs/word{i}/page.html" for host in ("a.org", "b.net") for i in range(40)]
    ratings = [f"u{user},i{item},{1 + (user + item) % 5}" for user in range(9) for item in range(user % 4, 9)]
    points = chance.uniform(0, [300, 300, 6.2], (120, 3)).tolist()
    prints = [f"f{i // 30},{x},{y},{angle}" for i, (x, y, angle) in enumerate(points)]
    for name, lines in {
        "people.csv": ["id,name,address,born", *people],
        "others.csv": ["id,name,address,born", *people[5:]],
        "urls.txt": urls,
        "ratings.csv": ["user,item,rating", *ratings],
        "prints.csv": ["print,x,y,angle", *prints],
    }.items():
        (folder / name).write_text("\n".join(lines) + "\n")
