"""How long a user waits before anything happens: help, two documents, the first run on a machine.

    python benchmarks/startup.py                                this environment
    python benchmarks/startup.py --python fresh/bin/python      another one, with the wheel
    python benchmarks/startup.py --python … --baseline          the kernels of its wheel beside native ones

Every command runs three times in a process of its own. Wall seconds are what the user waits; CPU seconds also count
what a second process compiles. The goal for a warm run is 1.3 times the import of Numba and PyArrow and half a second.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIMES = 3
DOCUMENTS = '{"id": "a", "text": "a rose is a rose is a rose"}\n{"id": "b", "text": "A rose is a rose is a rose!"}\n'
IMPORTS = "import numba, pyarrow"

KERNELS = """
import time
import numpy as np
import likewise
from likewise.kernels.cache import NATIVE, shipped
from os import environ
assert (shipped() is None) == (NATIVE in environ), "this environment has no wheel with machine code"
generator = np.random.default_rng(1)
words = np.array([f"w{i}" for i in range(20_000)])
texts = [" ".join(words[generator.zipf(1.3, 400) % 20_000]) for _ in range(4000)]
texts += [text + " end" for text in texts[:1000]]
vectors = generator.standard_normal((10_000, 128)).astype(np.float32)
names = words[generator.integers(0, 20_000, (5000, 2))]
people = {"name": [" ".join(name) for name in names]}
people["name"] += people["name"][:1000]
works = {
    "dedup, lsh": lambda: likewise.dedup(texts, method="lsh", threads=1),
    "dedup, exact": lambda: likewise.dedup(texts, method="exact", threshold=0.9, threads=1),
    "pairs of vectors": lambda: likewise.pairs(vectors, measure="angle", within=40, threads=1),
    "nearest": lambda: likewise.nearest(vectors, 10, measure="angle", threads=1),
    "passages": lambda: likewise.passages(texts[:50], texts[3000:], threads=1),
    "link": lambda: likewise.link(people),
}
for name, work in works.items():
    work()
    best = []
    for _ in range(3):
        begun = time.process_time()
        work()
        best.append(time.process_time() - begun)
    print(f"{name}\\t{min(best):.3f}")
"""


def timed(command: list[str], **environment: str) -> tuple[float, float]:
    """Run a command; return its wall and its CPU seconds, those of its processes included."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(name: str, rounds: list[tuple[float, float]]) -> float:
    """Print the seconds of some rounds of a command; return the median of the wall seconds."""
    walls, cpus = zip(*rounds, strict=True)
    print(f"{name:<34} wall {' '.join(f'{one:6.2f}' for one in walls)}   CPU {' '.join(f'{one:6.2f}' for one in cpus)}")
    return float(statistics.median(walls))


def start(python: str) -> None:
    """Print how long the first and the next command take."""
    likewise = [python, "-c", "import sys; sys.argv[0] = 'likewise'; from likewise.cli import main; main()"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "two.jsonl").write_text(DOCUMENTS)
        job = [*likewise, "dedup", str(folder / "two.jsonl"), "--out", str(folder / "out")]
        caches = [str(folder / f"cache{i}") for i in range(TIMES)]
        row("dedup of two, first run", [timed(job, NUMBA_CACHE_DIR=cache) for cache in caches])
        rounds = [(timed(job, NUMBA_CACHE_DIR=caches[0]), timed([python, "-c", IMPORTS])) for _ in range(2 * TIMES + 1)]
        warm = row("dedup of two, warm", [mine for mine, _ in rounds])
        imports = row(IMPORTS, [theirs for _, theirs in rounds])
        row("likewise --help", [timed([*likewise, "--help"]) for _ in range(TIMES)])
        print(f"warm, and the goal 1.3 × imports + 0.5 s: {warm:.2f} s, {1.3 * imports + 0.5:.2f} s")


def baseline(python: str) -> None:
    """Print what the code that came with a wheel costs beside code for this very processor, in turns."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(TIMES):
        for mode, chosen in {"native": {"LIKEWISE_NATIVE": "1"}, "wheel": {}}.items():
            environment = {**os.environ, **chosen}
            done = subprocess.run([python, "-c", KERNELS], env=environment, check=True, capture_output=True)
            for line in done.stdout.decode().splitlines():
                name, seconds = line.split("\t")
                known = best.setdefault(name, {})
                known[mode] = min(known.get(mode, 1e9), float(seconds))
    for name, known in best.items():
        native, wheel = known["native"], known["wheel"]
        print(f"{name:<20} native {native:.3f} s, wheel {wheel:.3f} s: {wheel / native:.3f} times")


def main() -> None:
    """Print the times."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--python", default=sys.executable, help="the environment to try")
    options.add_argument("--baseline", action="store_true", help="compare the kernels of a wheel with native ones")
    chosen = options.parse_args()
    if chosen.baseline:
        baseline(chosen.python)
    else:
        start(chosen.python)


if __name__ == "__main__":
    main()
