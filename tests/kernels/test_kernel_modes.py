"""The tests of this folder twice more: by the Python interpreter, and compiled with every index checked."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

from likewise import kernels
from likewise.kernels.hashing import mix

HERE = Path(__file__).parent
MODES = {
    "interpreted": {"NUMBA_DISABLE_JIT": "1"},
    "checked": {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1"},  # checked, not fast: it compiles sooner
}


@pytest.mark.skipif("LIKEWISE_KERNEL_MODE" in os.environ, reason="this is such a run")
@pytest.mark.timeout(600)  # hundreds of tests, and nothing is compiled yet
@pytest.mark.parametrize("mode", MODES)
def test_kernels(mode):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(HERE)]
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
