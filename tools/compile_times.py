"""Measure what a command spends on compiling kernels: run it with an empty cache and list every kernel compiled.

    python tools/compile_times.py dedup docs.jsonl --id id --out out
    python tools/compile_times.py warmup

Everything is compiled in one process, although the command itself may share the work with a second one.

The arguments are those of `likewise`. The table gives, slowest first, the CPU seconds of each compilation without the
kernels compiled in its course, and the types it was compiled for. Kernels compiled for more than one list of types
are shown again below, with the arguments that differ: most of them can be avoided by passing the same types.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

WIDTH = 100
"""Signatures are cut to this many characters, unless LIKEWISE_WIDE is set."""


def record(words: list[str], out: str) -> None:
    """Run `likewise` with these arguments in this process and write down every compilation."""
    begun = time.perf_counter()
    from numba.core import event

    stack: list[list[Any]] = []
    done: list[dict[str, Any]] = []

    class Compilations(event.Listener):  # type: ignore[misc]
        def on_start(self, happening: Any) -> None:
            data = happening.data
            name = f"{data['dispatcher'].py_func.__module__}.{data['dispatcher'].py_func.__qualname__}"
            stack.append([name, [str(kind) for kind in data["args"]], time.thread_time(), 0.0])

        def on_end(self, happening: Any) -> None:
            name, kinds, start, inner = stack.pop()
            seconds = time.thread_time() - start
            if stack:
                stack[-1][3] += seconds
            done.append({"kernel": name, "types": kinds, "seconds": seconds - inner, "with_inner": seconds})

    event.register("numba:compile", Compilations())
    sys.argv = ["likewise", *words]
    try:
        from likewise.cli import run, warmup

        warmup.cores = lambda: 1  # one process compiles everything, and is measured
        run()
    finally:
        Path(out).write_text(json.dumps({"wall": time.perf_counter() - begun, "compilations": done}))


def table(measured: dict[str, Any]) -> None:
    """Print what was measured."""
    rows = measured["compilations"]
    cut = None if os.environ.get("LIKEWISE_WIDE") else WIDTH
    print(f"{'seconds':>8} {'with inner':>10}  kernel")
    for row in sorted(rows, key=lambda row: -row["seconds"]):
        name = row["kernel"].removeprefix("likewise.kernels.")
        print(f"{row['seconds']:8.2f} {row['with_inner']:10.2f}  {name} ({', '.join(row['types'])[:cut]})")
    total = sum(row["seconds"] for row in rows)
    print(f"{total:8.2f}             {len(rows)} compilations, of {measured['wall']:.1f} s in all")
    kinds = defaultdict(list)
    for row in rows:
        kinds[row["kernel"]].append(row)
    again = {name: found for name, found in kinds.items() if len(found) > 1}
    if again:
        print("\ncompiled more than once, with the arguments that differ:")
    for name, found in again.items():
        print(f"  {name.removeprefix('likewise.kernels.')}")
        for row in found:
            others = [other["types"] for other in found if other is not row]
            differing = [
                f"{i}: {kind}"
                for i, kind in enumerate(row["types"])
                if any(i >= len(other) or other[i] != kind for other in others)
            ]
            print(f"    {row['seconds']:6.2f}  {'; '.join(differing)[:cut]}")


def main() -> None:
    """Run a command with an empty cache, in a process of its own, and print the table."""
    words = sys.argv[1:]
    if words[:1] == ["--record"]:
        record(words[2:], words[1])
        return
    if not words:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="likewise-cold-") as cold:
        out = Path(cold) / "compilations.json"
        surroundings = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        surroundings["XDG_CACHE_HOME"] = cold
        subprocess.run([sys.executable, __file__, "--record", str(out), *words], env=surroundings, check=False)
        table(json.loads(out.read_text()))


if __name__ == "__main__":
    main()
