"""Run one exact join: `python exact_run.py TOOL SETS --threshold T ...`, in the environment of the tool.

SETS holds a JSON list of distinct tokens on each line. They are read into Python lists; then this prints a line, and
the clock runs from the lists to the pairs. The second line is JSON: the seconds, the pairs and their checksum, the
memory of the process before the join and its peak since. Nothing but the tools' own needs is imported.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

Lists = list[list[Any]]
ROUNDING = 1e-9
WARMING = 17_000
"""Enough sets of two for several threads to have work."""


def likewise(sets: Lists, asked: argparse.Namespace) -> Callable[[], Any]:
    """`exact.pairs`, to the Arrow table. Small joins before it load (the first time: compile) its kernels."""
    from likewise import exact

    # the tokens of lists are hashed with as many threads as there are cores to use, whatever `threads` says
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked.threads])
    numbers = [[1, 2, 3], [1, 2, 3], [2, 3], *([4 * row, 4 * row + 1] for row in range(WARMING))]
    for some in (numbers, numbers[1:], [[str(number) for number in one] for one in numbers]):
        exact.pairs(some, 0.5, threads=asked.threads)
    return lambda: exact.pairs(sets, asked.threshold, threads=asked.threads)


def explained(sets: Lists, threshold: float) -> list[dict[str, Any]]:
    """What `exact.explain` says of each filter."""
    from likewise import exact

    rows: list[dict[str, Any]] = exact.explain(sets, threshold).to_pylist()
    return rows


def set_similarity_search(sets: Lists, asked: argparse.Namespace) -> Callable[[], Any]:
    """`all_pairs`, to a list of its tuples."""
    from SetSimilaritySearch import all_pairs  # type: ignore[import-not-found]

    return lambda: list(all_pairs(sets, similarity_func_name="jaccard", similarity_threshold=asked.threshold))


def py_stringsimjoin(sets: Lists, asked: argparse.Namespace) -> Callable[[], Any]:
    """`jaccard_join` of a table with itself, to arrays of i and j, i < j.

    It is made for strings: with --strings it gets the tokens joined by blanks, as shipped. Else its tokenizer hands on
    the list that stands in the table. Pairs exactly at the threshold are lost to rounding, so it is asked for a little
    less and what lies below is taken out again.
    """
    import pandas as pd
    from py_stringmatching import WhitespaceTokenizer  # type: ignore[import-not-found]
    from py_stringmatching.tokenizer.tokenizer import Tokenizer  # type: ignore[import-not-found]
    from py_stringsimjoin import jaccard_join  # type: ignore[import-not-found]

    class Ready(Tokenizer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(return_set=True)

        def tokenize(self, tokens: list[Any]) -> list[Any]:
            return tokens

    def join() -> tuple[Any, Any]:
        tokenizer = WhitespaceTokenizer(return_set=True) if asked.strings else Ready()
        column = [" ".join(map(str, tokens)) for tokens in sets] if asked.strings else sets
        table = pd.DataFrame({"id": np.arange(len(sets)), "tokens": column})
        found = jaccard_join(
            *(table, table, "id", "id", "tokens", "tokens", tokenizer, asked.threshold - ROUNDING),
            allow_empty=False,
            n_jobs=asked.threads,
            show_progress=False,
        )
        left, right = found["l_id"].to_numpy(np.int64), found["r_id"].to_numpy(np.int64)
        wanted = (left < right) & (found["_sim_score"].to_numpy(float) >= asked.threshold)
        return left[wanted], right[wanted]

    return join


TOOLS = {
    "likewise": likewise,
    "SetSimilaritySearch": set_similarity_search,
    "py_stringsimjoin": py_stringsimjoin,
}


def rows_of(tool: str, answer: Any) -> tuple[Any, Any]:
    """The rows of a tool's pairs, as arrays of whole numbers."""
    if tool == "likewise":
        return answer.column("id_a").to_numpy(), answer.column("id_b").to_numpy()
    if tool == "SetSimilaritySearch":
        return np.array([pair[0] for pair in answer], np.int64), np.array([pair[1] for pair in answer], np.int64)
    left, right = answer
    return left, right


def checksum(left: Any, right: Any) -> str:
    """A number for a collection of pairs in any order: the sum of their hashes (SplitMix64's finaliser)."""
    low, high = (side.astype(np.uint64) for side in (np.minimum(left, right), np.maximum(left, right)))
    state = (low << np.uint64(32) | high) + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return f"{int((state ^ (state >> np.uint64(31))).sum(dtype=np.uint64)):016x}"


def megabytes(field: str) -> float:
    """A line of the system's record of this process (Linux): VmRSS, the memory now, or VmHWM, its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024 / 1e6


def forget_peak() -> None:
    """Let the peak begin anew, so that reading the sets is no part of it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def arguments() -> argparse.Namespace:
    """The arguments of this run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("sets", type=Path)
    parser.add_argument("--first", type=int, help="take so many sets only")
    parser.add_argument("--threshold", type=float, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--strings", action="store_true")
    parser.add_argument("--explain", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Read, join, report."""
    asked = arguments()
    with asked.sets.open() as lines:
        sets = [json.loads(line) for line in islice(lines, asked.first)]
    if asked.explain:
        print("ready", flush=True)
        print(json.dumps({"explain": explained(sets, asked.threshold)}))
        return
    join = TOOLS[asked.tool](sets, asked)
    forget_peak()
    before = megabytes("VmRSS")
    print("ready", flush=True)
    begun = time.perf_counter()
    answer = join()
    seconds = time.perf_counter() - begun
    peak = megabytes("VmHWM")
    more = {}
    if asked.tool == "likewise":
        stats = json.loads(answer.schema.metadata[b"likewise"])
        more = {"counts": stats["counts"], "phases": stats["seconds"]}
    left, right = rows_of(asked.tool, answer)
    report = {"seconds": seconds, "sets": len(sets), "pairs": len(left), "checksum": checksum(left, right)}
    print(json.dumps({**report, "before_mb": before, "peak_mb": peak, **more}))


if __name__ == "__main__":
    main()
