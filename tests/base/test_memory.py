"""How much memory a run may take: sizes as people write them, and how they are shared out."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise.base import memory
from likewise.base.memory import A_DOCUMENT, LEAST, MIB, UNLIMITED, Budget, free_memory, parse_size, peak_memory
from likewise.errors import ParameterError


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (1, 1), (4096, 4096), ("4096", 4096), ("4096b", 4096), ("1k", 1000), ("1kb", 1000), ("1KB", 1000),
        ("1KiB", 1024), ("500MB", 500_000_000), ("500 mb", 500_000_000), ("64MiB", 64 << 20), ("64mi", 64 << 20),
        ("4GiB", 4 << 30), ("4 GiB ", 4 << 30), ("  2G", 2 * 10**9), ("1.5GiB", 3 << 29), ("0.5k", 500),
        ("2T", 2 * 10**12), ("2TiB", 2 << 40), ("100000000000000000000", 10**20), (10**20, 10**20),
    ],
)  # fmt: skip
def test_sizes_as_people_write_them(written, size):
    assert parse_size("dedup", "memory", written) == size


@given(st.integers(1, 10**6), st.sampled_from(["", "k", "M", "G", "T"]), st.sampled_from(["", "i"]), st.booleans())
def test_every_unit(number, letter, binary, b):
    unit = letter + (binary if letter else "")
    factor = (1024 if binary and letter else 1000) ** " kMGT".index(letter or " ")
    for written in (f"{number}{unit}", f"{number} {unit.lower()}", f"{number}{unit.upper()}"):
        assert parse_size("pairs", "memory", written + ("B" if b else "")) == number * factor


NO_SIZES = [
    "", " ", "GiB", "-1", "-4GiB", "0", "0GB", "0.0", "1e9", "4 G iB", "4Gb4", "1,5GB", "four", "1..5G", "1.", "nan",
    "inf", 0, -5, 1.5, True, False, b"4G", [], ["4G"],
]  # fmt: skip


@pytest.mark.parametrize("written", NO_SIZES)
def test_what_is_no_size(written):
    says = "The 'memory' parameter of dedup must be a size such as 4GiB or 500MB. Got "
    with pytest.raises(ParameterError, match=re.escape(f"{says}{written!r} instead.")):
        parse_size("dedup", "memory", written)
    with pytest.raises(ParameterError, match=re.escape(says)):
        Budget.of("dedup", written)
    with pytest.raises(ParameterError, match=re.escape(says)):
        likewise.dedup(["a"], memory=written)


@pytest.mark.parametrize("memory", ["63MiB", 64 * MIB - 1, "1kB", 1])
def test_too_little(memory):
    says = f"The 'memory' parameter of pairs must be at least 64MiB. Got {memory!r} instead."
    with pytest.raises(ParameterError, match=re.escape(says)):
        Budget.of("pairs", memory)
    with pytest.raises(ParameterError, match="at least 64MiB"):
        likewise.pairs(["a"], memory=memory)


def test_what_the_user_says_is_taken():
    assert Budget.of("dedup", "64MiB").total == LEAST
    assert Budget.of("dedup", "4GiB").total == 4 << 30


def test_by_default_half_of_what_is_free():
    assert LEAST <= free_memory() < 1 << 50
    before = free_memory()
    assert 0.5 < Budget.of("dedup", None).total / (before // 2) < 2


@given(st.integers(64, 1 << 24))
def test_the_shares_of_a_budget_fit_in_it(mib):
    """What is held at the same time: text or sets, keys or pairs, and what two threads sort."""
    budget = Budget(mib * MIB)
    assert budget.texts + budget.keys + 2 * budget.sort <= budget.total
    assert budget.sets + budget.pairs + budget.keys <= budget.total
    assert MIB <= budget.batch <= 16 * MIB
    assert 4 * budget.batch <= budget.total / 8 or budget.batch == MIB


def test_no_limit_is_more_than_anything():
    assert UNLIMITED.keys > 1 << 50


def test_peak_memory_is_of_this_process():
    """Neither that of the process which started it, nor what it has now given back."""
    code = (
        "from likewise.base.memory import peak_memory; import sys; first = peak_memory();"
        "block = bytearray(60 << 20); del block; print(first, peak_memory())"
    )
    hog = bytearray(300 << 20)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    del hog
    first, then = map(int, done.stdout.split())
    assert 5 * MIB < first < 200 * MIB
    assert then - first > 40 * MIB
    assert peak_memory() > 300 * MIB


def test_what_documents_take_in_any_case_is_set_aside(monkeypatch):
    """Of a budget at least half is left for the rest; a run of more documents than fit says what it may take."""
    budget = Budget(1000 * A_DOCUMENT)
    assert [budget.beside(n).total // A_DOCUMENT for n in (0, 100, 500, 501, 10**6)] == [1000, 900, 500, 500, 500]
    assert budget.too_many(250) is None
    texts = ["to be or not to be, that is the question", "a rose is a rose is a rose is a rose"] * 50
    assert likewise.dedup(texts, memory="64MiB").stats["notes"] == []
    monkeypatch.setattr(memory, "A_DOCUMENT", 10**6)
    found = likewise.dedup(texts, memory="64MiB").stats["notes"]
    assert found == [
        "100 documents take 0.10 GB of memory in any case, and the run may take 0.33 GB in place of the 0.07 GB that"
        " were given"
    ]
