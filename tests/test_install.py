"""Every install works: the wheel without extras, with each extra alone, and with all of them.

`make test` has the plain wheel, in an environment that is linked together without the network. `make soak` installs
every variant with pip, for each Python that the wheel is for, and writes out/installs.csv.
"""

import csv
import importlib
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from installed import (
    CALLS,
    EXTRA_CALLS,
    PROGRAMS,
    ROOT,
    Installed,
    build_wheel,
    installed_environment,
    plain_environment,
    python_of,
    requirements,
    versions,
)
from likewise.base.extras import EXTRAS
from likewise.cli import COMMANDS

NO_PAGE = "no report: pip install 'likewise[report]' for a page about the result (or --no-report)\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory, wheel) -> Installed:
    folder = tmp_path_factory.mktemp("plain")
    return Installed(plain_environment(folder / "env", wheel, folder / "cache"), folder / "inputs", folder / "cache")


def test_every_command_has_a_call():
    called = {tuple(line.split()[: 2 if line.startswith("index") else 1]) for line in (*CALLS, *EXTRA_CALLS)}
    index = importlib.import_module("likewise.cli.index").index
    assert called == {(name,) for name in COMMANDS if name != "index"} | {("index", name) for name in index.commands}


def test_the_extras_are_those_of_the_wheel(wheel):
    """What the errors name is what pip installs, and [all] is all of it."""
    names = {"sklearn": "scikit-learn", "huggingface_hub": "huggingface-hub"}
    found: dict[str, set[str]] = {}
    for one in requirements(wheel):
        for extra in (*EXTRAS, "all"):
            if one.marker is not None and one.marker.evaluate({"extra": extra}):
                found.setdefault(extra, set()).add(one.name)
    assert found.pop("all") == set().union(*found.values())
    assert found == {extra: {names.get(name, name) for name in modules} for extra, modules in EXTRAS.items()}
    assert set(EXTRA_CALLS.values()) == set(EXTRAS) - {"sklearn"}
    assert set(PROGRAMS.values()) == set(EXTRAS)


def test_the_plain_wheel_is_alone(plain):
    others = sorted({name for modules in EXTRAS.values() for name in modules} | {"scipy", "pandas", "polars", "pytest"})
    code = f"from importlib.util import find_spec; print([name for name in {others} if find_spec(name)])"
    assert plain.answers(code) == "[]\n"
    assert plain.answers("import likewise; print(likewise.__file__)").startswith(str(plain.python.parent.parent))


@pytest.mark.timeout(900)
def test_every_command_of_the_plain_wheel_does_its_job(plain):
    """One command is a process, by the script of pip; the others share one. `make soak` starts each of them, and
    compiles."""
    calls = [line for line in CALLS if line != "warmup"]
    for line, done in zip(calls, [plain(calls[0]), *plain.at_once(calls[1:])], strict=True):
        assert done.returncode == 0, (line, done.stderr)
        page = _folder(plain, line) is not None and "--no-report" not in line
        assert _said(done.stderr) == (NO_PAGE if page else ""), line


@pytest.mark.timeout(900)
def test_a_command_of_the_plain_wheel_names_the_extra_before_it_begins(plain):
    calls = [line.replace("library", "shelf") for line in EXTRA_CALLS]
    made, *answers, info = plain.at_once(["index create shelf", *calls, "index info shelf --json"])
    assert made.returncode == 0
    for (line, extra), done in zip(EXTRA_CALLS.items(), answers, strict=True):
        _names_the_extra(plain, line, done, extra)
    assert json.loads(info.stdout)["count"] == 0


def test_a_program_with_the_plain_wheel_gets_the_same_error(plain):
    raised = _raised(plain, {**PROGRAMS, "likewise.pairs(texts).to_pandas()": "pandas"})
    assert set(raised.values()) == {"MissingExtra"}, raised


def _folder(there: Installed, line: str) -> Path | None:
    """Return the folder of the result that a call wrote, if it did."""
    words = line.split()
    name = words[1] if words[0] == "rethreshold" else words[words.index("--out") + 1] if "--out" in words else None
    return there.folder / name if name and (there.folder / name / "run.json").is_file() else None


def _said(errors: str) -> str:
    """Return what was said on standard error, but for progress: what takes long the first time on a machine."""
    return "".join(line for line in errors.splitlines(keepends=True) if not re.search(r"…$|^\d+ s: ", line))


def _names_the_extra(there: Installed, line: str, done: subprocess.CompletedProcess[str], extra: str) -> None:
    assert done.returncode == 1, (line, done)
    assert done.stdout == "", line
    assert done.stderr.count("\n") == 1, (line, done.stderr)
    assert done.stderr.endswith(f": pip install 'likewise[{extra}]'\n"), (line, done.stderr)
    assert not (there.folder / "out").exists(), line


def _raised(there: Installed, programs: dict[str, str]) -> dict[str, str]:
    """Return which error each program ends with; none if it ends well."""
    return json.loads(
        there.answers(
            f"""
import json, likewise
texts = ["a rose is a rose is a rose", "a rose is a rose is a rose"]
raised = {{}}
for program in {list(programs)}:
    try:
        eval(program)
        raised[program] = ""
    except likewise.LikewiseError as error:
        raised[program] = type(error).__name__
print(json.dumps(raised))"""
        ).splitlines()[-1]
    )


VARIANTS = [*EXTRAS, "all", "plain"]
COMPILED = ("warmup", "demo", "plan")
"""Commands that take for ever without a compiler: they compile, read much, or measure the kernels."""


@pytest.fixture(scope="module")
def rows():
    """Gather a row for each command, and put them in the table at the end."""
    made: list[tuple[str, str, str, int, float]] = []
    yield made
    path, run = ROOT / "out" / "installs.csv", {row[:2] for row in made}
    path.parent.mkdir(exist_ok=True)
    before = list(csv.reader(path.read_text().splitlines()))[1:] if path.exists() else []
    with path.open("w", newline="") as file:  # a variant that was not run now keeps its rows
        head = ("python", "extra", "command", "exit_code", "seconds")
        csv.writer(file).writerows([head, *(row for row in before if tuple(row[:2]) not in run), *made])


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("version", versions())
def test_every_variant(tmp_path, wheel, rows, version, variant):
    """The plain wheel and the full one run all commands; one with a single extra, those that need any.

    All but the plain wheel interpret their kernels: which packages are there makes no difference to machine code.
    """
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    place, began, plain = tmp_path / version, time.perf_counter(), variant == "plain"
    made = installed_environment(place / "env", python, wheel, "" if plain else variant)
    there = Installed(made, place / "inputs", place / "cache", compiled=plain)
    rows.append((version, variant, "pip install", 0, round(time.perf_counter() - began, 1)))
    has = {extra for extra in EXTRAS if variant in ("all", extra)}
    short = ["dedup docs.jsonl --out clean", "index create library"]
    some = CALLS if plain else [line for line in CALLS if not line.startswith(COMPILED)] if variant == "all" else short
    for line in [*some, *EXTRA_CALLS]:
        began = time.perf_counter()
        done = there(line)
        rows.append((version, variant, line, done.returncode, round(time.perf_counter() - began, 1)))
        extra = EXTRA_CALLS.get(line)
        if extra is not None and extra not in has:
            _names_the_extra(there, line, done, extra)
        elif extra == "redis":
            assert (done.returncode, "cannot be reached" in done.stderr) == (1, True), done
        elif extra == "remote" and "--out memory" not in line:  # nothing is in the memory of a new process
            assert (done.returncode, "there is no such object" in done.stderr) == (1, True), done
        elif extra == "spark" and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            assert (done.returncode, "Java" in done.stderr) == (1, True), done
        else:
            assert done.returncode == 0, (line, done.stderr)
            result = _folder(there, line)
            if result is not None and "--no-report" not in line:
                assert (result / "report.html").exists() == ("report" in has), line
                assert _said(done.stderr) == ("" if "report" in has else NO_PAGE), line
        shutil.rmtree(there.folder / "out", ignore_errors=True)
    raised = _raised(there, PROGRAMS)
    missing = {program for program, kind in raised.items() if kind == "MissingExtra"}
    assert missing == {program for program, extra in PROGRAMS.items() if extra not in has}, raised
    shutil.rmtree(place)


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (["E: Could not get lock /var/lib/apt/lists/lock."] * 3, ""),
        (["E: Could not get lock /var/lib/apt/lists/lock."] * 9, "apt-get update: E: Could not get lock"),
        (["E: Unable to locate package"], "apt-get update: E: Unable to locate package"),
    ],
)
def test_debian_packages_wait_for_another_apt(tmp_path, fails, said):
    """A stand-in for apt-get fails some times, then pretends to install."""
    bin = tmp_path / "bin"
    bin.mkdir()
    (tmp_path / "fails").write_text("".join(f"{line}\n" for line in fails))
    programs = {
        "id": "echo 0",
        "apt-get": """
            if [ -s fails ]; then head -n 1 fails >&2; sed -i 1d fails; exit 100; fi
            echo "$*" >> done
            case "$*" in *install*) for name in java chromium chromedriver redis-server; do
              echo : > "$BIN/$name"; chmod +x "$BIN/$name"; done;; esac""",
    }
    for name, lines in programs.items():
        (bin / name).write_text(f"#!/bin/sh\n{lines}\n")
        (bin / name).chmod(0o755)
    for name in ("sh", "sed", "head", "sleep", "chmod"):
        (bin / name).symlink_to(shutil.which(name))
    environment = {"PATH": str(bin), "BIN": str(bin), "TRIES": "6", "PAUSE": "0"}
    done = subprocess.run(
        ["sh", ROOT / "tools" / "debian.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert said in done.stderr
    assert bool(done.stderr) == bool(said)
    if said:
        assert "There is no Java here: the tests of the Spark engine are skipped." in done.stdout
    else:
        assert done.stdout == ""
        assert (tmp_path / "done").read_text().splitlines() == [
            "-qq -o DPkg::Lock::Timeout=600 update",
            "-qq -o DPkg::Lock::Timeout=600 install -y openjdk-17-jre-headless",
        ]
