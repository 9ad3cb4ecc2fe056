"""likewise as users install it: the wheel in an environment of its own, in which nothing is that it did not ask for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from made_inputs import write_for_applications

ROOT = Path(__file__).parent.parent
LONGEST = 500
"""Seconds a command may take: a kernel of any of them may have to be compiled, on a busy machine."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout, without the network."""
    made = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=LONGEST,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def requirements(wheel: Path) -> list[Requirement]:
    """Return what the wheel asks for, its extras included."""
    from zipfile import ZipFile

    with ZipFile(wheel) as packed:
        name = next(name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        lines = packed.read(name).decode().split("\n\n")[0].splitlines()
    return [Requirement(line.removeprefix("Requires-Dist: ")) for line in lines if line.startswith("Requires-Dist: ")]


def plain_environment(folder: Path, wheel: Path, cache: Path) -> Path:
    """Make an environment with the wheel and what it asks for without extras; return its Python.

    The packages are those of this environment, linked: nothing is copied, and the network is not asked. So is the
    machine code of the kernels, which have the same source: cache is the folder in which it will be looked for.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *words], check=True, timeout=LONGEST)
    packages = _packages(folder)
    for found in _closure(requirements(wheel)).values():
        for name in {file.parts[0] for file in found.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            (packages / name).symlink_to(Path(str(found.locate_file(name))))
    share_kernels(cache)
    return python


def _packages(folder: Path) -> Path:
    return next((folder / "lib").glob("python3*")) / "site-packages"


def share_kernels(cache: Path) -> None:
    """Let kernels elsewhere use the machine code of ours, which have the same source."""
    from likewise import kernels

    own = kernels.cache_directory()
    if own is not None:
        (cache / "likewise" / "kernels").mkdir(parents=True)
        (cache / "likewise" / "kernels" / own.name).symlink_to(own)


def installed_environment(folder: Path, python: str, wheel: Path, extra: str) -> Path:
    """Make an environment by pip, with the wheel and at most one extra; return its Python."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True, timeout=LONGEST)
    made = folder / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    words = ["install", "-qq", "--disable-pip-version-check", "--no-compile", wanted]
    subprocess.run([str(made), "-m", "pip", *words], check=True, timeout=4 * LONGEST)
    return made


def versions() -> list[str]:
    """Return the versions of Python that the wheel is for."""
    return re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def python_of(version: str) -> str | None:
    """Return an interpreter of a version; None if there is none here."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return _python(version, [f"python{version}", *map(str, root.glob(f"{version}.*/bin/python"))])


def _python(version: str, names: list[str]) -> str | None:
    """Return the first of these programs that is a Python of this version and can make environments."""
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    for name in filter(shutil.which, names):
        done = subprocess.run([name, "-c", code], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return name
    return None


def _closure(wanted: list[Requirement]) -> dict[str, Distribution]:
    """Return the distributions that are wanted without an extra, with all that they want in turn."""
    found: dict[str, Distribution] = {}
    while wanted:
        one = wanted.pop()
        key = one.name.lower().replace("_", "-")
        if key in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        found[key] = distribution(one.name)
        wanted += [Requirement(text) for text in found[key].requires or []]
    return found


ONE_PROCESS = """
import contextlib, io, json, sys
from likewise.cli import run
for line in json.loads(sys.argv[1]):
    sys.argv = ["likewise", *line.split()]
    said, errors, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        try:
            run()
        except SystemExit as ended:
            code = ended.code
    print(json.dumps([code, said.getvalue(), errors.getvalue()]))
"""


class Installed:
    """likewise in an environment, as a user has it, in a folder of inputs; its kernels compiled or interpreted."""

    def __init__(self, python: Path, folder: Path, cache: Path, *, compiled: bool = True) -> None:
        self.python = python
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.environment |= {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": str(int(not compiled))}
        if not compiled:
            self.environment["PYTHONWARNINGS"] = "ignore::RuntimeWarning"
        write_inputs(folder)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return self._started(str(self.python.with_name("likewise")), *words)

    def answers(self, code: str) -> str:
        """Run a program; return what it prints."""
        done = self._started(str(self.python), "-W", "error", "-W", WRAPS, "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def serve(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Start a service, and stop it as soon as it listens."""
        with subprocess.Popen(
            [str(self.python.with_name("likewise")), *words],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as service:  # fmt: skip
            assert service.stdout is not None
            first = service.stdout.readline()
            if first:
                service.terminate()
            rest, errors = service.communicate(timeout=LONGEST)
        return subprocess.CompletedProcess(words, service.returncode, first + rest, errors)

    def __call__(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of CALLS."""
        return self.serve(*line.split()) if line.startswith("serve") else self.run(*line.split())

    def at_once(self, lines: list[str]) -> list[subprocess.CompletedProcess[str]]:
        """Run commands one after another in one process, which imports all there is in the environment once."""
        done = self._started(str(self.python), "-c", ONE_PROCESS, json.dumps(lines))
        assert done.returncode == 0, done.stderr
        said = [json.loads(line) for line in done.stdout.splitlines()]
        return [subprocess.CompletedProcess(line, *one) for line, one in zip(lines, said, strict=True)]

    def _started(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=LONGEST
        )


WRAPS = "ignore:overflow encountered:RuntimeWarning"
"""NumPy warns of what interpreted kernels do on purpose, and compiled ones silently."""
SENTENCE = "the quick brown fox jumps over the lazy dog and runs far away from number"
PAGE = f"<html><title>A page</title><body><p>{SENTENCE} one</p></body></html>"


def write_inputs(folder: Path) -> None:
    """Write an input for every call."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [f"{SENTENCE} {number // 2} {SENTENCE}" for number in range(8)]
    lines = [json.dumps({"id": f"d{number}", "text": text}) for number, text in enumerate(texts)]
    (folder / "docs.jsonl").write_text("\n".join(lines) + "\n")
    for number in (0, 1):
        (folder / f"{number}.txt").write_text(texts[number])
    (folder / "pages").mkdir(exist_ok=True)
    for name in ("a.html", "b.html"):
        (folder / "pages" / name).write_text(PAGE)
    answer = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{PAGE}"
    for name, kind, mime, body in (
        ("web.warc", "response", "application/http; msgtype=response", answer),
        ("text.wet", "conversion", "text/plain", SENTENCE),
    ):
        head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.org/\r\nContent-Type: {mime}\r\n"
        whole = f"{head}Content-Length: {len(body)}\r\n\r\n{body}\r\n\r\n"
        (folder / name).write_bytes(whole.encode())
    write_for_applications(folder)


CALLS = """
dedup docs.jsonl --out clean
dedup docs.jsonl --method lsh --out hashed
dedup docs.jsonl --against clean --no-report --out again
dedup text.wet --out wet
rethreshold clean --threshold 0.9
rethreshold hashed --threshold 0.9
pairs docs.jsonl --out found
pairs vectors.npy --measure angle --within 20 --out near.csv
nearest vectors.npy -k 2 --out nearest
index create library
index add library docs.jsonl
index query library docs.jsonl --out answers
index info library
index check library
index remove library 0
index compact library
link people.csv others.csv --validate born --out linked
passages 0.txt --sources 1.txt --out copied
decontaminate 0.txt --tests 1.txt --out untested
dedup docs.jsonl --unit lines --out single
dedup vectors.npy --measure l2 --within 1 --out apart
explain 0.txt 1.txt --html why.html
explain clean 0 1
articles docs.jsonl --out stories
mirrors urls.txt --out hosts
recommend ratings.csv --out taste
fingerprints prints.csv --out fingers
plan docs.jsonl
plan docs.jsonl --method lsh --engine spark --machines 4 --cores-per-machine 8
tune --threshold 0.8
completion bash
warmup
demo
""".strip().splitlines()
"""Calls that need no extra; each leaves exit code 0, and at most one line about a page that is not written."""

EXTRA_CALLS = {
    "report clean": "report",
    "tune --threshold 0.8 --plot curve.svg": "plot",
    "dedup docs.jsonl --html --out out": "html",
    "dedup web.warc --out out": "html",
    "pairs docs.jsonl --html --out out": "html",
    "articles pages --out out": "html",
    "index add library docs.jsonl --html": "html",
    "dedup docs.jsonl --engine spark --master local[1] --out out": "spark",
    "pairs docs.jsonl --engine spark --master local[1] --out out": "spark",
    "decontaminate docs.jsonl --tests docs.jsonl --engine spark --master local[1] --out out": "spark",
    "index create redis://localhost:1/0?name=none": "redis",
    "dedup docs.jsonl --against redis://localhost:1/0?name=none --out out": "redis",
    "serve library --port 0": "serve",
    "dedup memory://bucket/docs.jsonl --out out": "remote",
    "dedup docs.jsonl --out memory://bucket/out": "remote",
}
"""Calls, and the extra that each needs."""

PROGRAMS = {
    "likewise.dedup('s3://bucket/a.parquet')": "remote",
    "likewise.Banding(20, 5).plot()": "plot",
    "likewise.pairs(texts).plot()": "plot",
    "likewise.write_report('clean')": "report",
    "__import__('likewise.sklearn')": "sklearn",
    "likewise.dedup(texts, html=True)": "html",
    "likewise.Index.create('redis://localhost:1/0?name=none')": "redis",
    "likewise.dedup(texts, engine='spark', master='local[1]')": "spark",
    "__import__('likewise.serve')": "serve",
}
"""Expressions in Python, and the extra that each needs."""
