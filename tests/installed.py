"""likewise as users install it: the wheel in an environment of its own, in which nothing is that it did not ask for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

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


def plain_environment(folder: Path, wheel: Path) -> Path:
    """Make an environment with the wheel and what it asks for without extras; return its Python.

    The packages are those of this environment, linked: nothing is copied, and the network is not asked.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--no-index", "--no-compile", str(wheel)],
        check=True, timeout=LONGEST,
    )  # fmt: skip
    packages = next((folder / "lib").glob("python3*")) / "site-packages"
    for found in _closure(requirements(wheel)).values():
        for name in {file.parts[0] for file in found.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            (packages / name).symlink_to(Path(str(found.locate_file(name))))
    return python


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


class Installed:
    """The command line of an environment, in a folder of inputs."""

    def __init__(self, python: Path, folder: Path, cache: Path | None = None) -> None:
        self.python = python
        self.folder = folder
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE", "PYTEST"))
        }
        if cache is not None:
            self.environment["NUMBA_CACHE_DIR"] = str(cache)

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a user does."""
        return self._run(str(self.python.with_name("likewise")), *words)

    def code(self, lines: str) -> subprocess.CompletedProcess[str]:
        """Run a program."""
        return self._run(str(self.python), "-c", lines)

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=LONGEST
        )

    def empty(self, *names: str) -> None:
        """Remove results."""
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)
