"""Print how many files and functions of likewise a document, a vector, a record and an index query pass through.

    python tools/ways.py                      the tree that is installed
    PYTHONPATH=OTHER/src python tools/ways.py     another one, to compare

Each is done once before it is counted, so that what is only imported or compiled does not count; kernels are machine
code, and are not seen. --list also prints the functions, in the order in which they are entered.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import likewise

ROOT = str(Path(likewise.__file__).parent)


def entered(action: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the functions that an action enters, with their files, each once."""
    seen: dict[tuple[str, str], None] = {}

    def note(frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and not code.co_qualname.startswith("<module>"):
            seen[code.co_filename[len(ROOT) + 1 :], code.co_qualname] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


def ways(folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is done, each with a few made items."""
    texts = [f"the {number} quick brown foxes jump over the lazy dog near the river bank" for number in range(40)]
    lines = [json.dumps({"text": text}) for text in [*texts, *texts[:10]]]
    (folder / "documents.jsonl").write_text("\n".join(lines))
    names = ["anna smith", "ana smith", "bert jones", "berta jones", "carl young", "karl young"] * 8
    people = [{"id": number, "name": name, "town": f"town {number % 7}"} for number, name in enumerate(names)]
    (folder / "people.jsonl").write_text("\n".join(map(json.dumps, people)))
    vectors = np.random.default_rng(1).normal(size=(400, 16)).astype(np.float32)
    index = likewise.Index.create(folder / "index", shingle="words:3", threshold=0.7)
    index.add(range(len(texts)), texts)
    number = iter(range(9))
    return {
        "document": lambda: likewise.dedup(folder / "documents.jsonl", out=folder / f"out-{next(number)}"),
        "vector": lambda: likewise.pairs(vectors, measure="angle", within=30),
        "record": lambda: likewise.link(folder / "people.jsonl", id="id"),
        "index query": lambda: index.query(texts[0]),
    }


def main() -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the functions, too")
    listing = parser.parse_args().list
    with tempfile.TemporaryDirectory() as scratch:
        for name, action in ways(Path(scratch)).items():
            action()
            functions = entered(action)
            files = {file for file, _ in functions}
            print(f"{name:12} {len(files):4} files {len(functions):5} functions")
            if listing:
                print("\n".join(f"    {file}: {function}" for file, function in functions))


if __name__ == "__main__":
    main()
