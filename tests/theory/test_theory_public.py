"""The names of likewise.theory: all there, documented, sorted, and needed by nothing else."""

import subprocess
import sys

from likewise import theory


def test_every_public_name_is_there_and_documented():
    for name in theory.__all__:
        value = getattr(theory, name)
        assert value.__doc__, name
        assert value.__module__.startswith("likewise.theory."), name
    assert theory.__all__ == sorted(theory.__all__)


def test_theory_loads_neither_kernels_nor_arrow_and_searching_does_not_load_theory():
    for statement, absent in [
        ("import likewise.theory", ["numba", "pyarrow", "likewise.kernels"]),
        ("import likewise; likewise.dedup, likewise.MinHash, likewise.pairs", ["likewise.theory"]),
    ]:
        code = f"{statement}; import sys; print([m for m in {absent!r} if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", statement
