"""Make a corpus of any size with near-duplicates planted in it, whose exact similarities are known.

    python benchmarks/planted.py 1000000             planted-1000000.parquet and planted-1000000-pairs.parquet
    python benchmarks/planted.py 10000 --check       and compare every planted pair with likewise's own shingles
    python benchmarks/planted.py 15000000 --words 100 980      documents of 3 kB, as long as pages of the web

A document is 70 to 110 words (--words) of a vocabulary of 7,000, drawn by Zipf's law: some 500 bytes. A tenth of the
documents are copies of an earlier one, at any distance: one in five exact, the others with a run of words replaced,
dropped or added at the front, in the middle or at the end, or with single words replaced. Most documents are copied
once, some three to five times. A run of words changes as many shingles as one wishes, so that many pairs have a
similarity of exactly 0.8.

The pairs are all pairs of documents that stem from the same one, with similarity >= 0.5: shared shingles of five words
divided by all, counted on the documents. Documents that do not share their origin rarely share a single shingle.

Every word is a hash of the seed, its document and its place. So a copy needs no memory of its original, and the
corpus is written one row group after the other.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit

from corpus import DATA, ROWS_IN_GROUP, size

K = 5
VOCABULARY = 7_000
"""7,000^5 < 2^64: five words make one number, and different words make different numbers."""

DRAWS = 1 << 16
LENGTHS = 70, 110
GROWN = 5 / 2
"""No copy with words added has as many times the words of the longest document."""

COPIES = 0.1
EXACT = 0.2
AT_THRESHOLD, ABOVE_THRESHOLD, BELOW_THRESHOLD = 0.2, 0.2, 0.1
"""Shares of the copies that are not exact: at 0.8 exactly, from there to 0.82, from 0.75; the rest is from 0.6 to 1."""

IN_CLUSTERS = 0.3
LEAST_LISTED = 0.5

Integers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """What each row is: the row it stems from, the words of that one, and what was done to them.

    `dropped` words are taken out at `at` and `added` new ones put in; then `swapped` words are replaced. `rows` holds
    the documents that have relatives, family after family, each in order; family i is rows[ends[i]:ends[i + 1]].
    """

    seed: int
    origin: Integers
    length: Small
    at: Small
    dropped: Small
    added: Small
    swapped: Small
    rows: Integers
    ends: Integers

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels need to know."""
        return np.uint64(self.seed), self.origin, self.length, self.at, self.dropped, self.added, self.swapped

    @property
    def longest(self) -> int:
        """More words than any row has."""
        return int(self.length.max() * GROWN)


def planted(documents: int, folder: Path = DATA, seed: int = 0, words: tuple[int, int] = LENGTHS) -> tuple[Path, Path]:
    """Make the corpus and the list of its planted pairs, unless they are there. words: the fewest and the most."""
    name = f"planted-{documents}" + (f"-seed-{seed}" if seed else "")
    name += f"-words-{words[0]}-{words[1]}" if words != LENGTHS else ""
    corpus, pairs = folder / f"{name}.parquet", folder / f"{name}-pairs.parquet"
    if not (corpus.exists() and pairs.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        plan = make_plan(documents, seed, words)
        _write_pairs(plan, pairs)
        _write_corpus(plan, corpus)
    return corpus, pairs


def make_plan(documents: int, seed: int, words: tuple[int, int]) -> Plan:
    """Choose families and edits."""
    chance = np.random.default_rng(seed)
    copies = int(documents * COPIES)
    sizes = chance.integers(3, 6, int(copies * IN_CLUSTERS / 4))
    sizes = np.concatenate((np.ones(copies - sizes.sum(), np.int64), sizes))
    ends = np.concatenate(([0], np.cumsum(sizes + 1)))
    family = np.repeat(np.arange(len(sizes)), sizes + 1)
    rows = chance.permutation(documents)[: ends[-1]]
    rows = rows[np.lexsort((rows, family))]
    origin = np.arange(documents)
    origin[rows] = rows[ends[:-1]][family]
    length = chance.integers(words[0], words[1] + 1, documents, dtype=np.int16)[origin]
    later = origin[rows] != rows
    edits = np.zeros((4, documents), np.int16)
    edits[:, rows[later]] = _edits(chance, length[rows[later]].astype(np.int64))
    at, dropped, added, swapped = edits
    return Plan(seed, origin, length, at, dropped, added, swapped, rows, ends)


def _edits(chance: np.random.Generator, words: Integers) -> tuple[Integers, ...]:
    """Where to edit copies of documents of so many words, and how many words to drop, to add and to swap.

    If `lost` of n shingles are lost and `gained` are new, the similarity is (n - lost) / (n + gained). At an end of a
    document each word dropped or added is one shingle; in the middle four more are lost and four more gained. The
    similarity is 4/5 exactly if n = 5 lost + 4 gained, for which `gained` need only be 4n modulo 5.
    """
    count, shingles = len(words), words - K + 1
    cuts = np.cumsum([AT_THRESHOLD, ABOVE_THRESHOLD, BELOW_THRESHOLD])
    kind = np.searchsorted(cuts, chance.random(count), side="right")
    low, width = np.array([0.8, 0.8, 0.75, 0.6])[kind], np.array([0.0, 0.02, 0.05, 0.4])[kind]
    target = low + width * chance.random(count)

    gained = (chance.random(count) * (shingles * (1 / target - 1) + 1)).astype(np.int64)
    exactly = kind == 0
    fitting = gained - (gained - 4 * shingles) % 5
    gained[exactly] = np.where(fitting < 0, fitting + 5, fitting)[exactly]
    lost = np.floor(shingles - target * (shingles + gained) + 1e-9).astype(np.int64)
    gained = np.where(lost < 0, gained + lost, gained)
    lost = np.maximum(lost, 0)

    place = chance.integers(0, 3, count)
    middle = (place == 2) & (lost >= K - 1) & (gained >= K - 1)
    dropped, added = (np.where(middle, number - K + 1, number) for number in (lost, gained))
    inside = K - 1 + (chance.random(count) * (words - dropped - 2 * (K - 1))).astype(np.int64)
    at = np.where(middle, inside, np.where(place == 0, words - dropped, 0))

    scattered = ~exactly & (chance.random(count) < 0.2)
    swapped = np.round(shingles * (1 - target) / (1 + target) / K).astype(np.int64)
    whole = chance.random(count) < EXACT
    at, dropped, added = (np.where(scattered | whole, 0, number) for number in (at, dropped, added))
    return at, dropped, added, np.where(scattered & ~whole, swapped, 0)


def vocabulary() -> tuple[Any, Integers]:
    """Different words of two syllables, and of three from the 1,000th on: their letters, and where they end."""
    syllables = [consonant + vowel for consonant in "bcdfghjklmnprstvwxyz" for vowel in "aeiou"]
    order = np.random.default_rng(0).permutation(len(syllables) ** 2)
    pairs = [syllables[number // 100] + syllables[number % 100] for number in order.tolist()]
    words = pairs[:1_000] + [word + syllables[place % 100] for place, word in enumerate(pairs[1_000:VOCABULARY])]
    return np.frombuffer("".join(words).encode(), np.uint8), np.cumsum([0, *map(len, words)])


def draws() -> npt.NDArray[np.uint16]:
    """Word numbers, each as often as Zipf's law (with Mandelbrot's offset) has it."""
    share = np.cumsum(1 / (np.arange(VOCABULARY) + 3.7))
    found = np.searchsorted(share / share[-1], (np.arange(DRAWS) + 0.5) / DRAWS)
    return found.astype(np.uint16)


def _write_corpus(plan: Plan, target: Path) -> None:
    letters, ends = vocabulary()
    table = draws()
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    unfinished = target.with_suffix(".unfinished")
    with pq.ParquetWriter(unfinished, schema, compression="zstd", use_dictionary=False) as writer:
        for start in range(0, len(plan.origin), ROWS_IN_GROUP):
            rows = np.arange(start, min(start + ROWS_IN_GROUP, len(plan.origin)))
            data, offsets = write_texts(plan.arrays, plan.longest, table, letters, ends, rows)
            texts = pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(data))
            writer.write_table(pa.table([pa.array(rows), texts], schema=schema), row_group_size=ROWS_IN_GROUP)
    unfinished.rename(target)


def _write_pairs(plan: Plan, target: Path) -> None:
    first, second, similarity = similarities(plan.arrays, plan.longest, draws(), plan.rows, plan.ends)
    listed = np.flatnonzero(similarity >= LEAST_LISTED)
    order = listed[np.lexsort((second[listed], first[listed]))]
    columns = {"id_a": first[order], "id_b": second[order], "similarity": similarity[order]}
    pq.write_table(pa.table(columns), target, compression="zstd")


@njit(cache=True)
def _mix(state: Any) -> Any:
    """The finaliser of SplitMix64."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@njit(cache=True)
def _words(arrays: Any, table: Any, row: int, out: Any) -> int:
    """Put the word numbers of a row into `out`; how many."""
    seed, origin, length, at, dropped, added, swapped = arrays
    old = _mix(_mix(seed) ^ np.uint64(2 * origin[row]))
    new = _mix(_mix(seed) ^ np.uint64(2 * row + 1))
    count = 0
    for place in range(at[row]):
        out[count] = table[_mix(old + np.uint64(place)) >> np.uint64(48)]
        count += 1
    for place in range(added[row]):
        out[count] = table[_mix(new + np.uint64(place)) >> np.uint64(48)]
        count += 1
    for place in range(at[row] + dropped[row], length[row]):
        out[count] = table[_mix(old + np.uint64(place)) >> np.uint64(48)]
        count += 1
    for place in range(swapped[row]):
        random = _mix(new + np.uint64(place))
        out[random % np.uint64(count)] = table[random >> np.uint64(48)]
    return count


@njit(cache=True)
def write_texts(arrays: Any, longest: int, table: Any, letters: Any, ends: Any, rows: Any) -> tuple[Any, Any]:
    """The texts of rows, words joined by blanks, and where each ends."""
    words = np.empty(longest, np.uint16)
    data = np.empty(len(rows) * longest * 7, np.uint8)
    offsets = np.zeros(len(rows) + 1, np.int32)
    used = 0
    for place in range(len(rows)):
        count = _words(arrays, table, rows[place], words)
        for number in range(count):
            if number:
                data[used] = 32
                used += 1
            for letter in range(ends[words[number]], ends[words[number] + 1]):
                data[used] = letters[letter]
                used += 1
        offsets[place + 1] = used
    return data[:used], offsets


@njit(cache=True)
def _shingles(words: Any, count: int, out: Any) -> int:
    """Put the distinct runs of five words into `out`, each as one number, sorted; how many."""
    for start in range(count - K + 1):
        number = np.uint64(0)
        for place in range(start, start + K):
            number = number * np.uint64(VOCABULARY) + np.uint64(words[place])
        out[start] = number
    out[: count - K + 1].sort()
    distinct = 0
    for place in range(count - K + 1):
        if place == 0 or out[place] != out[distinct - 1]:
            out[distinct] = out[place]
            distinct += 1
    return distinct


@njit(cache=True)
def similarities(arrays: Any, longest: int, table: Any, rows: Any, ends: Any) -> tuple[Any, Any, Any]:
    """All pairs inside the families, and their Jaccard similarities."""
    pairs = 0
    largest = 0
    for family in range(len(ends) - 1):
        members = ends[family + 1] - ends[family]
        pairs += members * (members - 1) // 2
        largest = max(largest, members)
    first, second = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    similarity = np.empty(pairs, np.float64)
    words = np.empty(longest, np.uint16)
    sets = np.empty((largest, longest), np.uint64)
    sizes = np.empty(largest, np.int64)
    pair = 0
    for family in range(len(ends) - 1):
        start = ends[family]
        for member in range(ends[family + 1] - start):
            count = _words(arrays, table, rows[start + member], words)
            sizes[member] = _shingles(words, count, sets[member])
            for other in range(member):
                shared = _shared(sets[other, : sizes[other]], sets[member, : sizes[member]])
                first[pair], second[pair] = rows[start + other], rows[start + member]
                similarity[pair] = shared / (sizes[other] + sizes[member] - shared)
                pair += 1
    return first, second, similarity


@njit(cache=True)
def _shared(one: Any, other: Any) -> int:
    """How many values two sorted arrays share."""
    i, j, shared = 0, 0, 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            shared += 1
            i += 1
            j += 1
        elif one[i] < other[j]:
            i += 1
        else:
            j += 1
    return shared


def check(corpus: Path, pairs: Path) -> int:
    """How many of the planted pairs have another similarity by likewise's own shingles, as sets of strings."""
    from likewise import Words
    from likewise.measures import jaccard

    texts = pq.read_table(corpus, columns=["text"]).column("text").to_pylist()
    listed = pq.read_table(pairs).to_pylist()
    related = {row for pair in listed for row in (pair["id_a"], pair["id_b"])}
    sets = {row: Words(K).shingles(texts[row]) for row in related}
    return sum(jaccard(sets[pair["id_a"]], sets[pair["id_b"]]) != pair["similarity"] for pair in listed)


def main() -> None:
    """Make the corpora asked for and say what they hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=int, nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--words", type=int, nargs=2, default=LENGTHS, metavar="N", help="the fewest and the most (%(default)s)"
    )
    parser.add_argument("--check", action="store_true", help="compare with likewise's shingles (small corpora)")
    asked = parser.parse_args()
    for documents in asked.documents:
        begun = time.perf_counter()
        corpus, pairs = planted(documents, seed=asked.seed, words=tuple(asked.words))
        seconds = time.perf_counter() - begun
        rows, megabytes = size(corpus)
        similarity = pq.read_table(pairs, columns=["similarity"]).column(0).to_numpy()
        above, at = int((similarity >= 0.8).sum()), int((similarity == 0.8).sum())
        print(f"{corpus.name}: {rows:,} documents, {megabytes:,.0f} MB of text, made in {seconds:.1f} s")
        print(f"{len(similarity):,} planted pairs, {above:,} at or above 0.8, {at:,} at exactly 0.8")
        if asked.check:
            print(f"{check(corpus, pairs):,} with another similarity by likewise's shingles")


if __name__ == "__main__":
    main()
