"""Errors name the function the user called, and a parameter without effect in a call is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise import ParameterError, Sets, Tokens

TEXTS = ["a b c d e f", "a b c d e f", "x"]
VECTORS = np.ones((3, 2))
SETS = Sets.from_lists([["a", "b"], ["a", "b"], ["c"]])

CALLS: dict[str, Callable[..., Any]] = {
    "dedup": lambda **options: likewise.dedup(TEXTS, **options),
    "pairs": lambda **options: likewise.pairs(TEXTS, **options),
    "plan": lambda **options: likewise.plan(TEXTS, **options),
    "nearest": lambda **options: likewise.nearest(VECTORS, **options),
}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("dedup pairs plan", {"threshold": 2}),
    ("dedup pairs plan nearest", {"recall": 1}),
    ("dedup pairs plan nearest", {"seed": -1}),
    ("dedup pairs plan nearest", {"method": "best"}),
    ("dedup pairs plan nearest", {"threads": 0}),
    ("dedup pairs plan nearest", {"memory": "lots"}),
    ("dedup pairs plan", {"ignore_common": 2}),
    ("dedup pairs plan", {"certify": -1}),
    ("dedup pairs plan", {"sketch": "slow"}),
    ("dedup pairs plan", {"max_slots": 0}),
    ("dedup pairs plan", {"on_error": "ignore"}),
    ("dedup pairs plan", {"encoding_errors": "drop"}),
    ("dedup pairs plan", {"lines": 1}),
    ("dedup pairs", {"batch_rows": 0}),
    ("pairs nearest", {"measure": "dot"}),
    ("pairs nearest", {"k": 0}),
    ("dedup", {"keep": "best"}),
]


@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for names, options in WRONG for name in names.split()], ids=str
)
def test_errors_name_the_function_called(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"The '{next(iter(options))}' parameter of {name} must be"):
        CALLS[name](**options)


def test_errors_of_rethreshold(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b c\n")
    likewise.dedup(tmp_path / "a.txt", out=tmp_path / "run")
    wrong: list[dict[str, Any]] = [{"threshold": 2}, {"keep": "best"}, {"threads": 0}]
    for options in wrong:
        with pytest.raises(ParameterError, match=f"The '{next(iter(options))}' parameter of rethreshold must be"):
            likewise.rethreshold(tmp_path / "run", **options)


UNUSED: list[tuple[str, dict[str, Any], str]] = [
    *(
        (name, {"method": "exact", **options}, "with method='exact'")
        for name in ("dedup", "pairs", "plan")
        for options in (
            {"recall": 0.9}, {"sketch": "classic"}, {"bands": 3, "rows": 2}, {"max_slots": 100}, {"certify": 10},
        )
    ),
    ("nearest", {"method": "exact", "recall": 0.9}, "with method='exact'"),
    ("pairs", {"bands": 3, "rows": 2, "max_slots": 10}, "with 'bands' and 'rows'"),
    ("pairs", {"measure": "dice", "recall": 0.9}, "with measure='dice', which is an exact search"),
    ("pairs", {"explain": True, "bands": 3, "rows": 2}, "with explain=True, which is an exact search"),
    ("pairs", {"within": 3}, "with measure='jaccard', which compares sets"),
    ("pairs", {"measure": "dice", "vector": "v"}, "with measure='dice', which compares sets"),
    ("pairs", {"lines": True}, "for objects in memory"),
    ("dedup", {"lines": True}, "for objects in memory"),
    ("dedup", {"fresh": True}, "without 'out'"),
    ("dedup", {"state": False}, "without 'out'"),
    ("nearest", {"vector": "v"}, "for arrays, which have no columns"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "why"), UNUSED, ids=str)
def test_a_parameter_without_effect_is_an_error(name: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ParameterError) as caught:
        CALLS[name](**options)
    message = str(caught.value)
    assert f"parameter of {name} has no effect {why}. Leave it out." in message
    assert any(f"The '{option}' " in message for option in options)


@pytest.mark.parametrize(
    "options",
    [
        {"text": "body"}, {"on_error": "skip"}, {"encoding_errors": "replace"}, {"lines": True}, {"html": True},
        {"batch_rows": 5}, {"shingle": "words:3"}, {"shingle": Tokens()}, {"id": "key"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", ["dedup", "pairs", "two"])
def test_sets_are_not_read(name: str, options: dict[str, Any]) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "dedup": lambda: likewise.dedup(SETS, **options),
        "pairs": lambda: likewise.pairs(SETS, **options),
        "two": lambda: likewise.pairs(SETS, SETS, measure="dice", **options),
    }
    with pytest.raises(ParameterError, match=f"The '{next(iter(options))}' parameter of .* has no effect for Sets"):
        calls[name]()


@pytest.mark.parametrize(
    "options",
    [
        {"shingle": "words:3"}, {"threshold": 0.7}, {"sketch": "classic"}, {"bands": 2, "rows": 2}, {"max_slots": 9},
        {"certify": 0}, {"ignore_common": 0.1}, {"text": "body"}, {"on_error": "skip"}, {"lines": True},
        {"encoding_errors": "replace"}, {"html": True}, {"batch_rows": 5}, {"explain": True}, {"shingle": Tokens()},
    ],
    ids=str,
)  # fmt: skip
def test_options_of_documents_have_no_effect_on_vectors(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"The '{next(iter(options))}' parameter of pairs has no effect"):
        likewise.pairs(VECTORS, measure="l2", within=1, **options)


def test_the_column_of_vectors_needs_a_table(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    table = pa.table({"v": VECTORS.tolist()})
    for source in (VECTORS, VECTORS.tolist(), tmp_path / "v.npy", [str(tmp_path / "v.npy")]):
        with pytest.raises(ParameterError, match="'vector' parameter of nearest has no effect for arrays"):
            likewise.nearest(source, vector="v")
        assert len(likewise.nearest(source, 1, other=table, vector="v")) == 3


def test_hashing_serves_no_measure_of_sets_but_jaccard() -> None:
    for options in ({"measure": "cosine"}, {"explain": True}):
        with pytest.raises(ParameterError, match=r"'method' parameter of pairs must be 'auto' or 'exact' with"):
            likewise.pairs(TEXTS, method="lsh", **options)


def test_what_has_an_effect_is_no_error() -> None:
    table = pa.table({"body": TEXTS, "key": list("abc")})
    assert likewise.dedup(table, text="body", id="key", html=False, batch_rows=1).stats["counts"]["kept"] == 2
    assert len(likewise.pairs(SETS, threshold=0.5, method="lsh", recall=0.999, bands=20, rows=2)) == 1
    assert len(likewise.pairs(VECTORS, measure="l2", within=0, recall=0.9, seed=3)) == 3


def test_options_of_other_files_are_errors(tmp_path) -> None:
    (tmp_path / "table.csv").write_text("text\na b c\n")
    (tmp_path / "lines.txt").write_text("a b c\n")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "note.txt").write_text("a b c\n")
    with pytest.raises(ParameterError, match="'lines' parameter of dedup has no effect for tables"):
        likewise.dedup(str(tmp_path / "table.csv"), lines=True)
    with pytest.raises(likewise.ColumnError, match="there is no column 'body'; the columns are: path, text"):
        likewise.dedup(str(tmp_path / "one"), text="body")
    assert likewise.dedup(str(tmp_path / "lines.txt"), lines=True).stats["counts"]["items"] == 1
