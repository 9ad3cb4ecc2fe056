"""The tests of this folder twice more: by the Python interpreter, and compiled with every index checked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODES = {"interpreted": {"NUMBA_DISABLE_JIT": "1"}, "checked": {"NUMBA_BOUNDSCHECK": "1"}}


@pytest.mark.skipif("LIKEWISE_KERNEL_MODE" in os.environ, reason="this is such a run")
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


@pytest.mark.skipif("LIKEWISE_KERNEL_MODE" not in os.environ, reason="only such a run can tell")
def test_the_mode_is_what_it_says():
    import numba

    from likewise.kernels import cache_directory
    from likewise.kernels.hashing import mix

    mode = os.environ["LIKEWISE_KERNEL_MODE"]
    assert hasattr(mix, "py_func") == (mode == "checked")
    assert bool(numba.config.BOUNDSCHECK) == (mode == "checked")
    folder = cache_directory()
    assert folder is None or folder.name.endswith({"interpreted": "-10", "checked": "-01"}[mode])
