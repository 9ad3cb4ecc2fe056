"""What input files are known by: whoever changes one is found out, by its size, its time or its content."""

import os
from pathlib import Path

import pytest

from likewise.errors import InputError
from likewise.io import seals as identity
from likewise.io.read import ReadOptions, open_source
from likewise.io.seals import PIECE, SAMPLED
from likewise.io.seals import identity as identify


def write(path, content, time=10**18):
    path.write_bytes(content)
    os.utime(path, ns=(time, time))
    return path


def test_files_by_absolute_path(tmp_path, monkeypatch):
    write(tmp_path / "a.csv", b"text\nx\n")
    monkeypatch.chdir(tmp_path)
    facts = identify([Path("a.csv")])
    assert list(facts) == [str(tmp_path / "a.csv")]
    assert facts == identify([tmp_path / "a.csv"])
    assert facts[str(tmp_path / "a.csv")][:2] == [7, 10**18]


@pytest.mark.parametrize("size", [1, 100, PIECE, 5 * PIECE])
def test_every_change_is_seen(tmp_path, size):
    path = tmp_path / "a.csv"
    content = bytes(range(256)) * (size // 256 + 1)
    content = content[:size]
    before = identify([write(path, content)])[str(path)]
    assert identify([write(path, content)])[str(path)] == before
    assert identify([write(path, content + b"x")])[str(path)][0] != before[0]
    assert identify([write(path, content, 10**18 + 1)])[str(path)][1] != before[1], "to the nanosecond"
    for place in (0, size // 2, size - 1):
        changed = content[:place] + b"?" + content[place + 1 :]
        if changed != content:
            after = identify([write(path, changed)])[str(path)]
            assert after[:2] == before[:2]
            assert after[2] != before[2], f"another byte at {place} of {size}"


def test_an_empty_file(tmp_path):
    path = write(tmp_path / "a.csv", b"")
    assert identify([path]) == {str(path): [0, 10**18, 0]}


def test_without_content_nothing_is_opened(tmp_path, monkeypatch):
    path = write(tmp_path / "a.csv", b"abc")
    monkeypatch.setattr(identity, "_sampled", None)
    assert identify([path], content=False) == {str(path): [3, 10**18, 0]}


def test_of_many_files_some_are_sampled(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "SAMPLED", 10)
    paths = [write(tmp_path / f"{number}.txt", b"abc") for number in range(95)]
    facts = identify(paths)
    assert len(facts) == 95
    sampled = [number for number, path in enumerate(paths) if facts[str(path)][2]]
    assert sampled == list(range(0, 95, 10))
    assert SAMPLED == 1000


def test_a_file_that_is_gone(tmp_path):
    with pytest.raises(InputError, match=r"gone\.csv: cannot be read: No such file"):
        identify([tmp_path / "gone.csv"])


def test_sources_have_an_identity_if_they_are_files(tmp_path):
    path = write(tmp_path / "a.csv", b"text\nx\n")
    assert open_source(path, ReadOptions()).identity() == identify([path])
    assert open_source(["a", "b"], ReadOptions()).identity() is None
