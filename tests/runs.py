"""Runs in other processes, to be killed: a corpus, the command, and the fingerprints of the answer."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forks
from likewise.io.workspace import WORK

LINK = ("words", "link")
AT_STAGE = """
import os, signal, sys
import likewise
from likewise.io.read import Files

source, out, stage, calls, sign, *options = sys.argv[1:]
left = int(calls)

def observe(name, done, total):
    global left
    if name == stage:
        left -= 1
        if left == -1:
            os.kill(os.getpid(), int(sign))

given = dict(option.split("=", 1) for option in options)
whole = {name: int(given[name]) for name in ("bands", "rows", "threads") if name in given}
if "threshold" in given:
    whole["threshold"] = float(given["threshold"])
if "estimate" in given:
    whole["estimate"] = given["estimate"] == "True"
likewise.dedup(Files([source]), out=out, progress=observe, **{**given, **whole})
"""


def corpus(path, documents, words=100, near=2000, seed=1):
    """Write random documents of so many words: `near` of them have three near copies, and a few are there twice."""
    random = np.random.default_rng(seed)
    vocabulary = np.array([f"w{number:04d} " for number in range(9000)], "S6")
    rows = random.integers(0, len(vocabulary), (documents, words))
    for copy in range(1, 4):
        changed = rows[:near].copy()
        places = random.random(changed.shape) < 0.012
        changed[places] = random.integers(0, len(vocabulary), int(places.sum()))
        rows[copy * near : (copy + 1) * near] = changed
    rows[-near // 4 :] = rows[: near // 4]
    text = vocabulary[rows[random.permutation(documents)]]
    offsets = np.arange(documents + 1, dtype=np.int32) * 6 * words
    column = pa.StringArray.from_buffers(documents, pa.py_buffer(offsets), pa.py_buffer(text.tobytes()))
    table = pa.table({"text": column, "number": np.arange(documents)})
    pq.write_table(table, path, row_group_size=5000, compression="lz4")
    return path


def people(path, records, seed=1):
    """Write records of people, two fifths of which are there twice, with an error in one field."""
    random = np.random.default_rng(seed)
    half = records * 3 // 5
    given, surname = random.integers(0, 300, half), random.integers(0, 9000, half)
    phone, born = random.integers(10**6, 10**7, half), random.integers(0, 20_000, half)
    again = random.permutation(half)[: records - half]
    wrong = random.integers(0, 3, len(again))
    rows = np.stack([given, surname, phone, born], axis=1)
    copies = rows[again]
    for place, size in enumerate((300, 9000, 10**7)):
        changed = wrong == place
        copies[changed, place] = random.integers(0, size, int(changed.sum()))
    rows = np.concatenate([rows, copies])[random.permutation(records)]
    days = np.datetime64("1940-01-01") + rows[:, 3].astype("timedelta64[D]")
    columns = {"given": [f"gi{number:x}ven" for number in rows[:, 0]]}
    columns["surname"] = [f"{number:x}ham{number % 97:x}ton" for number in rows[:, 1]]
    columns["phone"] = [f"0{number % 900 + 100}-{number}" for number in rows[:, 2]]
    pq.write_table(pa.table({**columns, "born": days.astype(str)}), path)
    return path


def hosts(path, count, seed=1):
    """Write URLs of hosts with 30 pages each; every fourth host mirrors the one before it."""
    random = np.random.default_rng(seed)
    with open(path, "w") as out:
        for host in range(count):
            if host % 4 != 3:
                pages = [
                    f"/{chr(97 + a % 26)}dir{a}/topic{b}/page{c}.html" for a, b, c in random.integers(0, 3000, (30, 3))
                ]
            out.writelines(f"http://www.site{host}.example{page}\n" for page in pages)
    return path


def pages(path, count, seed=1):
    """Write documents of thirty lines in paragraphs of three; every fifth line is one of two hundred, in any case."""
    random = np.random.default_rng(seed)
    lines = [f"line {number:x} of many that are told apart by the number {number}" for number in range(30 * count)]
    often = [f"this is boilerplate number {number} that pages of a site have" for number in range(200)]
    for place, which in zip(range(0, len(lines), 5), random.integers(0, 200, 6 * count), strict=True):
        lines[place] = often[which].upper() if which % 3 else often[which]
    parts = ["\n".join(lines[start : start + 3]) for start in range(0, len(lines), 3)]
    texts = ["\n\n".join(parts[start : start + 10]) for start in range(0, len(parts), 10)]
    pq.write_table(pa.table({"text": texts, "number": range(count)}), path, row_group_size=1000)
    return path


def vectors(path, count, seed=1):
    """Write vectors of 32 numbers, of which every fourth is close to the one before it."""
    random = np.random.default_rng(seed)
    table = random.standard_normal((count, 32)).astype(np.float32)
    table[3::4] = table[2::4] + np.float32(0.02) * table[3::4]
    np.save(path, table)
    return path


STARTED_OVER = {
    "lines": (pages, "pages.parquet", ("dedup", "--unit", "lines")),
    "paragraphs": (pages, "pages.parquet", ("dedup", "--unit", "paragraphs", "--more-than", "2")),
    "vectors": (vectors, "vectors.npy", ("dedup", "--measure", "angle", "--within", "5")),
    "containment": (corpus, "corpus.parquet", ("dedup", "--measure", "containment")),
}
"""Commands that begin anew when they were killed, and how their inputs are made, of so many rows."""

ENVIRONMENT = {"LIKEWISE_PATIENCE": "0"}
"""Every step is committed, however quick it was."""


def command(source, out, *options):
    """The words of `likewise dedup`."""
    return [sys.executable, "-c", forks.COMMAND, "dedup", str(source), "--out", str(out), *options]


def start(source, out, *options):
    """Start `likewise dedup`."""
    return begin("dedup", source, "--out", out, *options)


def finish(process):
    """Wait for the end; return the exit code, and what was said."""
    output, errors = process.communicate(timeout=200)
    return process.returncode, output, errors


def dedup(source, out, *options):
    return finish(start(source, out, *options))


def killed_after(seconds, source, out, *options):
    """Kill a run of dedup after some time; tell whether it was still running."""
    return killed_in(seconds, "dedup", source, "--out", out, *options)


def begin(*words):
    """Start any command."""
    more = {"parts": LINK} if words[0] == "link" else {}
    return forks.command(*words, **more, **ENVIRONMENT)


def killed_in(seconds, *words):
    """Kill any command after some time; tell whether it was still running."""
    process = begin(*words)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        finish(process)
        return True
    code, _, errors = finish(process)
    assert code == 0, errors
    return False


def signalled_at(stage, calls, signal, source, out, **options):
    """Start a run that sends itself a signal at a stage, when there has been news of it so many times."""
    given = [f"{name}={value}" for name, value in options.items()]
    return forks.start(AT_STAGE, source, out, stage, calls, int(signal), *given, **ENVIRONMENT)


def killed_at(stage, calls, source, out, **options):
    """Let a run kill itself at a stage."""
    code, _, errors = finish(signalled_at(stage, calls, signal.SIGKILL, source, out, **options))
    assert code == -signal.SIGKILL, f"the run was over before {stage}: {errors}"


def answer(folder):
    """The fingerprint of every file of an answer but run.json and the report, which say how long it took, by name."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    names = {path: path.relative_to(folder) for path in files}
    return {
        str(name): hashlib.sha256(path.read_bytes()).hexdigest()
        for path, name in sorted(names.items())
        if name.parts[0] not in (WORK, "run.json", "report.html")
    }


def steady(run, out, files, *words):
    """Check that a command writes the same bytes whatever its threads, and that a run which fails leaves them alone.

    run: what calls likewise in this process, with words as a user types them.
    """

    def held(*names):
        return {name: (out / name).read_bytes() for name in names}

    words, made = (*words, "--out", str(out)), []
    for threads in ("1", "2", "2"):
        done = run(*words, "--threads", threads)
        assert done.returncode == 0, done.stderr
        made.append(held(*files))
    assert made[0] == made[1] == made[2]
    before = held(*files, "run.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.io.read.tables.TableFiles.write_kept", lambda *rest: 1 / 0)
        assert run(*words).returncode == 1
    assert held(*before) == before
    assert run(*words).returncode == 0


def wait_for(path, process, seconds=60):
    """Wait until a file or folder is there; tell whether it came before the process ended."""
    limit = time.monotonic() + seconds
    while not path.exists():
        if process.poll() is not None or time.monotonic() > limit:
            return False
        time.sleep(0.001)
    return True


def can_mount():
    """Tell whether a process may have a small disk of its own, that nobody else sees."""
    words = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"]
    with contextlib.suppress(OSError):
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    return False


def on_small_disk(place, size, script, *words):
    """Run a shell script with a disk of this size at a place."""
    mount = f'mount -t tmpfs -o size={size} none "{place}" && {{ {script}\n}}'
    whole = ["unshare", "-rm", "sh", "-c", mount, "sh", *map(str, words)]
    return subprocess.run(whole, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}, check=False)
