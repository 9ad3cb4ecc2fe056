"""The tables of results as DataFrames of pandas and polars."""

import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likewise

TEXTS = ["a b c d e f", "a b c d e f", "a b c d e f!", "nothing of the kind"]
FRAMES = {"to_pandas": pd.DataFrame, "to_polars": pl.DataFrame}


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False) if isinstance(frame, pd.DataFrame) else frame.to_arrow()


@pytest.mark.parametrize("way", FRAMES)
def test_a_result_of_one_table(way):
    found = likewise.pairs(TEXTS)
    frame = getattr(found, way)()
    assert isinstance(frame, FRAMES[way])
    assert arrow(frame).to_pylist() == found.to_pylist() != []
    assert arrow(getattr(found, way)("table")).to_pylist() == found.to_pylist()


@pytest.mark.parametrize("way", FRAMES)
def test_a_result_of_several_tables(way):
    result = likewise.dedup(pa.table({"text": TEXTS, "stars": [1, 2, 3, 4]}))
    frames = getattr(result, way)()
    assert [*frames] == ["kept", "removed", "pairs", "clusters"]
    for name, frame in frames.items():
        assert isinstance(frame, FRAMES[way])
        assert arrow(frame).to_pylist() == getattr(result, name).to_pylist() != []
        assert arrow(getattr(result, way)(name)).equals(arrow(frame))


@pytest.mark.parametrize("way", FRAMES)
def test_tables_that_a_run_has_not(way):
    people = {"id": ["a", "b"], "name": ["Ana Souza", "Ana Sousa"], "phone": ["212-376-4411"] * 2}
    links = likewise.link(people)
    frames = getattr(links, way)()
    assert links.validation is None
    assert getattr(links, way)("validation") is None
    assert "validation" not in frames
    assert {"matches", "clusters"} <= set(frames)
    sets = likewise.dedup(likewise.Sets.from_lists([["a"], ["a"]]))  # what is kept of sets is sets, not a table
    assert [*getattr(sets, way)()] == ["removed", "pairs", "clusters"]


@pytest.mark.parametrize("way", FRAMES)
def test_a_wrong_name(way):
    with pytest.raises(likewise.ParameterError, match=rf"The 'name' parameter of {way} must be .*'removed'"):
        getattr(likewise.dedup(TEXTS), way)("removd")


@pytest.mark.parametrize("way", FRAMES)
def test_without_the_library(way, monkeypatch):
    library = way.removeprefix("to_")
    found = likewise.pairs(TEXTS)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(likewise.LikewiseError, match=f"^{way} needs {library}: pip install {library}$"):
        getattr(found, way)()


def test_polars_uses_the_memory_of_arrow():
    found = likewise.pairs(["a b c d e f"] * 50)
    frame = found.to_polars()
    assert frame.height == 50 * 49 // 2
    address = found.table.column("similarity").chunk(0).buffers()[1].address
    assert frame["similarity"].to_arrow().buffers()[1].address == address
