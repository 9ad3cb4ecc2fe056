"""The tests of this folder once more by the Python interpreter, those with random examples; in `make soak` all of them,
and with every index checked."""

import ast
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np
import pytest

from likewise import kernels
from likewise.kernels.hashing import mix

HERE = Path(__file__).parent
MODES = {
    "interpreted": {"NUMBA_DISABLE_JIT": "1"},
    "checked": {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1"},  # checked, not fast: it compiles sooner
}
CHOSEN = [
    pytest.param("interpreted", ["-m", "hypothesis"], id="interpreted"),
    pytest.param("interpreted", [], marks=pytest.mark.soak, id="interpreted, all"),
    pytest.param("checked", [], marks=pytest.mark.soak, id="checked"),  # which compiles all kernels: two minutes
]


@pytest.mark.skipif("LIKEWISE_KERNEL_MODE" in os.environ, reason="this is such a run")
@pytest.mark.timeout(600)  # hundreds of tests, and nothing is compiled yet
@pytest.mark.parametrize(("mode", "some"), CHOSEN)
def test_kernels(mode, some):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *some, str(HERE)]
    run = subprocess.run(
        command,
        cwd=HERE.parent.parent,
        env={**os.environ, **MODES[mode], "LIKEWISE_KERNEL_MODE": mode},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert " passed" in run.stdout


def test_compiled_code_has_a_folder_where_one_can_be_made(tmp_path, monkeypatch):
    find = kernels.cache_directory.__wrapped__
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find().is_relative_to(tmp_path)
    assert find() == find()
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert find().is_relative_to(tmp_path), "the temporary folder will do"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(file))
    assert find() is None, "and if there is none, nothing is kept"


@pytest.mark.skipif("LIKEWISE_KERNEL_MODE" not in os.environ, reason="only such a run can tell")
def test_the_mode_is_what_it_says():
    mode = os.environ["LIKEWISE_KERNEL_MODE"]
    assert hasattr(mix, "py_func") == (mode == "checked")
    assert bool(numba.config.BOUNDSCHECK) == (mode == "checked")
    folder = kernels.cache_directory()
    assert folder is None or folder.name.endswith({"interpreted": "-10", "checked": "-01"}[mode])


@pytest.mark.skipif("LIKEWISE_KERNEL_MODE" in os.environ, reason="the sources are the same in all modes")
def test_python_calls_no_kernel_that_has_no_wrapper():
    """Such a call would crash the interpreter."""
    package = HERE.parent.parent / "src" / "likewise"
    for file in package.rglob("*.py"):
        if file.parent.name == "kernels":
            continue
        text = file.read_text()
        if "likewise.kernels" not in text:
            continue
        nodes = list(ast.walk(ast.parse(text)))
        found = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        modules = {}
        for node in found:
            if node.module == "likewise.kernels":
                modules |= {name.asname or name.name: name.name for name in node.names}
            elif (node.module or "").startswith("likewise.kernels."):
                for name in node.names:
                    assert is_open(node.module, name.name), f"{file}: {name.name}"
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                name = f"likewise.kernels.{modules[node.value.id]}"
                assert is_open(name, node.attr), f"{file}: {node.attr}"


def is_open(module, name):
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):  # a name of `likewise.kernels` itself, or of a variable that hides the module
        return True
    return not getattr(function, "targetoptions", {}).get("no_cpython_wrapper")


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compilations_are_watched():
    class Watcher:
        def __init__(self):
            self.told = []

        def watch(self, done, under_way):
            self.told.append((done, under_way))

    importlib.import_module("likewise.kernels.compiler")
    watcher = Watcher()
    kernels.watch_compilation(watcher.watch)
    numba.njit(lambda x: x + 1)(1)
    assert watcher.told == [], "what others compile does not matter"
    numba.njit(mix.py_func)(np.float32(1))
    before = watcher.told[0][0]
    assert [(done - before, under_way) for done, under_way in watcher.told] == [(0, True), (1, False)]
    told = watcher.told
    del watcher
    numba.njit(mix.py_func)(np.int16(1))
    assert len(told) == 2


def test_what_is_compiled_is_known_by_name():
    mix(np.uint64(1))
    kept = kernels.cache_directory() is not None and not numba.config.DISABLE_JIT
    assert kernels.is_compiled("hashing.mix") == kept
    assert not kernels.is_compiled("hashing.mix", "hashing.nothing")
