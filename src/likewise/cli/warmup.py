"""`likewise warmup`: all kernels compiled beforehand; and the first run of a command, which two processes compile for.

Numba compiles one kernel at a time in a process, so the work is divided among processes. They share their results
through the cache on disk: the process that needs a kernel first compiles it, and one that needs it later loads it. A
kernel that two processes need at the same moment is compiled twice, to the same machine code.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import click

import likewise
from likewise.cli import options as shared
from likewise.cli.progress import quiet

PROCESSES = 4
"""More processes than this do not finish sooner: each takes a second to start, and the longest part takes ten."""

SELDOM = 100_000
"""Objects that a process may make before it looks for garbage: most of what the compiler makes is needed till the end,
and to look at it again and again takes a twentieth of the time."""

WORDS = [f"word{i}" for i in range(60)]
TEXTS = [" ".join(WORDS), " ".join(WORDS[1:]), " ".join(WORDS) + " naïve 中文", "", ""]


@click.command()
@shared.quiet
def warmup() -> None:
    """Compile all kernels now and cache the machine code, so that the first run is as fast as later ones."""
    from likewise.kernels import cache_directory

    begun = time.perf_counter()
    compile_all()
    where = cache_directory()
    kept = f"kept in {where}" if where else "not kept: no folder for a cache is writable (set NUMBA_CACHE_DIR)"
    if not quiet():
        click.echo(f"compiled in {time.perf_counter() - begun:.1f} s, {kept}")


def compile_all() -> None:
    """Run every kernel once on a few small items: in several processes, if the machine code is kept for this one."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from likewise.kernels import cache_directory

    processes = min(PROCESSES, cores())
    if cache_directory() is not None and processes > 1 and sys.executable:
        # Where processes cannot be started, this one does it all.
        with (
            contextlib.suppress(OSError, RuntimeError),
            ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), gc.set_threshold, (SELDOM,)) as pool,
        ):
            list(pool.map(run_part, PARTS))
            return
    for part in PARTS:
        run_part(part)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_beside(kernel: str, *parts: str) -> None:
    """Compile some parts in a second process while this one does other work, unless this kernel was compiled before.

    The process ends with this one at the latest, and there is never more than one. Results do not depend on it.
    """
    from likewise.kernels import cache_directory, config, is_compiled

    if config.DISABLE_JIT or cache_directory() is None or is_compiled(kernel) or cores() < 2 or not sys.executable:
        return
    if any(process.poll() is None for process in _BESIDE):
        return
    command = [sys.executable, "-P", "-m", "likewise.cli.warmup", *parts]
    with contextlib.suppress(OSError):
        nothing = subprocess.DEVNULL
        beside = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
        atexit.register(beside.kill)
        _BESIDE.append(beside)


_BESIDE: list[subprocess.Popen[bytes]] = []


def small_sets() -> Any:
    """Return a few sets without compiling what makes sets."""
    import numpy as np

    return likewise.Sets(
        np.concatenate([np.arange(1, 41), np.arange(2, 41), np.arange(90, 99)]).astype(np.uint64),
        np.array([0, 40, 79, 88, 88, 88]),
    )


def clusters() -> None:
    """Cluster pairs and write copies out: the kernels that a search of any kind needs last."""
    import numpy as np

    from likewise.kernels import graph, pairs, sorting

    rows, scores = np.arange(2), np.ones(1)
    none, nothing = rows[:0], scores[:0]
    graph.components(2, none, none)
    graph.keepers(rows, none, none)
    graph.absorbers(rows, none, none, none == 1)
    pairs.expand_pairs(none, none, nothing, rows, rows, rows, rows, True, True, none, none, nothing)
    sorting.radix_argsort(np.zeros(1, np.uint64), 1)


def tuning() -> None:
    """Measure a sample of sets, by which a method and its parameters are chosen."""
    from likewise.families.minhash import MinHash
    from likewise.search.sketch import agreement_counts, sample_signatures

    agreement_counts(sample_signatures(small_sets(), MinHash(), 8), 1)


def join() -> None:
    """Join sets exactly, with the last kernel first."""
    import numpy as np

    from likewise.kernels.overlap import verify_overlap
    from likewise.kernels.strings import add_counts
    from likewise.search.exact.bounds import Bounds
    from likewise.search.exact.join import Join
    from likewise.search.exact.prefixes import JoinSide, survey

    sets, bounds = small_sets(), Bounds("jaccard", 0.5)
    rows = np.arange(3)
    side = sets.values, sets.offsets, rows
    floors, most = (np.zeros(0), np.zeros(0)), np.zeros(0, np.int32)
    verify_overlap(rows[:0], rows[:0], side, side, bounds.code, floors, 0, most, np.empty(0))
    known = survey([sets], 4, 1)
    add_counts(known.counts, known.counts)
    list(Join(bounds, known.counts, "auto", 1, 1 << 20).pairs(JoinSide.of(sets, rows, known.maps[0])))


def bands() -> None:
    """Search sets by bands, certify the result, and cluster the pairs."""
    likewise.dedup(small_sets(), method="lsh")


def words() -> None:
    """Search texts by their words."""
    likewise.dedup(TEXTS, method="exact")
    likewise.dedup(TEXTS, keep="longest", method="lsh", ignore_common=0.9)
    likewise.dedup(TEXTS, measure="containment")
    likewise.pairs(TEXTS, TEXTS[:2], k=1, method="lsh")


def chars() -> None:
    """Search texts by their characters."""
    likewise.dedup(TEXTS, shingle=likewise.Chars(4, bag=True), sketch="classic", method="lsh")


def tokens() -> None:
    """Search texts and lists by their tokens."""
    for method in ("lsh", "exact"):
        likewise.pairs(["a b c", "a b"], shingle="tokens", threshold=0.5, method=method)
    sets = likewise.Sets.from_lists([WORDS, WORDS[1:], [1, 2], []])
    likewise.MinHash().signatures(likewise.Sets.from_lists([WORDS, WORDS], bag=True), 8)
    likewise.Sets.from_lists([[1, 2], [2]])
    from likewise.measures import batch

    batch.jaccard(sets, sets)


def stop_words() -> None:
    """Search texts by stop words and what follows them, and URLs by their parts."""
    likewise.dedup(TEXTS, shingle="stopwords:auto", method="lsh")
    likewise.dedup(["http://a.b/c/d", "http://a.b/c/e"], shingle=likewise.Urls(), method="lsh")


def crowd() -> None:
    """Search so many similar sets that they are compared as a crowd."""
    import numpy as np

    from likewise.search.crowds.profile import HeavyShingles

    HeavyShingles().add(HeavyShingles())
    rows = [np.concatenate([np.arange(1, 91), np.arange(100 + 8 * i, 108 + 8 * i)]) for i in range(5000)]
    offsets = np.cumsum([0, *(len(row) for row in rows)])
    likewise.dedup(likewise.Sets(np.concatenate(rows).astype(np.uint64), offsets), method="lsh")


def indexes() -> None:
    """Join sets by each kind of index, and query sets one by one."""
    for index in ("auto", "prefix"):
        likewise.exact.pairs([WORDS, WORDS[2:], WORDS], 0.5, index, other=[WORDS])
    likewise.exact.Index([WORDS], 0.5).query_and_add([WORDS[1:]])


def stored_vectors() -> None:
    """Make an index of vectors for each distance, with several cells, and query it."""
    import tempfile

    import numpy as np

    table = np.random.default_rng(1).standard_normal((5000, 64)).astype(np.float32)
    for measure in ("angle", "l2", "l1", "hamming"):
        some = table > 0 if measure == "hamming" else table
        with (
            tempfile.TemporaryDirectory(prefix="likewise-") as folder,
            likewise.Index.create(f"{folder}/index", measure=measure) as index,
        ):
            index.add(None, some)
            index.query(some[:2], k=1)


def stored_index() -> None:
    """Make an index on disk, and query it."""
    import tempfile

    with (
        tempfile.TemporaryDirectory() as folder,
        likewise.Index.create(f"{folder}/index", threshold=0.5, containment=True) as index,
    ):
        index.add(["a", "b", "c", "d", "e"], TEXTS)
        index.add(["f"], TEXTS[:1])
        for measure in ("jaccard", "containment"):
            index.query(TEXTS, measure=measure)
        index.query(TEXTS[0])
        index.compact()
    for shingle in ("chars:5", "stopwords:en", "tokens"):
        with (
            tempfile.TemporaryDirectory() as folder,
            likewise.Index.create(f"{folder}/index", shingle=shingle) as index,
        ):
            index.add(["a"], TEXTS[:1])
            index.query(TEXTS[0])


def vectors() -> None:
    """Search vectors by every distance."""
    import numpy as np

    for kind in (np.float32, np.float64):
        table = np.arange(24, dtype=kind).reshape(8, 3) + 1
        for measure in ("angle", "l2", "l1"):
            likewise.pairs(table, measure=measure, within=1, method="lsh")
            likewise.nearest(table, 1, measure=measure)
    bits = np.arange(8, dtype=np.uint64)
    for method in ("lsh", "exact"):
        likewise.pairs(bits, measure="hamming", within=1, method=method)
    for some in (bits, np.arange(6000, dtype=np.uint64)):
        likewise.nearest(some, 3, measure="hamming")
    many = np.random.default_rng(1).standard_normal((6000, 32)).astype(np.float32)
    for k in (1, 5):  # of many, several are chosen otherwise than one
        likewise.nearest(many, k, measure="angle")
        likewise.nearest(many, k, measure="angle", other=many[:50])


def passages() -> None:
    """Find copied passages."""
    from likewise.apps.passages import passages as found

    found(TEXTS, TEXTS)


def decontaminate() -> None:
    """Find items of tests in documents."""
    likewise.decontaminate(TEXTS, tests=[TEXTS[0], " ".join(WORDS[3:9])], action="cut")


def units() -> None:
    """Cut repeated lines."""
    likewise.dedup(["a b c d e f\none two three four five", "A B C D E F\nx"], unit="lines")


def link() -> None:
    """Link a few records, and block them as many are blocked."""
    from likewise.apps.link import link
    from likewise.apps.link.blocking import block
    from likewise.apps.link.records import records_of

    names = [f"{one}{other} Lee" for one in ("Ann", "Bo", "Zoë") for other in "abcdef"]
    dates = [f"19{50 + i}-01-02" for i in range(len(names))]
    few = {"name": names, "first": [name[:3] for name in names], "born": dates, "phone": dates}
    link(few, few)
    link({name: [*column, *column] for name, column in few.items()})
    texts = [" ".join(WORDS[(7 * i + j * j) % len(WORDS)] for j in range(12)) for i in range(300)]
    earlier = link({"name": [text[:12] for text in texts], "text": texts})
    link({"name": [text[3:15] for text in texts[:9]], "text": texts[:9]}, against=earlier)
    link({"name": texts}, {"name": texts[::2]})
    firsts = [f"{first} Lee{i}" for first in ("Ann", "Bo", "Bill", "William") for i in range(100)]
    link({"name": firsts, "born": [f"19{50 + i % 40}-01-02" for i in range(400)], "text": [*texts, *texts[:100]]})
    block(records_of(few).fields, 0, most=0)


def fingerprints() -> None:
    """Match fingerprints."""
    from likewise.apps.fingerprints import fingerprints as match

    spots = {"x": [0, 30, 60, 5], "y": [0, 40, 10, 70], "angle": [10, 100, 200, 300]}
    match({"print": ["a"] * 4 + ["b"] * 4, **{name: values * 2 for name, values in spots.items()}})


def mirrors() -> None:
    """Find mirrored hosts."""
    import pyarrow as pa

    from likewise.apps.mirrors import mirrors as find

    urls = [f"http://{host}/docs/{word}.html" for host in ("a.org/x", "b.net") for word in WORDS[:9]]
    ends = pa.table({"source": urls, "target": urls[::-1], "url": urls, "text": urls})
    find(urls, links=ends, pages=ends, least_links=1, similar_links=0.5)


def pages() -> None:
    """HTML."""
    from likewise.io.read.pages import written_tags

    written_tags("<p>a")


def recommend() -> None:
    """Recommend items to a few customers."""
    from likewise.apps.recommend import recommend as recommended

    for k in (None, 1):
        recommended({"a": WORDS, "b": WORDS[1:], "c": WORDS[:3]}, k=k)


LONGEST_FIRST: tuple[Callable[[], None], ...] = (
    *(words, bands, link, join, clusters, tuning, mirrors, crowd, passages, fingerprints, chars, vectors),
    *(stop_words, decontaminate, units, recommend, pages, tokens, indexes, stored_index, stored_vectors),
)
PARTS = {part.__name__: part for part in LONGEST_FIRST}
"""What is compiled, in the order in which processes begin with it: long parts first, few of their kernels in common."""


def run_part(name: str) -> None:
    """Run one of the parts."""
    PARTS[name]()


if __name__ == "__main__":
    gc.set_threshold(SELDOM)
    for name in sys.argv[1:]:
        run_part(name)
