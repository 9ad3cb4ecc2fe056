"""Checksums of stored files: every change of a byte is noticed, and the error says which file it is and what to do."""

import io
import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import DamagedError
from likewise.io import seals
from likewise.io.seals import SealedFile, SealedFiles, checksum, facts, fault, read_sealed, write_sealed

VALUE = {"name": "ä\n", "numbers": [1, 0.1, None, True], "inner": {"checksum": "x"}}


@pytest.mark.parametrize("block", [1, 7, 9, 1 << 20])
def test_checksums_read_all_of_a_file(tmp_path, monkeypatch, block):
    monkeypatch.setattr(seals, "BLOCK", block)
    path = tmp_path / "a"
    path.write_bytes(b"123456789")
    assert checksum(path) == 0xCBF43926, "the check value of CRC-32"
    assert facts(path) == [9, 0xCBF43926]
    path.write_bytes(b"")
    assert facts(path) == [0, 0]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_sealed_file_is_json_and_no_byte_of_it_can_change(tmp_path, indent):
    path = tmp_path / "a.json"
    digest = write_sealed(VALUE, path, indent)
    assert read_sealed(path, "again") == (VALUE, digest)
    content = path.read_bytes()
    assert json.loads(content) == {**VALUE, "checksum": digest}
    assert content.endswith(b"\n")
    others = [content[:place] + content[place + 1 :] for place in range(len(content))]
    others += [content[:place] for place in range(len(content))]
    for place in range(len(content)):
        others += [content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :] for bit in range(8)]
    for other in [*others, content + b"\n", content + content, b"", b"null", b"{}\n"]:
        path.write_bytes(other)
        if other != content:
            with pytest.raises(DamagedError, match=r"a\.json is damaged: .*; run it again"):
                read_sealed(path, "run it again")


def test_a_sealed_file_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_sealed(tmp_path / "nothing", "run it again")
    with pytest.raises(DamagedError, match="cannot be read: Is a directory; run it again"):
        read_sealed(tmp_path, "run it again")


def test_other_content_has_another_checksum(tmp_path):
    digests = {write_sealed({"a": number}, tmp_path / "a.json") for number in range(1000)}
    assert len(digests) == 1000
    assert {len(digest) for digest in digests} == {seals.DIGITS}


@given(st.lists(st.binary(max_size=50)), st.integers(1, 64))
def test_what_is_written_is_summed(tmp_path_factory, parts, buffer):
    path = tmp_path_factory.mktemp("seals") / "a"
    raw = SealedFile(path)
    with io.BufferedWriter(raw, buffer) as out:
        for part in parts:
            out.write(part)
    whole = b"".join(parts)
    assert path.read_bytes() == whole
    assert [raw.size, raw.sum] == facts(path) == [len(whole), zlib.crc32(whole)]


def test_arrays_are_summed_by_their_bytes(tmp_path):
    raw = SealedFile(tmp_path / "a")
    with raw:
        raw.write(np.arange(1000))
        assert not raw.seekable()
    assert facts(tmp_path / "a") == [raw.size, raw.sum]
    assert raw.size == 8000


def test_faults(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    stored = facts(path)
    assert fault(path, stored) == ""
    path.write_bytes(b"abd")
    assert fault(path, stored) == "is damaged: its checksum is not that of what was stored"
    path.write_bytes(b"ab")
    assert fault(path, stored) == "is damaged: it has 2 bytes and was stored with 3"
    path.unlink()
    assert fault(path, stored) == "is missing"
    path.mkdir()
    assert fault(path, stored) == "is missing"


def test_stored_files_are_checked_once(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").write_bytes(b"abc")
    files = SealedFiles(tmp_path, {name: facts(tmp_path / name) for name in "ab"}, "run it again")
    assert list(files) == ["a", "b"]
    assert files.path("a") == tmp_path / "a"
    (tmp_path / "a").write_bytes(b"xyz")
    (tmp_path / "b").write_bytes(b"xyz")
    assert files.path("a") == tmp_path / "a"
    for _ in range(2):
        with pytest.raises(DamagedError, match=r"/b is damaged: its checksum .*; run it again$"):
            files.path("b")
    with pytest.raises(DamagedError, match="/c is not a file that the run stored; run it again"):
        files.path("c")
    assert files.facts("b") == {"b": [3, zlib.crc32(b"abc")]}
