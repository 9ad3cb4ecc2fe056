"""A glimpse of an input: how many documents there are, from a little of it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.errors import InputError
from likewise.io.read import Files, ReadOptions, open_source
from likewise.io.read.glimpse import glimpse
from likewise.io.read.stretches import spread
from made_inputs import documents, make

EXACT = ["a.parquet", "one-group.parquet", "file.arrow", "packed.feather", "stream.arrow", "folder"]
ROWS = ["a.jsonl", "a.csv", "a.tsv", "lines.txt"]
PACKED = ["a.jsonl.gz", "a.jsonl.zst", "a.csv.bz2", "a.jsonl.xz"]


def looked_at(path: Path, size: int, places: int = 16) -> Any:
    options = ReadOptions(lines=path.name == "lines.txt")
    return glimpse(open_source(Files([path]), options), size, places)


@pytest.mark.parametrize("name", EXACT + ROWS + PACKED)
def test_a_small_input_is_seen_as_a_whole(tmp_path: Path, name: str) -> None:
    texts = documents(300)
    seen = looked_at(make(tmp_path, name, texts), 1 << 22)
    assert (seen.documents, seen.exact) == (300, True)
    assert seen.seen == 300
    if ".csv" not in name and ".tsv" not in name:  # in which a third of the texts is a little longer
        assert seen.text == sum(map(len, texts))
    assert seen.read > 0
    assert seen.rewrite > 0
    assert seen.broken == 0


@pytest.mark.parametrize("name", EXACT)
def test_formats_that_tell_are_counted_exactly(tmp_path: Path, name: str) -> None:
    seen = looked_at(make(tmp_path, name, documents(2000)), 1 << 16)
    assert (seen.documents, seen.exact) == (2000, True)
    assert 0 < seen.seen < 2000


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_estimated_without_bias(tmp_path: Path, name: str) -> None:
    """Rows start like the events of a renewal process: so many in so many bytes, with variance n · cv².

    The ends of windows add less than one row each, uniformly: a variance of 1/12.
    """
    texts = documents(6000)
    path = make(tmp_path, name, texts)
    sizes = np.array([len(text) for text in texts]) + 20.0
    cv = sizes.std() / sizes.mean()
    places, size = 32, 1 << 19
    seen = looked_at(path, size, places)
    assert not seen.exact
    rows = size / (path.stat().st_size / 6000)
    deviation = np.sqrt(rows * cv**2 + places / 12) / rows
    assert abs(seen.documents / 6000 - 1) < 4 * deviation
    mean = np.sqrt(cv**2 / rows)
    assert abs(seen.text / seen.documents / (np.mean([len(text) for text in texts])) - 1) < 4 * mean + 0.06
    assert 0.2 * rows < seen.seen < 2 * rows


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_file_is_judged_by_its_beginning(tmp_path: Path, name: str) -> None:
    texts = documents(6000)
    seen = looked_at(make(tmp_path, name, texts), 1 << 20)
    sizes = np.array([len(text) for text in texts])
    rows = seen.seen
    assert 100 < rows < 6000
    # the ratio of packing is the same all over; steps of unpacking add up to 64 kB at either end
    assert abs(seen.documents / 6000 - 1) < 4 * sizes.std() / sizes.mean() / np.sqrt(rows) + 0.1


def test_many_files_are_looked_into_all_over(tmp_path: Path) -> None:
    for part in range(40):
        make(tmp_path, f"{part:02}.jsonl", documents(200, part, mean=20 if part < 20 else 100))
    seen = looked_at(tmp_path, 1 << 19, 40)
    assert len(seen.stretches) >= 38
    assert seen.files == 40
    # half of the windows lie in files of short documents, as they have a sixth of the bytes: √6 / √rows
    assert abs(seen.documents / 8000 - 1) < 4 * np.sqrt(6 / seen.seen)


def test_long_rows_are_not_favoured(tmp_path: Path) -> None:
    """A row in ten is 20 kB long. A look meets 13 of these; 32 looks together err by 1 / √(13 · 32) = 5 %."""
    texts = [("x " * (10_000 if i % 10 == 0 else 12)).strip() for i in range(1000)]
    path = make(tmp_path, "a.jsonl", texts)
    estimates = [looked_at(path, 1 << 18, places).documents for places in range(17, 49)]
    assert abs(np.mean(estimates) / 1000 - 1) < 0.15


def test_places_are_spread_by_size() -> None:
    assert spread([], 5) == {}
    assert spread([0, 0], 5) == {}
    found = spread([10, 0, 30], 8)
    assert {thing: len(places) for thing, places in found.items()} == {0: 2, 2: 6}
    assert all(0 <= place < 1 for places in found.values() for place in places)


def test_broken_rows_are_counted_and_told(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "fine"}\n{"text": broken}\n{"text": null}\n')
    seen = looked_at(tmp_path / "a.jsonl", 1 << 20)
    assert (seen.documents, seen.broken) == (1, 2)


def test_reading_goes_on_from_the_beginning_after_a_glimpse(tmp_path: Path) -> None:
    texts = documents(500)
    source = open_source(make(tmp_path, "a.csv", texts))
    glimpse(source, 1 << 14)
    assert sum(batch.num_rows for batch in source.batches()) == 500


def test_a_broken_file_stops_a_look_or_is_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl.gz", documents(2000))
    whole = make(tmp_path, "b.jsonl.gz", documents(2000)).read_bytes()
    (tmp_path / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"b\.jsonl\.gz"):
        glimpse(open_source(Files([tmp_path])))
    seen = glimpse(open_source(Files([tmp_path]), ReadOptions(on_error="skip")))
    assert 2000 <= seen.documents <= 4000
    assert not seen.exact


def test_a_packed_parquet_file_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path, "a.parquet", documents(1000))
    packed = tmp_path / "b.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    source = open_source(packed)
    monkeypatch.setattr("likewise.io.read.tables.unpacked", lambda file, owner: pytest.fail("it was unpacked again"))
    seen = glimpse(source)
    assert (seen.documents, seen.exact) == (1000, True)


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "file.arrow", "folder"])
@pytest.mark.parametrize("count", [1, 2, 5, 47])
def test_no_document_is_seen_twice(tmp_path: Path, name: str, count: int) -> None:
    texts = documents(count)
    seen = looked_at(make(tmp_path, name, texts), 1 << 22, 48)
    assert [text for stretch in seen.stretches for text in stretch.text.to_pylist()] == texts


def test_repeated_documents_are_not_unpacked_by_the_million(tmp_path: Path) -> None:
    """A dictionary makes any number of copies of a document a few bytes each; these would be 210 MB."""
    texts = pa.array(["the same words again " * 200]).take(pa.array(np.zeros(50_000, np.int64)))
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=50_000)
    del texts
    before = pa.default_memory_pool().bytes_allocated()
    seen = looked_at(tmp_path / "a.parquet", 1 << 20)
    assert seen.documents == 50_000
    assert seen.text == pytest.approx(50_000 * 4200, rel=1e-6)
    assert seen.seen < 20_000
    assert pa.default_memory_pool().bytes_allocated() - before < 40_000_000
