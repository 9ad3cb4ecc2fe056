"""Start a tool in its own environment and a fresh process; watch its time and its memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE / ".envs"
REQUIREMENTS: dict[str, list[str]] = {
    "rensa": ["rensa==0.5.0", "pyarrow==26.0.1"],
    "gaoya": ["gaoya==0.2.2", "pyarrow==26.0.1"],
    "datasketch": ["datasketch==2.0.0", "numpy==2.4.6", "xxhash==4.1.0", "pyarrow==26.0.1"],
    "datasketch-bloom": [
        "datasketch==2.0.0",
        "pybloomfilter3==0.7.3",
        "scipy==1.17.1",
        "numpy==2.4.6",
        "xxhash==4.1.0",
        "pyarrow==26.0.1",
    ],
    "fastsketchlsh": ["fastsketchlsh==1.0.1", "numpy==2.4.6", "pyarrow==26.0.1"],
    "datasketch-redis": ["datasketch==2.0.0", "redis==8.1.0", "numpy==2.4.6", "xxhash==4.1.0", "pyarrow==26.0.1"],
    "text-dedup": ["text-dedup==0.4.0", "datasets==5.2.0", "numpy==2.4.6", "pyarrow==26.0.1"],
    "text-dedup-spark": [
        "text-dedup==0.4.0",
        "datasets==5.2.0",
        "numpy==2.4.6",
        "pyarrow==26.0.1",
        "pyspark==4.3.0",
        "scipy",
        "xxhash",
    ],
    "datatrove": ["datatrove[io,processing]==0.10.1", "spacy==3.8.18", "pyarrow==26.0.1"],
    "faiss": ["faiss-cpu==1.15.1", "numpy==2.4.6"],
    "semhash": ["semhash==0.5.0", "usearch==2.26.6", "vicinity==0.4.6", "numpy==2.4.6"],
    "hnswlib": ["hnswlib==0.8.0", "numpy==2.4.6"],
    "splink": ["splink==5.0.0", "duckdb==2.0.0", "sqlglot==30.30.0", "pyarrow==26.0.1"],
    "recordlinkage": [
        "recordlinkage==0.16",
        "numpy==2.4.6",
        "pandas==2.3.3",
        "scikit-learn==1.9.1",
        "scipy==1.17.1",
        "jellyfish==1.3.0",
        "joblib==1.6.0",
        "pyarrow==26.0.1",
    ],
    "dedupe": ["dedupe==3.0.3", "BTrees==6.1", "pyarrow==26.0.1"],
    "schemathesis": ["schemathesis==4.32.0"],
    "tfidf": ["scikit-learn==1.9.1", "scipy==1.17.1", "numpy==2.4.6", "pyarrow==26.0.1"],
    "autofj": [
        "autofj==0.0.6",
        "numpy==1.26.4",
        "pandas==1.5.3",
        "jellyfish==0.11.2",
        "spacy==3.8.18",
        "nltk==3.10.4",
        "ngram==4.0.3",
        "editdistance==0.8.1",
        "joblib==1.6.0",
        "pyarrow==17.0.0",
    ],
    "SetSimilaritySearch": ["SetSimilaritySearch==1.0.1", "numpy==2.4.6"],
    "py_stringsimjoin": [
        "setuptools==68.2.2",
        "wheel==0.42.0",
        "numpy==1.26.4",
        "pandas==2.1.4",
        "python-dateutil==2.9.0.post0",
        "pytz==2024.1",
        "tzdata==2024.1",
        "six==1.16.0",
        "joblib==1.3.2",
        "PyPrind==2.11.3",
        "py_stringmatching==0.4.7",
    ],
}
BUILT = {"py_stringsimjoin": "py_stringsimjoin==0.3.6"}
"""What has no wheels and is compiled in its environment, with the setuptools there: it needs g++, Python's headers and,
for the wheels of its time, Python 3.11. Without Cython the C++ of the source distribution is taken as it is."""

SAMPLE_SECONDS = 0.2


class Unavailable(Exception):
    """A tool cannot be installed or does not run here; the message says why."""


@dataclass(frozen=True)
class Run:
    """What one run of a tool cost."""

    total: float
    phases: dict[str, float]
    peak_mb: float
    more: dict[str, object]


def python_of(tool: str) -> str:
    """The Python of a tool's environment, which is made on first use; our own for likewise and pyarrow."""
    if tool not in REQUIREMENTS:
        return sys.executable
    folder = ENVIRONMENTS / tool
    python = folder / "bin" / "python"
    wanted = "\n".join(pinned(tool))
    done = folder / "installed.txt"
    if not done.exists() or done.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        _install(python, REQUIREMENTS[tool])
        if tool in BUILT:
            _install(python, ["--no-deps", "--no-build-isolation", f"--no-binary={tool}", BUILT[tool]])
        done.write_text(wanted)
    return str(python)


def pinned(tool: str) -> list[str]:
    """What stands in a tool's environment."""
    return REQUIREMENTS[tool] + ([BUILT[tool]] if tool in BUILT else [])


def _install(python: Path, what: list[str]) -> None:
    install = [str(python), "-m", "pip", "install", "--quiet", *what]
    result = subprocess.run(install, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Unavailable(f"pip install failed: {last_line(result.stderr)}")


def run(tool: str, corpus: Path, out: Path, options: Sequence[str] = (), most: float | None = None) -> Run:
    """Run a tool once on a corpus; its answer is left in `out`. It is ended after `most` seconds."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.parquet"):
        old.unlink()
    script = HERE / "peers" / f"{tool.replace('-', '_')}_run.py"
    command = [python_of(tool), str(script), str(corpus), "--out", str(out), *options]
    report, watch = watched(command, most)
    return Run(
        total=report.pop("total"),
        phases=report.pop("phases"),
        peak_mb=max(watch.peak_mb, report.pop("peak_mb")),
        more=report,
    )


def watched(command: Sequence[str], most: float | None = None) -> tuple[dict[str, Any], MemoryWatch]:
    """Run a command; return the JSON of its last line, and its memory. It is ended after `most` seconds."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=most is not None
    )
    watch = MemoryWatch(process.pid)
    try:
        output, errors = process.communicate(timeout=most)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Unavailable(f"not finished after {most:g} s") from None
    finally:
        watch.stop()
    if process.returncode:
        raise Unavailable(last_line(errors))
    report: dict[str, Any] = json.loads(output.splitlines()[-1])
    return report, watch


class MemoryWatch:
    """The peak memory of a process and its children together, sampled (Linux).

    `peak_mb` is 0 where there were no children: a process alone reports its own exact peak. In it, shared pages count
    once: each process has its share of them. `anonymous_mb` leaves out the pages of files, which the system can take
    back, and counts those that a child shares with its parent twice.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.peak_mb = 0.0
        self.anonymous_mb = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """End the watch; the peak in MB, 0 where there were no children."""
        self._ended.set()
        self._thread.join()
        return self.peak_mb

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            members = family(self._pid)
            if len(members) > 1:
                self.peak_mb = max(self.peak_mb, sum(map(share_mb, members)))
            self.anonymous_mb = max(self.anonymous_mb, sum(map(anonymous_mb, members)))


def family(pid: int) -> list[int]:
    """A process and all its descendants, whichever thread started them."""
    try:
        children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in _children(task)]
    except OSError:
        children = []
    return [pid, *(member for child in children for member in family(child))]


def _children(task: Path) -> list[int]:
    try:
        return [int(child) for child in (task / "children").read_text().split()]
    except OSError:
        return []


def share_mb(pid: int) -> float:
    """The proportional share of memory of a process (PSS)."""
    return _listed_mb(pid, "smaps_rollup", "Pss:")


def anonymous_mb(pid: int) -> float:
    """The memory of a process without the pages of files."""
    return _listed_mb(pid, "status", "RssAnon:")


def _listed_mb(pid: int, name: str, key: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/{name}").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024 / 1e6


def last_line(text: str) -> str:
    """The last line of what a program said."""
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no message"


def nanoseconds(work: Callable[[], object], repeat: int = 5) -> float:
    """Return the shortest of several times, the first of which may compile."""
    times = []
    for _ in range(repeat + 1):
        start = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - start)
    return float(min(times[1:]))
