"""Decontamination: how fast a corpus is searched for the items of test sets, which planted items are found, in how much
memory.

python benchmarks/decontaminate.py                                        a gigabyte, 100,000 items
python benchmarks/decontaminate.py --megabytes 100 --items 10000 --action drop

The corpus is made of words drawn by Zipf's law, in documents of about 300 words, with frequent phrases in a tenth of
them. Of the items, of 8 to 60 words drawn in the same way, every fiftieth is planted in one
document: its lines wrapped anew, its case and its punctuation changed. A hit is right if it is planted; others can only
be chance. Beside it stands the plain n-gram check of other tools, in Python: the set of all 13-grams of words of the
tests, and every 13-gram of a document looked up in it; and datatrove's n-gram filter, with runs of 8 words, on the
first part of the same documents and for the same items.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import likewise
from likewise.base.memory import peak_memory

WORDS_A_DOCUMENT, VOCABULARY, EVERY = 300, 200_000, 50
PHRASES = ("click here to read the rest of this article in full", "which of the following statements is true about it")
BETWEEN = (" ", "\n", "  ", ", ", " — ", ".\n", "; ")
PLAIN_MEGABYTES = 20
"""Text that the plain check in Python reads: it is too slow for more."""


def spelled(numbers: Any) -> list[str]:
    """Words for numbers, the frequent ones short; with a blank they take 5.5 bytes, as in English."""
    letters = "etaoi"
    out = []
    for number in numbers:
        word, rest = "", int(number) + 1
        while rest:
            rest, place = divmod(rest, len(letters))
            word += letters[place]
        out.append(word + "q" * (len(word) < 2))
    return out


def drawn(rng: np.random.Generator, count: int) -> Any:
    """Numbers of words by Zipf's law."""
    return np.minimum((VOCABULARY ** rng.random(count)).astype(np.int64), VOCABULARY - 1)


def wrapped(rnd: random.Random, item: str) -> str:
    """An item as it may be written elsewhere."""
    words = [rnd.choice((str.upper, str.lower, str.title))(word) for word in item.split()]
    return "".join(word + rnd.choice(BETWEEN) for word in words)


def made(folder: Path, megabytes: int, items: int) -> dict[int, int]:
    """Write corpus.parquet and tests.jsonl; return the document in which each planted item is."""
    rng, rnd = np.random.default_rng(1), random.Random(1)
    words = np.array(spelled(range(VOCABULARY)), object)
    questions = [" ".join(words[drawn(rng, rnd.randint(8, 60))]) for _ in range(items)]
    with open(folder / "tests.jsonl", "w", encoding="utf-8") as out:
        for question in questions:
            out.write(json.dumps({"question": question}) + "\n")
    planted: dict[int, int] = {}
    left = megabytes * 1_000_000
    queue, row = list(range(0, items, EVERY)), 0
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    step = max(1, megabytes * 1_000_000 // (WORDS_A_DOCUMENT * 5) // (len(queue) + 1))
    with pq.ParquetWriter(folder / "corpus.parquet", schema, compression="snappy") as writer:
        while left > 0:
            texts = []
            for _ in range(10_000):
                text = " ".join(words[drawn(rng, rnd.randint(1, 2 * WORDS_A_DOCUMENT))])
                if rnd.random() < 0.1:
                    text += ". " + rnd.choice(PHRASES)
                if queue and row % step == 0:
                    number = queue.pop()
                    planted[number] = row
                    place = text.find(" ", rnd.randrange(len(text) + 1))
                    text = f"{text[:place]} {wrapped(rnd, questions[number])} {text[place:]}"
                texts.append(text)
                left -= len(text)
                row += 1
                if left <= 0:
                    break
            ids = range(row - len(texts), row)
            writer.write_table(pa.table({"id": ids, "text": texts}, schema), row_group_size=10_000)
    return planted


def plain_check(folder: Path, n: int = 13) -> dict[str, Any]:
    """The n-gram check of other tools, in plain Python, on the first megabytes."""
    split = re.compile(r"\w+").findall
    grams: set[str] = set()
    for line in (folder / "tests.jsonl").read_text(encoding="utf-8").splitlines():
        words = split(json.loads(line)["question"].lower())
        grams.update(" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    begun, read, hits = time.perf_counter(), 0, 0
    for batch in pq.ParquetFile(folder / "corpus.parquet").iter_batches(1000, columns=["text"]):
        for text in batch.column(0).to_pylist():
            words = split(text.lower())
            hits += any(" ".join(words[i : i + n]) in grams for i in range(len(words) - n + 1))
            read += len(text)
        if read > PLAIN_MEGABYTES * 1_000_000:
            break
    seconds = time.perf_counter() - begun
    return {"megabytes": round(read / 1e6, 1), "mb_per_second": round(read / 1e6 / seconds, 1), "documents_hit": hits}


def peer(folder: Path, megabytes: int, planted: dict[int, int]) -> dict[str, Any]:
    """datatrove on the first part of the documents: which of those with a planted item it removes, and which others."""
    from units import datatrove, first_part

    part, size, rows = first_part(folder, megabytes)
    said = datatrove("datatrove_decont_run.py", str(part), str(folder / "tests.jsonl"), str(folder / "datatrove"), "8")
    right, removed = {row for row in planted.values() if row < rows}, set(said.pop("removed", ()))
    found = {"planted": len(right), "found": len(right & removed), "not_planted": len(removed - right)}
    return {"megabytes": round(size, 1), "documents": rows, **said, **(found if "seconds" in said else {})}


def measured(
    megabytes: int, items: int, action: str, threads: int | None, memory: str | None, peer_megabytes: int
) -> dict[str, Any]:
    """Make a corpus, search it, and compare the hits with what was planted."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        planted = made(folder, megabytes, items)
        likewise.decontaminate(["a b c d e f g h i"], tests=["a b c d e f g h i"])  # compiled beforehand
        begun, worked = time.perf_counter(), time.process_time()
        result = likewise.decontaminate(
            folder / "corpus.parquet", tests=folder / "tests.jsonl", id="id", action=action, threads=threads,
            memory=memory, out=folder / "clean",
        )  # fmt: skip
        seconds, worked = time.perf_counter() - begun, time.process_time() - worked
        whole = {(int(row["item"]), row["id"]) for row in result.hits.to_pylist()}
        stats = result.stats
        size = stats["counts"]["bytes"] / 1e6
        right = set(planted.items())
        return {
            "megabytes": round(size, 1),
            "documents": stats["counts"]["documents"],
            "items": items,
            "action": action,
            "seconds": round(seconds, 2),
            "stages": stats["seconds"],
            "cpu_seconds": round(worked, 2),
            "mb_per_second": round(size / seconds, 1),
            "mb_per_cpu_second": round(size / worked, 1),
            "search_mb_per_second": round(size / stats["seconds"]["search"], 1),
            "planted": len(right),
            "recall": round(len(right & whole) / len(right), 4) if right else None,
            "not_planted": len(whole - right),
            "peak_memory_mb": round((peak_memory() or 0) / 1e6),
            "plain_13_grams": plain_check(folder),
            "datatrove": peer(folder, peer_megabytes, planted) if peer_megabytes else None,
        }


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--action", default="report", choices=["drop", "cut", "report"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--memory")
    parser.add_argument("--peer-megabytes", type=int, default=20)
    parser.add_argument("--out", type=Path, help="also write the row to this file")
    given = parser.parse_args()
    row = measured(given.megabytes, given.items, given.action, given.threads, given.memory, given.peer_megabytes)
    print(json.dumps(row, indent=2))
    if given.out:
        given.out.write_text(json.dumps(row, indent=2) + "\n")


if __name__ == "__main__":
    main()
