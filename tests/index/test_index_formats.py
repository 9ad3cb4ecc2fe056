"""An index of format 1 opens for ever: tests/data/index-1 was made by this file, by the first version that had one.

python tests/index/test_index_formats.py tests/data/index-1 makes it; do so for a new format only, in a new folder.
tests/data/index-2, of vectors, is made with --vectors.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from likewise import IncompatibleError, Index
from likewise.index.store import HEADER, pack, unpack

DATA = Path(__file__).parent.parent / "data" / "index-1"
SENTENCE = "the quick brown fox jumps over a lazy dog and runs away from it as fast as it can before the sun goes down"
WORDS = SENTENCE.split()
TEXTS = {f"t{i}": " ".join(WORDS[i:] + [f"x{i}"] * (i % 3) + WORDS[:i]) for i in range(12)}
TEXTS["copy"] = TEXTS["t4"]
TEXTS["empty"] = ""
TEXTS["ä"] = "größer als früher ist das Haus am Ende der Straße nicht"
SETTINGS = {"shingle": "words:2", "threshold": 0.5, "bands": 12, "rows": 2, "containment": True, "seed": 7}


def make(path: Path) -> None:
    with Index.create(path, **SETTINGS) as index:
        index.add(list(TEXTS), list(TEXTS.values()))
        index.add(["last"], ["one more document of its own"])
        index.remove(["t3"])


@pytest.fixture
def index(tmp_path):
    shutil.copytree(DATA, tmp_path / "index")
    with Index.open(tmp_path / "index", **SETTINGS) as opened:
        yield opened


def test_an_index_of_format_1_answers(index, tmp_path):
    assert index.info()["format"] == 1
    left = [id for id in TEXTS if id != "t3"]
    assert index.check().items == len(index) == len(left) + 1
    found = index.query([TEXTS[id] for id in left], ids=left).to_pylist()
    assert {(row["id_a"], row["id_b"]) for row in found if row["similarity"] == 1.0} >= {(id, id) for id in left}
    assert ("t4", "copy") in {(row["id_a"], row["id_b"]) for row in found}
    assert "t3" not in {row["id_b"] for row in found}
    assert index.query("das Haus am Ende", measure="containment")["id_b"].to_pylist() == ["ä"]
    assert index.get(["ä", "empty"]) == [TEXTS["ä"], ""]
    make(tmp_path / "now")
    with Index.open(tmp_path / "now") as now:
        assert now.query(list(TEXTS.values())) == index.query(list(TEXTS.values())), "the same hashes as ever"


def test_an_index_of_format_1_can_be_changed(index):
    index.add(["new"], [TEXTS["t5"]])
    assert index.query(TEXTS["t5"], threshold=1.0)["id_b"].to_pylist() == ["t5", "new"]
    index.compact()
    assert index.query(TEXTS["t5"], threshold=1.0)["id_b"].to_pylist() == ["t5", "new"]


VECTORS = Path(__file__).parent.parent / "data" / "index-2"
NUMBERS = np.float32([[math.sin(1 + i * (j + 1)) for j in range(5)] for i in range(40)])


def make_vectors(path: Path) -> None:
    with Index.create(path, measure="angle", within=90, recall=0.95, seed=7) as index:
        index.add([f"n{i}" for i in range(30)], NUMBERS[:30])
        index.add([f"n{i}" for i in range(30, 40)], NUMBERS[30:])
        index.remove(["n9"])


def test_vectors_of_format_2_answer_and_can_be_changed(tmp_path):
    shutil.copytree(VECTORS, tmp_path / "index")
    make_vectors(tmp_path / "now")
    with Index.open(tmp_path / "index", measure="angle", within=90, recall=0.95, seed=7) as index:
        assert index.info()["format"] == 2
        assert index.check().items == len(index) == 39
        with Index.open(tmp_path / "now") as now:
            assert now.query(NUMBERS, k=5) == index.query(NUMBERS, k=5)
        left = [i for i in range(40) if i != 9]
        assert index.query(NUMBERS[left], k=1)["id_b"].to_pylist() == [f"n{i}" for i in left]
        assert index.query(NUMBERS[9], k=1)["id_b"].to_pylist() != ["n9"]
        assert (index.get(["n3", "n35"]) == NUMBERS[[3, 35]]).all()
        index.add(["n9"], NUMBERS[9:10])
        index.compact()
        assert index.query(NUMBERS, k=1)["id_b"].to_pylist() == [f"n{i}" for i in range(40)]


def test_an_index_of_a_later_format_is_not_opened(tmp_path):
    path = tmp_path / "index"
    with Index.create(path, shingle=None) as index:
        with index._store.read() as snapshot:
            header = unpack(snapshot.get(HEADER), "")
        header |= {"format": 99, "likewise": "9.9"}
        index._store.write(lambda transaction: transaction.put(HEADER, pack(header)))
    with pytest.raises(IncompatibleError, match=r"has format 99, made by likewise 9\.9"):
        Index.open(path)


def test_the_header_says_everything(tmp_path):
    """Whoever reads the file without likewise finds JSON, after four bytes of checksum."""
    with Index.create(tmp_path / "index", **SETTINGS) as index, index._store.read() as snapshot:
        data = bytes(snapshot.get("header"))
    assert int.from_bytes(data[:4], "little") == zlib.crc32(data[4:])
    header = json.loads(data[4:])
    assert header["shingling"]["shingle"] == "words:2"
    named = {
        "format",
        "likewise",
        "items",
        "measure",
        "family",
        "sketch",
        "seed",
        "bands",
        "rows",
        "threshold",
        "recall",
    }
    assert named <= set(header)


if __name__ == "__main__":
    (make_vectors if "--vectors" in sys.argv else make)(Path(sys.argv[1]))
