"""Surroundings that are not as they should be: a command gives its answer, or says in one line what it lacks."""

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys

import pytest

import runs
from installed import share_kernels

MAIN = "from likewise.cli import main; main()"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A small file, and the answer to it."""
    folder = tmp_path_factory.mktemp("places")
    texts = [f"été naïve façade {i // 2} " + " ".join(f"w{i // 2}x{k}" for k in range(20)) for i in range(60)]
    lines = [json.dumps({"id": f"n°{i}", "text": text}) + "\n" for i, text in enumerate(texts)]
    (folder / "rows.jsonl").write_text("".join(lines))
    done = started(folder, "dedup", "rows.jsonl", "--id", "id", "--no-report", "--out", "o")
    assert done.returncode == 0, done.stderr
    return folder


def started(folder, *words, before=None, environment=None, **more):
    """Run a command in a new process."""
    settings = {"cwd": folder, "capture_output": True, "text": True, "timeout": 300, "preexec_fn": before, **more}
    return subprocess.run([sys.executable, "-c", MAIN, *words], env={**os.environ, **(environment or {})}, **settings)


def one_line(done):
    """Check that a command has failed as it should."""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("compiling")]
    assert (done.returncode, len(lines)) == (1, 1), done.stderr
    assert lines[0].startswith("likewise: ")
    assert "internal error" not in lines[0]
    return lines[0]


def test_no_home_and_no_language(rows, tmp_path):
    """No folder for caches but the temporary one, and a terminal that knows ASCII only."""
    share_kernels(tmp_path / f"likewise-{os.getuid()}")
    bare = {
        "TMPDIR": str(tmp_path),
        "HOME": "/proc/none",
        "XDG_CACHE_HOME": "/proc/none",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    done = started(rows, "dedup", "rows.jsonl", "--id", "id", "--out", "bare", environment=bare)
    assert done.returncode == 0, done.stderr
    assert runs.answer(rows / "bare") == runs.answer(rows / "o")
    found = started(rows, "explain", "rows.jsonl#0", "rows.jsonl#1", environment=bare)
    assert found.returncode == 0, found.stderr
    assert found.stdout.isascii() or "n°" in found.stdout


@pytest.mark.parametrize("mebibytes", [600, pytest.param(1500, marks=pytest.mark.soak)])
def test_little_address_space(rows, mebibytes):
    """As with `ulimit -v`: libraries that cannot allocate often crash."""

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))

    done = started(
        rows, "dedup", "rows.jsonl", "--id", "id", "--threads", "1", "--out", f"v{mebibytes}", before=limited
    )
    if done.returncode:
        one_line(done)
    else:
        assert runs.answer(rows / f"v{mebibytes}") == runs.answer(rows / "o")
    assert "Traceback" not in done.stderr


def test_nobody_reads_what_is_printed(rows):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "tune", "--threshold", "0.8"],
            cwd=rows, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 141, -signal.SIGPIPE)


@pytest.mark.skipif(not runs.can_mount(), reason="no disk of our own can be made here")
@pytest.mark.parametrize("what", ["kept", "temporary"])
def test_a_disk_that_is_full(rows, tmp_path, what):
    """A full disk while kept/ is written, and a full folder for temporary files: nothing half is left."""
    big = tmp_path / "big.jsonl"
    big.write_text("".join(json.dumps({"text": f"{i} " + os.urandom(3000).hex()}) + "\n" for i in range(1500)))
    if what == "temporary":
        shutil.copyfile(big, tmp_path / "raw")
        (tmp_path / "big.jsonl.gz").write_bytes(gzip.compress(big.read_bytes(), 1))
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["dedup", "../big.jsonl", "--threads", "1", "--out", "o"]
    script = 'TMPDIR="$PWD" exec "$@"' if what == "temporary" else 'exec "$@"'
    if what == "temporary":
        words = ["pairs", "../big.jsonl.gz", "--threshold", "0.9", "--memory", "64MiB", "--out", "o.csv"]
    done = runs.on_small_disk(disk, "4m", f"cd {disk} && {script}", sys.executable, "-c", MAIN, *words)
    if done.returncode:
        message = one_line(done)
        assert "full" in message or "space" in message
    else:
        assert what == "temporary"  # it had no need of one
