"""The public surface: every name is there, documented, and cheap to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import likewise

PUBLIC = {
    "functions": "articles candidates choose_k decontaminate dedup explain fingerprints identical link mirrors "
    "nearest pairs passages plan recommend relink rethreshold tune write_report",
    "index": "Index",
    "results": "Articles Decontamination Dedup DedupUnits DedupVectors Explanation Fingerprints Forecast Links "
    "Mirrors Nearest Pairs Passages Recommendations",
    "sets and shinglers": "Chars Keep Sets StopWords Tokens Urls Words",
    "families": "Banding BitSampling BitSignatures CauchyLines GridTriples Hyperplanes MinHash RandomLines SameField "
    "SignSketch Signatures SimHash Similarities Stripes UnaryCode WeightedMinHash",
    "errors": "ColumnError DamagedError FormatError IncompatibleError InputError LikewiseError MissingExtra "
    "MissingInput OutputError ParameterError TextError",
    "modules": "apps exact measures theory",
    "version": "__version__",
}
NAMES = sorted(name for names in PUBLIC.values() for name in names.split())


def test_these_are_all_public_names() -> None:
    assert sorted(likewise.__all__) == NAMES
    assert dir(likewise) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_importable_and_documented(name: str) -> None:
    value = getattr(likewise, name)
    assert name == "__version__" or value.__doc__


@pytest.mark.parametrize("name", [*PUBLIC["functions"].split(), *PUBLIC["results"].split(), PUBLIC["index"]])
def test_a_name_is_a_function_or_a_class(name: str) -> None:
    """A function is not hidden by a module of its name."""
    value = getattr(likewise, name)
    assert callable(value)
    assert value.__name__ == name


@pytest.mark.parametrize("name", ["articles", "fingerprints", "link", "mirrors", "passages", "recommend"])
def test_applications_are_found_by_their_name(name: str) -> None:
    """One name in Python, on the command line and in the folder."""
    from likewise.cli import COMMANDS

    assert name in COMMANDS
    assert getattr(likewise, name).__module__.startswith(f"likewise.apps.{name}")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        likewise.nothing  # noqa: B018


@pytest.mark.parametrize(
    "statement",
    [
        "import likewise",
        "import likewise.cli",
        "import likewise.cli.dedup",
        "import likewise.cli.plan",
        "import likewise.cli.index",
        "import likewise.cli.serve",
    ],
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
