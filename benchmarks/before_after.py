"""Two versions of likewise on the same work, turn by turn: is the new one slower?

    python benchmarks/before_after.py BEFORE/src              against the tree this script is in
    python benchmarks/before_after.py BEFORE/src --parts text,exact --repeats 7

Every measurement is a fresh process; the two versions alternate, so that a noisy machine is noisy to both. A part is
prepared and its kernels are compiled by a first run that does not count. The table gives the best and the median of
each, and the ratio of the bests; the spread between the best and the median is the noise.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from corpus import environment

HERE = Path(__file__).parent
PREPARE = {
    "text": "import likewise",
    "exact": """
import numpy as np, likewise
chance = np.random.default_rng(1)
lists = [np.unique(chance.zipf(1.3, 130) % 300_000)[:100].tolist() for _ in range(60_000)]
lists += [one[:-3] + [-1 - number] for number, one in enumerate(lists[:6000])]
""",
    "vectors": """
import numpy as np, likewise
chance = np.random.default_rng(1)
table = chance.standard_normal((100_000, 128)).astype(np.float32)
table[50_000:60_000] = table[:10_000] + 0.1 * chance.standard_normal((10_000, 128)).astype(np.float32)
""",
    "link": """
import random, likewise
chance = random.Random(1)
names = ["".join(chance.choices("abcdefghiklmnoprstu", k=7)) for _ in range(4000)]
def person(number):
    day = f"19{chance.randrange(40, 99)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
    names_of = {"given": chance.choice(names[:300]), "surname": chance.choice(names)}
    return {**names_of, "born": day, "phone": str(chance.randrange(10**8))}
people = [person(number) for number in range(20_000)]
def typo(word):
    place = chance.randrange(len(word))
    return word[:place] + chance.choice("abcdefgh") + word[place + 1 :]
others = [{**one, "surname": typo(one["surname"])} for one in people]
columns = [{name: [one[name] for one in rows] for name in people[0]} for rows in (people, others)]
if not hasattr(likewise, "link"):
    from likewise.apps.entities import link
    likewise.link = link
""",
}
WORK = {
    "text": "likewise.dedup({corpus!r}, id='id', certify=0)",
    "exact": "likewise.exact.pairs(lists, 0.8)",
    "vectors": "likewise.pairs(table, measure='angle', within=10)",
    "link": "likewise.link(*columns)",
}
TIMED = """
import time
{prepare}
begun = time.perf_counter()
{work}
print(time.perf_counter() - begun)
"""


def seconds(source: Path, part: str, corpus: str) -> float:
    """Run one part with one version, in a fresh process."""
    code = TIMED.format(prepare=PREPARE[part], work=WORK[part].format(corpus=corpus))
    environ = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{source}, {part}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    """Print the table, and write it as JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the src folder of the other version")
    parser.add_argument("--parts", default=",".join(WORK), help="comma-separated (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=500, help="size of the text (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file")
    asked = parser.parse_args()
    versions = {"before": asked.before.absolute(), "after": HERE.parent / "src"}
    found = {}
    for part in asked.parts.split(","):
        corpus = str(environment(asked.megabytes)) if part == "text" else ""
        times: dict[str, list[float]] = {name: [] for name in versions}
        for turn in range(asked.repeats + 1):
            for name, source in versions.items():
                taken = seconds(source, part, corpus)
                if turn:
                    times[name].append(taken)
        best = {name: min(values) for name, values in times.items()}
        middle = {name: median(values) for name, values in times.items()}
        found[part] = {"best": best, "median": middle, "ratio": best["after"] / best["before"]}
        print(
            f"{part:<8} before {best['before']:7.3f} s (median {middle['before']:.3f})   after {best['after']:7.3f} s "
            f"(median {middle['after']:.3f})   after/before {found[part]['ratio']:.3f}",
            flush=True,
        )
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
