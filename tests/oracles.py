"""Naive reference implementations in plain Python integers and sets: slow, obvious, sharing no code with src."""

import functools
import re
import unicodedata
from collections import Counter
from itertools import combinations
from math import sqrt
from pathlib import Path
from types import SimpleNamespace

import likewise

MASK = (1 << 64) - 1
LOW32 = (1 << 32) - 1
WORD_SEED = 0x9E3779B97F4A7C15
STREAM_ODD = 0xD6E8FEB86659FD93
SHINGLE_BASE = 0x9FB21C651E98DF25
SHORT_SEED = 0x2545F4914F6CDD1D
TOKEN_SEED = 0x5851F42D4C957F2D
STOPS = {}
NOTHING = LOW32  # what stands in every slot of an empty set's signature


# hashing


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def seed_sequence(seed, n):
    return [mix(seed + i * WORD_SEED & MASK) for i in range(1, n + 1)]


def hash_bytes(data):
    h, whole = WORD_SEED, len(data) // 8 * 8
    for i in range(0, whole, 8):
        h = mix(h ^ int.from_bytes(data[i : i + 8], "little"))
    return mix(h ^ (int.from_bytes(data[whole:], "little") | len(data) % 256 << 56))


def hash_token(token):
    """The hash of a 64-bit integer or a string, as in Sets.from_lists."""
    return mix(token & MASK ^ TOKEN_SEED) if isinstance(token, int) else hash_bytes(token.encode())


# text → units → shingles → set


def words(shingler, text, kinds):
    """Runs of letters and marks; in scripts without spaces each letter with its marks is a word."""
    letters = "".join(" WSM "[kinds[ord(char)]] for char in text)
    found = [text[match.start() : match.end()] for match in re.finditer("SM*|[WM]+", letters)]
    return [word.casefold() if shingler.casefold else word for word in found]


def chars(shingler, text, kinds):
    if shingler.whitespace != "keep":
        text = re.sub(r"\s+", " " if shingler.whitespace == "collapse" else "", text)
    return list(text.casefold() if shingler.casefold else text)


def tokens(shingler, text, kinds):
    """A list written as text, or text split at the separator."""
    if text.endswith("\x1f"):
        return text[:-1].split("\x1f")
    pieces = text.split(shingler.separator) if shingler.separator else re.split("[ \t\n\v\f\r]", text)
    return [piece.strip(" \t\n\v\f\r") for piece in pieces if piece.strip(" \t\n\v\f\r")]


UNITS = {"words": words, "chars": chars, "tokens": tokens, "stopwords": words}


def units(shingler, text, kinds):
    if shingler.normalize:
        text = unicodedata.normalize(shingler.normalize, text)
    return UNITS[shingler.name](shingler, text, kinds)


def hash_unit(shingler, unit):
    return hash_bytes(unit.encode()) if shingler.name != "chars" else mix(WORD_SEED ^ ord(unit))


def polynomial(hashes):
    value = 0
    for h in hashes:
        value = (value * SHINGLE_BASE + h) & MASK
    return value


def shingle_hashes(hashes, k):
    """One hash for every run of k unit hashes; fewer than k units are a single shingle."""
    n = len(hashes)
    if 0 < n < k:
        return [mix(polynomial(hashes) ^ SHORT_SEED ^ n)]
    return [polynomial(hashes[i : i + k]) for i in range(n - k + 1)]


def numbered(values):
    """The c-th copy of x becomes mix(x) + c."""
    seen = Counter()
    out = []
    for x in values:
        out.append(mix(x) + seen[x] & MASK)
        seen[x] += 1
    return out


def distinct(values):
    return list(dict.fromkeys(values))


@functools.cache
def stop_lists():
    lines = (Path(likewise.__file__).parent / "shingle" / "stopwords.txt").read_text(encoding="utf-8").splitlines()
    return {line.split()[0]: line.split()[2:] for line in lines if not line.startswith("#")}


def stop_words(shingler, kinds):
    """A set of stop words for each language that can be detected."""
    key = (shingler.languages, shingler.words, shingler.casefold, shingler.normalize)
    if key not in STOPS:
        STOPS[key] = stop_sets(shingler, kinds)
    return STOPS[key]


def stop_sets(shingler, kinds):
    known = stop_lists()
    lists = [known[code] for code in (known if shingler.languages == ("auto",) else shingler.languages)]
    if shingler.languages != ("auto",):
        lists = [[word for entries in lists for word in entries]]
    found = []
    for entries in lists:
        spelled = [*entries, *shingler.words]
        if not shingler.casefold:
            spelled += [entry.upper() for entry in spelled] + [entry.capitalize() for entry in spelled]
        found.append(set(units(shingler, " ".join(spelled), kinds)))
    return found


def stop_starts(shingler, text, kinds):
    """The positions of stop words that are followed by enough words."""
    if shingler.normalize:
        text = unicodedata.normalize(shingler.normalize, text)
    folded = words(shingler, text, kinds)
    plain = words(SimpleNamespace(casefold=False), text, kinds)
    stops = max(stop_words(shingler, kinds), key=lambda known: sum(word in known for word in folded))
    lengths = [sum(kinds[ord(char)] != 3 for char in word) for word in plain]
    return [
        i
        for i in range(len(folded) - shingler.k + 1)
        if folded[i] in stops or (shingler.letters and lengths[i] <= shingler.letters)
    ]


def document_shingles(shingler, text, kinds):
    """The 64-bit hashes of all shingles of a document, including repeated ones."""
    hashes = [hash_unit(shingler, unit) for unit in units(shingler, text, kinds)]
    if shingler.name != "stopwords":
        return shingle_hashes(hashes, shingler.k)
    starts = stop_starts(shingler, text, kinds)
    if not starts:
        return shingle_hashes(hashes, len(hashes) + 1)
    return [polynomial(hashes[i : i + shingler.k]) for i in starts]


def document_set(shingler, text, kinds):
    values = document_shingles(shingler, text, kinds)
    if shingler.bits == 32:
        values = [x >> 32 for x in values]
    if not shingler.bag:
        return distinct(values)
    return [x & (1 << shingler.bits) - 1 for x in numbered(values)]


def digest_shingles(values, seed):
    """Fingerprint a bag of shingles."""
    mixed = [mix(x ^ seed) for x in values]
    return [mix(sum(mixed) & MASK), mix(len(values) + sum(m ^ m >> 31 for m in mixed) & MASK)]


# set → signature → band keys → candidates


def classic_signature(values, seeds, t):
    return [min((mix(x ^ seeds[i]) >> 32 for x in values), default=NOTHING) for i in range(t)]


def fast_signature(values, seeds, t):
    """All 2t rounds, without early stopping."""
    best = [(2 * t, NOTHING)] * t
    for j in range(2 * t):
        for x in values:
            u = mix(x ^ seeds[j])
            slot = (u >> 32) * t >> 32 if j < t else j - t
            best[slot] = min(best[slot], (j, u & LOW32))
    return [low for _, low in best]


SIGNATURES = {"fast": fast_signature, "classic": classic_signature}


def signature(method, seed, values, t):
    return SIGNATURES[method](values, seed_sequence(seed, 2 * t), t)


def band_key(slots):
    h = WORD_SEED
    for slot in slots:
        h = (h ^ slot) * STREAM_ODD & MASK
        h ^= h >> 32
    return mix(h) >> 32


def band_keys(slots, rows):
    return [band_key(slots[i : i + rows]) for i in range(0, len(slots), rows)]


def candidates(keys, low=0, high=None, cap=None):
    """All pairs that share a bucket, of at most `cap` items, in some band; not two below `low`, nor two from `high`."""
    high = len(keys) if high is None else high
    sizes = [Counter(column) for column in zip(*keys, strict=True)]
    return [
        (i, j)
        for i, j in combinations(range(len(keys)), 2)
        if not (j < low or i >= high)
        and any(a == b and (cap is None or size[a] <= cap) for a, b, size in zip(keys[i], keys[j], sizes, strict=True))
    ]


def crowds(keys, cap):
    """Items connected through buckets of more than `cap` items, as sorted lists, largest first."""
    joined = []
    for column in zip(*keys, strict=True):
        for key, size in Counter(column).items():
            if size > cap:
                joined.append({item for item, its in enumerate(column) if its == key})
    for bucket in joined:
        for other in joined:
            if bucket is not other and bucket & other:
                other |= bucket
                bucket.clear()
    return sorted((sorted(crowd) for crowd in joined if crowd), key=lambda crowd: (-len(crowd), crowd[0]))


# similarity, pairs, clusters


def jaccard(a, b):
    a, b = (one if isinstance(one, set) else set(one) for one in (a, b))
    return len(a & b) / len(a | b) if a or b else 1.0


def bag_jaccard(a, b):
    """Σ min / Σ max of the counts."""
    a, b = Counter(a), Counter(b)
    return (a & b).total() / (a | b).total() if a or b else 1.0


def similar_pairs(sets, threshold, split=None):
    """Every pair at or above the threshold, with its similarity: {(i, j): similarity}."""
    sets = list(map(set, sets))
    pairs = [pair for pair in combinations(range(len(sets)), 2) if split is None or pair[0] < split <= pair[1]]
    found = {(i, j): jaccard(sets[i], sets[j]) for i, j in pairs}
    return {pair: similarity for pair, similarity in found.items() if similarity >= threshold}


def keepers(order, pairs):
    """Which item is kept for each: the first in the order stays, and its neighbours without a keeper are removed."""
    stands_for = {}
    for node in order:
        if node not in stands_for:
            stands_for[node] = node
            for other in order:
                if other not in stands_for and ((node, other) in pairs or (other, node) in pairs):
                    stands_for[other] = node
    return stands_for


def components(n, pairs):
    """The smallest node of every node's connected component."""
    lowest = list(range(n))
    for _ in range(n):
        for i, j in pairs:
            lowest[i] = lowest[j] = min(lowest[i], lowest[j])
    return lowest


# exact joins

SIMILARITIES = {
    "jaccard": lambda shared, a, b: shared / (a + b - shared),
    "dice": lambda shared, a, b: 2 * shared / (a + b),
    "cosine": lambda shared, a, b: shared / sqrt(a * b),
    "overlap": lambda shared, a, b: shared / min(a, b),
    "containment": lambda shared, a, b: shared / a,
}


def similarity(measure, a, b, bag=False):
    return _alike(measure, _tokens(a, bag), _tokens(b, bag))


def _tokens(tokens, bag):
    """A set, or the set of (token, number) for each time that a bag holds a token: what bags share is what these do."""
    return {(token, n) for token, count in Counter(tokens).items() for n in range(count)} if bag else set(tokens)


def _alike(measure, a, b):
    if not a or not b:
        return float(not a and (not b or measure == "containment"))
    return SIMILARITIES[measure](len(a & b), len(a), len(b))


def joined(sets, threshold, measure="jaccard", other=None, bag=False):
    """All pairs, compared one by one: [(i, j, similarity)], sorted."""
    here = [_tokens(one, bag) for one in sets]
    there = here if other is None else [_tokens(one, bag) for one in other]
    cells = [(i, j) for i in range(len(here)) for j in range(len(there))]
    if other is None:
        cells = [(i, j) for i, j in cells if i < j or (i > j and measure == "containment")]
    found = [(i, j, _alike(measure, here[i], there[j])) for i, j in cells]
    return [row for row in found if row[2] >= threshold]


# exercise 3.4.4 of the chapter: bands by map and reduce


def map_and_reduce(b, r):
    """Return the functions of exercise 3.4.4 for b bands of r rows: (map, reduce) of part (a), and of part (b)."""

    def bands(column, signature):
        for band in range(b):
            yield (band, tuple(signature[band * r : (band + 1) * r])), column

    def bucket(key, columns):
        return key, sorted(columns)

    def pairs(key, columns):
        for place, column in enumerate(columns):
            for later in columns[place + 1 :]:
                yield column, later

    def to_compare(column, later):
        return column, sorted(set(later))

    return (bands, bucket), (pairs, to_compare)
