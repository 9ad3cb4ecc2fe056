"""URLs to sets: positional bigrams of their tokens, used to find hosts with the same pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, Texts, concatenate
from likewise.base.tokens import hash_column
from likewise.errors import ParameterError
from likewise.shingle.shinglers import Form, Shingler, check_bits, check_text

STOP = ("htm", "html", "txt", "main", "index", "home", "bin", "cgi")
"""Frequent components that say nothing about a page (Bharat and Broder, 1999)."""
WAYS = {None: 0, "start": 1, "end": 2}
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?//")
ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
LETTERS = re.compile(rb"[A-Za-z\x80-\xff]+")
MOST_TOKENS = 256
"""Tokens of a URL that count: far more than real URLs have, and a bound on the work for degenerate ones."""
BATCH = 1 << 16
"""URLs shingled at a time."""


@dataclass(frozen=True, init=False)
class Urls(Shingler):
    """Positional bigrams of URL tokens: every two adjacent tokens with their position.

    ASCII capitals become lower case; punctuation and digits separate tokens; frequent components (`stop`) are dropped.
    Whatever precedes the host (scheme, user) and follows a # is ignored. A URL of one token has one shingle, the token
    with an empty partner; a URL without tokens has none. Only the first 256 tokens count.

    `dedup` and `pairs` take it, and "urls" on the command line; text files then hold one URL per line.

    host: include the tokens of the host; False: only those of path and query.
    position: "start", counted from the first token; "end", from the last, so that /pub/debian/pool/main and
    /debian/pool/main share most of their shingles; None, no position.
    bits, bag: as for other shinglers.

    >>> Urls().tokens("www6.infoseek.com")
    ['www', 'infoseek', 'com']
    >>> Urls().shingles("/cellblock16/inmates/dilbert/personal/foo.htm")  # doctest: +NORMALIZE_WHITESPACE
    [('cellblock', 'inmates', 0), ('inmates', 'dilbert', 1), ('dilbert', 'personal', 2),
     ('personal', 'foo', 3)]
    """

    k: int = field(default=1, init=False, repr=False)
    casefold: bool = field(default=True, init=False, repr=False)
    normalize: Form | None = field(default=None, init=False, repr=False)
    stop: Iterable[str] = STOP
    host: bool = True
    position: str | None = "start"

    name: ClassVar[str] = "urls"
    by_sets: ClassVar[bool] = True

    def __init__(
        self,
        stop: Iterable[str] = STOP,
        host: bool = True,
        position: str | None = "start",
        bits: int = 64,
        bag: bool = False,
    ) -> None:
        given = {"stop": stop, "host": host, "position": position, "bits": bits, "bag": bag}
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        given = checks.listed("Urls", "stop", self.stop, "a list of components")
        if not all(isinstance(word, str) for word in given):
            raise ParameterError.of("Urls", "stop", "a list of components", self.stop)
        lowered = (word.encode().lower().decode() for word in given)  # ASCII capitals only, as in tokens
        object.__setattr__(self, "stop", tuple(dict.fromkeys(lowered)))
        for word in self.stop:
            if not LETTERS.fullmatch(word.encode()):
                raise ParameterError.of("Urls", "stop", "components of letters only", word)
        if self.position is not None and not (isinstance(self.position, str) and self.position in WAYS):
            raise ParameterError.of("Urls", "position", "'start', 'end' or None", self.position)
        check_bits("Urls", self.bits)
        for name in ("host", "bag"):
            checks.flag("Urls", name, getattr(self, name))

    def __str__(self) -> str:
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        own = {"stop": list(self.stop), "host": self.host, "position": self.position}
        return {"shingle": str(self), **own, "bits": self.bits, "bag": self.bag}

    def units(self, text: str) -> list[str]:
        """Return the tokens of a URL."""
        return self.tokens(text)

    def tokens(self, url: str) -> list[str]:
        """Return the tokens of a URL, stop components dropped."""
        url = check_text("Urls", "url", url).partition("#")[0]
        scheme = SCHEME.match(url)
        rest = url[scheme.end() :] if scheme else url
        if scheme or not url.startswith("/"):
            cut = min((place for place in map(rest.find, "/?") if place >= 0), default=len(rest))
            rest = rest[:cut].rpartition("@")[2] + rest[cut:] if self.host else rest[cut:]
        plain = ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), rest.encode())
        words = (word.lower().decode(errors="replace") for word in LETTERS.findall(plain))
        return [word for word in words if word not in self.stop][:MOST_TOKENS]

    def members(self, text: str) -> list[str]:
        """Return the shingles of a URL as text: two tokens and their position."""
        return [f"{a} {b} {place}" for a, b, place in self.shingles(text)]

    def shingles(self, url: str) -> list[tuple[str, str, int]]:  # type: ignore[override]
        """Return the different shingles of a URL: two tokens and their position."""
        tokens = self.tokens(url)
        if len(tokens) == 1:
            return [(tokens[0], "", 0)]
        last = len(tokens) - 2
        places = {"start": range(last + 1), "end": range(last, -1, -1), None: [0] * (last + 1)}[self.position]
        return list(dict.fromkeys(zip(tokens, tokens[1:], places, strict=False)))

    def chunk_sets(self, chunk: TextChunk, rows: Ints, common: Hashes | None = None) -> Sets:
        """Return the sets of these rows of a chunk, without the shingles in the table `common`."""
        from likewise.kernels.hashtable import sets_without

        parts = [self.united(chunk, rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]
        made = concatenate(parts)
        made = Sets(made.values.astype(np.uint64, copy=False), made.offsets)
        if common is None:
            return made
        values, offsets = np.empty(len(made.values), np.uint64), np.empty(len(made.offsets), np.int64)
        written = sets_without(made.values, made.offsets, common, values, offsets)
        return Sets(values[:written].copy(), offsets)

    def sets(self, urls: Any) -> Sets:
        """Return the set of hashed shingles of each URL in a list or an Arrow column."""
        parts = []
        for chunk in Texts.of(urls).chunks:
            loaded = chunk.load()
            parts += [
                self.united(loaded, np.arange(start, min(start + BATCH, len(loaded))))
                for start in range(0, len(loaded), BATCH)
            ]
        return concatenate(parts)

    def united(self, chunk: TextChunk, rows: Ints, ends: Ints | None = None) -> Sets:
        """Return the set of each of these URLs, or the union over each run of URLs that ends before one of `ends`."""
        from likewise.kernels.sets import sets_of_hashes

        hashes = self._hashes(chunk, rows)
        offsets = hashes.offsets if ends is None else hashes.offsets[np.concatenate([[0], ends])]
        values = hashes.values >> np.uint64(32) if self.bits == 32 else hashes.values
        out, out_offsets = np.empty(len(values), np.uint64), np.empty(len(offsets), np.int64)
        made = Sets(out[: sets_of_hashes(values, offsets, self.bag, out, out_offsets)], out_offsets)
        return Sets(made.values.astype(np.uint32), made.offsets) if self.bits == 32 else made

    def stop_table(self) -> Hashes:
        """Return the hash table of the stop components for the kernels."""
        from likewise.kernels.hashtable import fill_table

        hashes = hash_column(pa.array(list(self.stop), pa.large_string()))
        table = np.zeros(1 << max(1, (2 * len(hashes)).bit_length()), np.uint64)
        fill_table(hashes[hashes != 0], table)
        return table

    def _hashes(self, chunk: TextChunk, rows: Ints) -> Sets:
        from likewise.kernels.urls import shingle_urls

        words = self.stop_table()
        parts: list[Sets] = []
        while len(rows):
            room = int((chunk.offsets[rows + 1] - chunk.offsets[rows]).sum()) // 2 + 2 * MOST_TOKENS
            values, offsets = np.empty(room, np.uint64), np.empty(len(rows) + 1, np.int64)
            way = WAYS[self.position]
            done = shingle_urls(chunk.data, chunk.offsets, rows, self.host, way, words, values, offsets)
            parts.append(Sets(values[: offsets[done]].copy(), offsets[: done + 1].copy()))
            rows = rows[done:]
        return concatenate(parts)
