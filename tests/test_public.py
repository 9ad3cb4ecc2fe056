"""The public surface: every name is there, documented, and cheap to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import likewise


def test_every_public_name_is_importable_and_documented() -> None:
    for name in likewise.__all__:
        value = getattr(likewise, name)
        assert name == "__version__" or value.__doc__, name
    assert set(likewise.__all__) <= set(dir(likewise))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        likewise.nothing  # noqa: B018


def test_the_contract_of_names() -> None:
    contract = (
        "Banding Chars Dedup MinHash Sets Words choose_k dedup pairs plan tune measures LikewiseError ParameterError"
    )
    assert set(contract.split()) <= set(likewise.__all__)


@pytest.mark.parametrize(
    "statement", ["import likewise", "import likewise.cli", "import likewise.cli.dedup", "import likewise.cli.plan"]
)
def test_import_budget(statement: str) -> None:
    heavy = ("numba", "pyarrow", "numpy", "pandas", "pyspark", "rich")
    code = f"{statement}; import sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_errors_are_drawn_in_their_module_docstring() -> None:
    from likewise import errors

    drawn = errors.__doc__ or ""
    for name in likewise.__all__:
        if name.endswith("Error") or name == "MissingInput":
            assert name in drawn
            assert issubclass(getattr(likewise, name), likewise.LikewiseError)
