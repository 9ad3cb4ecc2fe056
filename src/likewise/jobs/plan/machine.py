"""The speed of this machine: the real kernels on made-up documents, measured once and cached beside the compiled code.

All times but those of the disk are CPU times, so that other work at the same time does not distort them.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.base.arrays import Sets, TextChunk, Texts, to_arrow
from likewise.base.copies import Groups, chunk_samples, labels, text_digests
from likewise.base.tokens import hash_column
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.io.disk import BLOCK
from likewise.io.write import ROWS, write_batches
from likewise.kernels import cache_directory
from likewise.search.band_keys import HeldKeys
from likewise.search.candidates import candidates
from likewise.search.cluster import components, removals
from likewise.search.expand import listed_pairs
from likewise.search.items import TextItems
from likewise.search.matches import VerifiedPairs
from likewise.search.recall.sample import Probe, quick_sample
from likewise.search.sketch import SketchPlan
from likewise.search.verify import similarities
from likewise.shingle import Words

FORMAT = 5
"""Version of the cached measurements; raise it when what is measured changes."""
DOCUMENTS, WORDS = 40_000, 12
"""Documents, and their words, for the times per document: many short ones."""
LONG, LONG_WORDS = 1_000, 600
"""Documents, and their words, for the times per byte: fewer long ones."""
DRAWN, DRAWN_SIZE = 2_000, 100
"""Documents of a certificate's sample, and the size of their sets."""
BANDING = Banding(8, 4)
GROUP, THRESHOLD = 8, 0.8
DISK = 1 << 23
"""Bytes that are written and read to measure the disk: enough for its speed, little enough to do each time."""
USUAL_DISK = 400e6
USUAL_START, USUAL_BASE = 1.5, 230e6
"""What is assumed where measuring fails: bytes per second, seconds, bytes of memory."""
COMPILING = 6.0
"""A start that takes this many seconds has compiled kernels, which the next one will not do."""


@dataclass(frozen=True)
class Machine:
    """The cost of the work on this machine, in seconds of one core per document, byte, pair …

    parallel: how many times faster `threads` threads are than one. start: seconds until Python, likewise and its
    kernels are loaded; base: the memory this needs, in bytes.
    sample, unique, identical, group, cluster, table, row: per document (its fingerprint while it is read, the check
    that its id is unique, finding copies, numbering groups, choosing keepers, making tables, writing a row).
    sketch, shingle: per byte of text (to band keys; to a set). check: per byte of a committed file.
    sort: per document and band. candidate: per candidate found. match, miss: per shingle of a verified pair that is
    similar, or is not. index: per shingle of the certificate's sample; probe, meet: per shingle of a document that is
    compared with the sample, to look it up, and to compare the document with one of the sample.
    write_speed, read_speed: of the disk, in bytes per second.
    """

    name: str
    cores: int
    threads: int
    parallel: float
    start: float
    base: float
    sample: float
    unique: float
    identical: float
    group: float
    cluster: float
    table: float
    row: float
    sketch: float
    shingle: float
    check: float
    sort: float
    index: float
    probe: float
    meet: float
    candidate: float
    match: float
    miss: float
    write_speed: float
    read_speed: float

    @classmethod
    def measured(cls, threads: int = 1, folder: Path | None = None, again: bool = False) -> Machine:
        """Return the speed of this machine with this many threads; `folder` is on the disk to be used.

        What was measured once by the same version of likewise is taken from the cache, unless `again`; the disk
        is tried each time.
        """
        known = None if again else _cached(threads)
        if known is None:
            known = _calibrated(threads)
            _remember(known)
        write_speed, read_speed = disk_speed(folder or Path(tempfile.gettempdir()))
        return replace(known, write_speed=write_speed, read_speed=read_speed)

    @classmethod
    def is_known(cls, threads: int) -> bool:
        """Return whether this machine has been measured with this many threads."""
        return _cached(threads) is not None


def cpu_name() -> str:
    """Return the model of the processor, if the system says."""
    names: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        wanted = ("model name", "CPU implementer", "CPU part", "CPU variant")
        names = sorted({line.partition(":")[2].strip() for line in lines if line.startswith(wanted)})
    return " ".join(names) or platform.processor() or platform.machine()


def core_count() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def others_load() -> float:
    """Return how many cores other work has kept busy in the last minute, if the system says."""
    return max(0.0, os.getloadavg()[0] - 1) if hasattr(os, "getloadavg") else 0.0


def _place(threads: int) -> Path | None:
    """Return the file for the measurements: its folder is named after the kernels, its name after the rest."""
    folder = cache_directory()
    if folder is None:
        return None
    known_by = f"{FORMAT} {version('likewise')} {cpu_name()} {core_count()} {threads}"
    return folder / f"machine-{hashlib.sha256(known_by.encode()).hexdigest()[:16]}.json"


def _cached(threads: int) -> Machine | None:
    """Return what was measured earlier; None if there is nothing, or nothing that makes sense."""
    place = _place(threads)
    if place is None:
        return None
    try:
        machine = Machine(**json.loads(place.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    numbers = [getattr(machine, field.name) for field in fields(Machine) if field.name != "name"]
    sound = all(isinstance(number, int | float) and number >= 0 for number in numbers)
    return machine if sound and machine.threads == threads and machine.parallel >= 1 else None


def _remember(machine: Machine) -> None:
    """Keep the measurements; where that is not possible they will be made again."""
    place = _place(machine.threads)
    if place is None:
        return
    with suppress(OSError):
        part = place.with_name(f".{place.name}.{os.getpid()}")
        part.write_text(json.dumps(asdict(machine), indent=2))
        os.replace(part, place)


def disk_speed(folder: Path) -> tuple[float, float]:
    """Return the bytes per second that can be written to and read from the disk of a folder."""
    there = next((place for place in (folder, *folder.absolute().parents) if place.is_dir()), Path("/"))
    data = np.random.default_rng(0).bytes(DISK)
    try:
        with tempfile.TemporaryFile(dir=there, buffering=0) as file:
            begun = perf_counter()
            file.write(data)
            os.fsync(file.fileno())
            written = perf_counter() - begun
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            begun = perf_counter()
            file.seek(0)
            while file.read(1 << 20):
                pass
            return DISK / max(1e-9, written), DISK / max(1e-9, perf_counter() - begun)
    except OSError:
        return USUAL_DISK, USUAL_DISK


def seconds(work: Callable[[], object], repeat: int = 2) -> float:
    """Return the CPU seconds that some work takes; it is done once before, so that its kernels are loaded."""
    work()
    times = []
    for _ in range(repeat):
        begun = process_time()
        work()
        times.append(process_time() - begun)
    return min(times)


def made_up(documents: int, words: int, seed: int = 1) -> TextChunk:
    """Return documents of random words of six letters; of long ones, every eight are the same but for their end."""
    random = np.random.default_rng(seed)
    vocabulary = random.integers(97, 123, (20_000, 7), dtype=np.uint8)
    vocabulary[:, 6] = 32
    numbers = random.integers(0, len(vocabulary), (documents, words))
    if words > WORDS:
        alike = words - words // 16
        numbers[:, :alike] = numbers[np.arange(documents) // GROUP * GROUP, :alike]
    data = vocabulary[numbers].ravel()
    data.flags.writeable = False
    return TextChunk(data, np.arange(documents + 1) * (7 * words))


def _calibrated(threads: int) -> Machine:
    """Measure everything but the disk."""
    short, long = made_up(DOCUMENTS, WORDS), made_up(LONG, LONG_WORDS)
    start, base = _start()
    return Machine(
        name=cpu_name(),
        cores=core_count(),
        threads=threads,
        start=start,
        base=base,
        write_speed=USUAL_DISK,
        read_speed=USUAL_DISK,
        **_of_documents(short),
        **_of_bytes(long, threads),
        **_of_pairs(long),
    )


TINY_RUN = """
import pyarrow as pa
from likewise.base.tokens import hash_column
from likewise.cli import run
from likewise.base.memory import peak_memory
hash_column(pa.array([1]))
try:
    run()
except SystemExit:
    print(peak_memory() or 0)
"""


def _start() -> tuple[float, float]:
    """Return the CPU seconds and the bytes of memory of a run with nothing to do, in a process of its own."""
    texts = ["to be or not to be that is", "the question whether it is nobler", "to be or not to be that is"]
    try:
        for _ in range(2):
            with tempfile.TemporaryDirectory(prefix="likewise-") as place:
                pq.write_table(pa.table({"text": texts, "id": [1, 2, 3]}), Path(place) / "tiny.parquet")
                words = ["dedup", f"{place}/tiny.parquet", "--id", "id", "--out", f"{place}/out"]
                begun = _children_time()
                done = subprocess.run(
                    [sys.executable, "-c", TINY_RUN, *words], capture_output=True, text=True, check=True, timeout=300
                )
            start, base = _children_time() - begun, float(done.stdout.split()[-1])
            if start < COMPILING:
                break
        return start or USUAL_START, base or USUAL_BASE
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return USUAL_START, USUAL_BASE


def _children_time() -> float:
    """Return the CPU seconds of processes that this one has started and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _of_documents(chunk: TextChunk) -> dict[str, float]:
    """Measure what each document costs, however short."""
    n = len(chunk)
    rows = np.arange(n)
    samples = chunk_samples(chunk)
    texts = Texts([chunk], samples)
    digests = text_digests(texts, 1)
    ids = to_arrow(np.random.default_rng(3).permutation(n))
    groups = Groups.by_label(labels(digests))
    nothing = np.zeros(0, np.int64)
    matches = VerifiedPairs(groups, groups.of, nothing, nothing, np.zeros(0), None)
    keys = HeldKeys(np.random.default_rng(2).integers(0, 1 << 32, (n, BANDING.b), dtype=np.uint32))
    batches = [pa.record_batch([to_arrow(rows[start : start + ROWS])] * 2, ["a", "b"]) for start in range(0, n, ROWS)]
    with tempfile.TemporaryDirectory(prefix="likewise-") as place:
        row = seconds(lambda: write_batches(batches, batches[0].schema, Path(place) / "rows"))

    def group() -> None:
        Groups.by_label(labels(digests))
        keys.chosen(groups.first[1:])

    def table() -> None:
        listed_pairs(matches)
        components(groups, nothing, nothing)

    measured = {
        "sample": seconds(lambda: chunk_samples(chunk)),
        "unique": seconds(lambda: np.argsort(hash_column(ids))),
        "identical": seconds(lambda: labels(text_digests(texts, 1))),
        "group": seconds(group),
        "cluster": seconds(lambda: removals(groups, nothing, nothing, np.zeros(0), rows, groups.of)),
        "table": seconds(table),
        "row": row,
        "sort": seconds(lambda: candidates(keys, 1)) / BANDING.b,
    }
    return {name: value / n for name, value in measured.items()}


def _of_bytes(chunk: TextChunk, threads: int) -> dict[str, float]:
    """Measure what each byte of text costs, and how much faster several threads are."""
    size = LONG // 10
    parts = [TextChunk(chunk.data, chunk.offsets[start : start + size + 1]) for start in range(0, LONG, size)]
    items = TextItems(Texts(parts), Words(5))
    rows, minhash = np.arange(LONG), MinHash()
    room = HeldKeys(np.empty((LONG, BANDING.b), np.uint32))

    random = np.random.default_rng(4)
    drawn = Sets(random.integers(0, 1 << 63, DRAWN * DRAWN_SIZE, dtype=np.uint64), np.arange(DRAWN + 1) * DRAWN_SIZE)
    strangers = quick_sample(drawn, THRESHOLD)[0]
    friends = quick_sample(items.sets(rows[::GROUP], 1), THRESHOLD)[0]

    def sketch(threads: int, probe: Probe | None = None) -> float:
        plan = SketchPlan(minhash, BANDING, room, threads, probe=probe)
        return seconds(lambda: items.keys(rows, plan))

    alone, looking, meeting = sketch(1), sketch(1, strangers), sketch(1, friends)
    shared = sketch(threads) if threads > 1 else alone
    size, content = len(chunk.data), chunk.data[:BLOCK].tobytes()
    return {
        "sketch": alone / size,
        "shingle": seconds(lambda: items.sets(rows, 1)) / size,
        "index": seconds(lambda: quick_sample(drawn, THRESHOLD), 1) / len(drawn.values),
        "probe": max(0.0, looking - alone) / (LONG * LONG_WORDS),
        "meet": max(0.0, meeting - looking) / (LONG * LONG_WORDS),
        "check": seconds(lambda: crc32(content)) / len(content),
        "parallel": max(1.0, min(threads, core_count()) * min(1.0, alone / max(1e-9, shared))),
    }


def _of_pairs(chunk: TextChunk) -> dict[str, float]:
    """Measure what a candidate pair costs: to meet it, and to verify it."""
    items = TextItems(Texts([chunk]), Words(5))
    sets = items.sets(np.arange(LONG), 1)
    heads = np.arange(0, LONG // GROUP * GROUP, GROUP)
    first, second = np.triu_indices(GROUP, 1)
    left, right = (heads[:, None] + first).ravel(), (heads[:, None] + second).ravel()
    strangers = (right + GROUP) % len(heads)
    order = np.lexsort((np.maximum(left, strangers), np.minimum(left, strangers)))
    low, high = np.minimum(left, strangers)[order], np.maximum(left, strangers)[order]
    shingles = len(left) * float(sets.sizes.mean())
    random = np.random.default_rng(3)
    lonely = random.integers(0, 1 << 32, (DOCUMENTS, 4), dtype=np.uint32)
    crowded = lonely.copy()
    crowded[:, 2] = random.permutation(DOCUMENTS) // GROUP
    met = DOCUMENTS * (GROUP - 1) / 2
    more = seconds(lambda: candidates(HeldKeys(crowded), 1)) - seconds(lambda: candidates(HeldKeys(lonely), 1))
    return {
        "candidate": max(1e-9, more / met),
        "match": seconds(lambda: similarities(left, right, sets, THRESHOLD, 1)) / shingles,
        "miss": seconds(lambda: similarities(low, high, sets, THRESHOLD, 1)) / shingles,
    }
