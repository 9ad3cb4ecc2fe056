"""The type of all explanations, and why two documents, sets or vectors are a pair or not."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Sets
from likewise.base.words import counted, shortened, visible
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.signatures import standard_error
from likewise.measures import batch
from likewise.search.band_keys import HeldKeys
from likewise.search.estimate import LEAST_SLOTS, acceptance, banded
from likewise.search.sketch import SketchPlan, key_sets
from likewise.search.vectors.load import Vectors, space_of
from likewise.shingle import Shingler
from likewise.view.webpage import Span, page, paragraph, section, side_by_side, table, text, write_page

SHOWN = 8
"""Shingles of each kind that an explanation lists."""
WIDE = 70
"""Characters of an id or a shingle that are shown."""
MOST_WORDS = 10_000
"""Words of each document that are compared word by word for a page: in at most 13 MB, one bit for every two."""
BANDS_SHOWN = 12
"""Bands that are listed by number."""
UNITS = {"angle": " degrees", "l2": "", "l1": "", "hamming": " bits"}
SEARCHES = {"exact": "exact: all vectors are compared", "lsh": "hash tables", "cells": "the nearest cells"}


class Reason:
    """Why two items are a pair or not: from a summary, facts, and lists of what tells come text, pages and drawings."""

    heading: ClassVar[str] = "How similar"
    id_a: Any
    id_b: Any
    notes: tuple[str, ...]

    def summary(self) -> str:
        """Return the verdict in one line."""
        raise NotImplementedError

    def facts(self) -> list[tuple[str, str]]:
        """Return what is known as lines of a table."""
        raise NotImplementedError

    def telling(self) -> list[tuple[str, list[str]]]:
        """Return lists with their titles."""
        return []

    def _names(self, most: int = WIDE) -> tuple[str, str]:
        return shortened(self.id_a, most), shortened(self.id_b, most)

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(name) for name, _ in facts)
        lines = [self.summary(), *self.notes, *(f"  {name:<{width}}  {said}" for name, said in facts)]
        for title, listed in self.telling():
            lines += [title, *(f"  {line}" for line in listed)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary()}>"

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.table import Table
        from rich.text import Text

        facts = Table(box=None, pad_edge=False, show_header=False)
        facts.add_column(style="dim")
        facts.add_column(overflow="fold")
        for name, said in self.facts():
            facts.add_row(Text(name), Text(said))
        yield from (Text(self.summary(), style="bold"), *map(Text, self.notes), facts)
        for title, listed in self.telling():
            yield from (Text(title, style="dim"), *(Text(f"  {line}") for line in listed))

    def parts(self) -> list[str]:
        """Return the parts of a page: the verdict, the facts, and the lists."""
        made = [paragraph(self.summary(), *self.notes), section(self.heading, table((), self.facts()))]
        lists = "".join(
            f"<div><b>{text(title)}</b><ul>{''.join(f'<li>{text(line)}</li>' for line in listed)}</ul></div>"
            for title, listed in self.telling()
        )
        return [*made, section("Most distinctive shingles", f'<div class="lists">{lists}</div>')] if lists else made

    def _side_by_side(self) -> str:
        return ""

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the explanation as a page of HTML, and write it to a file if a path is given."""
        first, *rest = self.parts()
        whole = page(" and ".join(self._names()), first, *filter(None, [self._side_by_side()]), *rest)
        if path is not None:
            write_page(path, whole)
        return whole

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return "".join(self.parts())


@dataclass(frozen=True)
class SetScheme:
    """How a run compares sets: the measure, the threshold, the hash functions, and the banding (None: exact search).

    slots: the length of the signatures from which a similarity is estimated. estimate: the run reports estimates.
    """

    measure: str = "jaccard"
    threshold: float = 0.8
    minhash: MinHash = field(default_factory=MinHash)
    banding: Banding | None = None
    slots: int = LEAST_SLOTS
    estimate: bool = False

    @classmethod
    def of_run(cls, stats: dict[str, Any]) -> SetScheme:
        """Return the scheme of a run, as run.json has it."""
        parameters, details = stats["parameters"], stats["details"]
        known = details.get("banding")
        banding = Banding(known["bands"], known["rows"]) if known else None
        estimate = bool(parameters.get("estimate"))
        slots = details["estimate"]["slots"] if estimate else banding.slots if banding else LEAST_SLOTS
        minhash = MinHash(parameters["seed"], parameters["sketch"])
        return cls(parameters.get("measure", "jaccard"), parameters["threshold"], minhash, banding, slots, estimate)

    def sketch(self, sets: Sets) -> tuple[float, list[int]]:
        """Return the fraction of slots in which two signatures agree, and the bands in which they do, from 0."""
        signatures = self.minhash.hashes(sets, self.slots)
        agreed = float(np.mean(signatures[0] == signatures[1]))
        if self.banding is None or not sets.sizes.all():
            return agreed, []
        written = Banding(self.slots, 1) if self.estimate else self.banding
        keys = HeldKeys(np.empty((2, written.b), np.uint32))
        key_sets(sets, SketchPlan(self.minhash, written, keys))
        matrix = (banded(keys, self.banding) if self.estimate else keys).matrix
        assert matrix is not None
        return agreed, np.flatnonzero(matrix[0] == matrix[1]).tolist()

    def chances(self, similarity: float, jaccard: float) -> tuple[float, float]:
        """Return the probabilities that such a pair becomes a candidate, and that it is reported."""
        reached = float(similarity >= self.threshold)
        if self.banding is None:
            return 1.0, reached
        candidate = self.banding.probability(jaccard)
        accepted = acceptance(self.threshold, self.slots, jaccard) if self.estimate else reached
        return candidate, candidate * accepted


@dataclass(frozen=True, repr=False)
class SetReason(Reason):
    """Why two documents or sets are a pair or not. `print` shows it; `to_html` is a page, `to_dict` plain data.

    sizes: the number of shingles of both; shared: of those that both have. similarities: under each measure, exact.
    estimate: the fraction of `slots` minhash values that agree, with its standard error at the exact similarity.
    bands: the bands in which they meet, counted from 0; none if the search is exact. candidate, probability: how
    probable it is that a pair of this similarity becomes a candidate, and that it is reported. found: whether the run
    found it; None if there was no run. shingles: the most telling of "shared", "only_a" and "only_b", those of fewest
    documents first, with the number of documents that have each among the first `sample` of the collection.
    """

    id_a: Any
    id_b: Any
    scheme: SetScheme
    sizes: tuple[int, int]
    shared: int
    similarities: dict[str, float]
    estimate: float
    standard_error: float
    bands: list[int]
    candidate: float
    probability: float
    shingle: str | None = None
    shingles: dict[str, list[tuple[str, int | None]]] = field(default_factory=dict)
    sample: int = 0
    found: bool | None = None
    notes: tuple[str, ...] = ()
    texts: tuple[str, str] | None = None

    @property
    def similarity(self) -> float:
        """The similarity by the measure of the run."""
        return self.similarities[self.scheme.measure]

    @property
    def near(self) -> bool:
        """Whether they are similar enough for a pair."""
        return self.similarity >= self.scheme.threshold

    def summary(self) -> str:
        """Return the verdict in one line."""
        scheme, (a, b) = self.scheme, self._names()
        verdict = {True: "a pair", False: "no pair", None: "similar" if self.near else "not similar"}[self.found]
        above = "at or above" if self.near else "below"
        said = f"{scheme.measure} similarity {self.similarity:.4f}, {above} the threshold {scheme.threshold:g}"
        return f"{a} and {b}: {verdict}; {said}"

    def facts(self) -> list[tuple[str, str]]:
        """Return everything but the shingles as lines of a table."""
        scheme, measured, (a, b) = self.scheme, self.similarities, self._names(24)
        noun = f"shingles ({self.shingle})" if self.shingle else "elements"
        said = [
            (noun, f"{self.sizes[0]:,} in {a}, {self.sizes[1]:,} in {b}"),
            ("shared", f"{self.shared:,} of {sum(self.sizes) - self.shared:,}"),
            ("jaccard", f"{measured['jaccard']:.4f}"),
            ("containment", f"{measured['containment']:.4f} of {a} in {b}"),
            ("", f"{measured['containment_of_b']:.4f} of {b} in {a}"),
            *((name, f"{measured[name]:.4f}") for name in ("cosine", "dice", "overlap")),
            ("estimate", f"{self.estimate:.4f} ± {self.standard_error:.4f} from {scheme.slots:,} minhash values"),
        ]
        if scheme.banding is None:
            return [*said, ("search", "exact: every pair at or above the threshold is found")]
        listed = ", ".join(str(band + 1) for band in self.bands[:BANDS_SHOWN])
        more = ", …" if len(self.bands) > BANDS_SHOWN else ""
        met = f"{len(self.bands):,} of {scheme.banding}" + (f": {listed}{more}" if self.bands else "")
        reported = f"with probability {_chance(self.probability)}" if self.probability else "no: below the threshold"
        candidates = f"with probability {_chance(self.candidate)} at this similarity"
        return [*said, ("bands they share", met), ("candidates", candidates), ("reported", reported)]

    def telling(self) -> list[tuple[str, list[str]]]:
        """Return the lists of shingles with their titles."""
        a, b = self._names(24)
        titles = {"shared": "in both", "only_a": f"only in {a}", "only_b": f"only in {b}"}
        counts = {"shared": self.shared, "only_a": self.sizes[0] - self.shared, "only_b": self.sizes[1] - self.shared}
        return [
            (f"{titles[kind]}: {counts[kind]:,}", [_described(*shingle, self.sample) for shingle in listed])
            for kind, listed in self.shingles.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the documents as plain data, for JSON."""
        scheme = self.scheme
        banding = {"bands": scheme.banding.b, "rows": scheme.banding.r} if scheme.banding else None
        shingles = {
            kind: [{"shingle": shown, "documents": count} for shown, count in listed]
            for kind, listed in self.shingles.items()
        }
        return {
            "id_a": self.id_a, "id_b": self.id_b, "found": self.found, "measure": scheme.measure,
            "threshold": scheme.threshold, "shingle": self.shingle, "sizes": list(self.sizes), "shared": self.shared,
            "similarities": self.similarities, "estimate": self.estimate, "standard_error": self.standard_error,
            "slots": scheme.slots, "banding": banding, "bands": self.bands, "candidate": self.candidate,
            "probability": self.probability, "sample": self.sample, "shingles": shingles, "notes": list(self.notes),
        }  # fmt: skip

    def _side_by_side(self) -> str:
        if self.texts is None:
            return ""
        both = side_by_side((self.id_a, self.id_b), self.texts, changed_words(*self.texts))
        return section("The documents, and the words that differ", both)


@dataclass(frozen=True, repr=False)
class VectorReason(Reason):
    """Why two vectors are a pair, or neighbours, or not. `print` shows it; `to_html` is a page, `to_dict` plain data.

    distance: by the measure of the run. distances: by all measures that these vectors have. within: the largest
    distance of a pair (None for neighbours). probability: that a pair at this distance is found, at least. found:
    whether the run found it.
    """

    heading: ClassVar[str] = "How far apart"
    id_a: Any
    id_b: Any
    measure: str
    distance: float
    distances: dict[str, float]
    components: int
    within: float | None
    method: str
    probability: float
    found: bool
    notes: tuple[str, ...] = ()

    @property
    def near(self) -> bool:
        """Whether they are near enough for a pair."""
        return self.within is None or self.distance <= self.within

    def summary(self) -> str:
        """Return the verdict in one line."""
        a, b = self._names()
        said = f"{self.measure} {self.distance:.6g}{UNITS[self.measure]}"
        if self.within is None:
            verdict = "neighbours" if self.found else f"{b} is not among the nearest neighbours of {a}"
            return f"{a} and {b}: {verdict}; {said}"
        limit = f"{'within' if self.near else 'more than'} {self.within:g}"
        return f"{a} and {b}: {'a pair' if self.found else 'no pair'}; {said}, {limit}"

    def facts(self) -> list[tuple[str, str]]:
        """Return everything as lines of a table."""
        said = [("components", f"{self.components:,}")]
        said += [(name, f"{value:.6g}{UNITS.get(name, '')}") for name, value in self.distances.items()]
        if self.within is not None:
            said.append(("largest distance of a pair", f"{self.within:.6g}{UNITS[self.measure]}"))
        chance = "with certainty" if self.probability == 1 else f"with probability {self.probability:.6g} or more"
        told = chance if self.near else "no: farther apart than a pair may be"
        return [*said, ("search", SEARCHES.get(self.method, self.method)), ("found", told)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return dict(vars(self))


def explain_sets(
    ids: tuple[Any, Any], sets: Sets, scheme: SetScheme, shingler: Shingler | None, sample: Sets | None, **known: Any
) -> SetReason:
    """Compare two sets under every measure, and by the scheme of a run; known: found, notes, texts.

    Of documents the most telling shingles are named: the rarest in the sets of a sample.
    """
    a, b = (np.unique(values.astype(np.uint64)) for values in sets)
    kinds = {
        "shared": np.intersect1d(a, b, assume_unique=True),
        "only_a": np.setdiff1d(a, b, assume_unique=True),
        "only_b": np.setdiff1d(b, a, assume_unique=True),
    }
    shared = len(kinds["shared"])
    measured = measures_of(len(a), len(b), shared)
    if shingler is not None:
        spelled = _spelled(known["texts"], shingler)
        known["shingle"] = str(shingler)
        known["shingles"] = {kind: _most_telling(values, spelled, sample) for kind, values in kinds.items()}
        known["sample"] = 0 if sample is None else len(sample)
    estimate, bands = scheme.sketch(sets)
    error = standard_error(measured["jaccard"], scheme.slots)
    chances = scheme.chances(measured[scheme.measure], measured["jaccard"])
    sizes = len(a), len(b)
    return SetReason(*ids, scheme, sizes, shared, measured, estimate, error, bands, *chances, **known)


def explain_vectors(
    ids: tuple[Any, Any], a: NDArray[Any], b: NDArray[Any], stats: dict[str, Any], found: bool
) -> VectorReason:
    """Compare two vectors by every measure, and by the settings of a run, as run.json has them."""
    parameters, measure = stats["parameters"], stats["parameters"]["measure"]
    within, method = parameters.get("within"), (stats["method"] or {}).get("taken", "exact")
    both = [Vectors(np.ascontiguousarray(vector)[None], None, []) for vector in (a, b)]
    space = space_of(measure, both, 1 << 30, None)
    distance = float(space.distances(np.zeros(1, np.int64), np.ones(1, np.int64))[0])
    distances = {measure: distance}
    if measure != "hamming":
        x, y = (np.asarray(vector, np.float64)[None] for vector in (a, b))
        distances = {"l2": float(batch.lr(x, y, 2)[0]), "l1": float(batch.lr(x, y, 1)[0]), **distances}
        if x.any() and y.any():
            angle = float(batch.angle(x, y)[0])
            distances |= {"angle": angle, "cosine": float(np.cos(np.radians(angle)))}
    near = within is None or distance <= within
    reached = stats["details"].get("cells" if method == "cells" else "tables", {}).get("recall", 1.0)
    chance = (1.0 if method == "exact" else float(reached)) if near else 0.0
    return VectorReason(*ids, measure, distance, distances, space.dimensions, within, method, chance, found)


def measures_of(a: int, b: int, shared: int) -> dict[str, float]:
    """Return the similarity under each measure of two sets of these sizes, as `likewise.measures` defines them.

    >>> measures_of(4, 8, 4)["containment"], measures_of(4, 8, 4)["jaccard"], measures_of(0, 0, 0)["dice"]
    (1.0, 0.5, 1.0)
    """

    def ratio(part: float, whole: float) -> float:
        return part / whole if whole else float(a == b)

    return {
        "jaccard": ratio(shared, a + b - shared),
        "containment": shared / a if a else 1.0,
        "containment_of_b": shared / b if b else 1.0,
        "cosine": ratio(shared, math.sqrt(a * b)),
        "dice": ratio(2 * shared, a + b),
        "overlap": ratio(shared, min(a, b)),
    }


def changed_words(a: str, b: str) -> tuple[list[Span], list[Span]]:
    """Return the spans of the words of each text that the other does not have at that place.

    >>> changed_words("to be or not", "to be and not")
    ([(6, 8)], [(6, 9)])
    """
    from rapidfuzz.distance import Indel

    words = [[word.span() for word in re.finditer(r"\S+", whole)][:MOST_WORDS] for whole in (a, b)]
    sides = [[whole[slice(*span)] for span in listed] for whole, listed in zip((a, b), words, strict=True)]
    spans: tuple[list[Span], list[Span]] = ([], [])
    for step in Indel.opcodes(*sides):
        if step.tag != "equal":
            ranges = (step.src_start, step.src_end), (step.dest_start, step.dest_end)
            for changed, listed, (low, high) in zip(spans, words, ranges, strict=True):
                if high > low:
                    changed.append((listed[low][0], listed[high - 1][1]))
    return spans


def _spelled(texts: tuple[str, str], shingler: Shingler) -> dict[int, str]:
    """Return the text of every shingle by its hash; the repetitions of a bag have none."""
    plain = replace(shingler, bag=False)
    names: dict[int, str] = {}
    for document in texts:
        names.update(zip(plain.sets([document]).values.tolist(), plain.members(document), strict=False))
    return names


def _most_telling(values: Hashes, spelled: dict[int, str], sample: Sets | None) -> list[tuple[str, int | None]]:
    """Return the shingles of these values, which ascend, that the fewest sets of a sample have, and how many do."""
    counts = np.zeros(len(values), np.int64)
    if sample is not None and len(values):
        every = sample.values.astype(np.uint64)
        place = np.minimum(np.searchsorted(values, every), len(values) - 1)
        counts = np.bincount(place[values[place] == every], minlength=len(values))
    order = {value: place for place, value in enumerate(spelled)}
    ranked = sorted(
        (count, -len(spelled[value]), order[value], value)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True)
        if value in spelled
    )
    alike = sum(rank[:2] == ranked[0][:2] for rank in ranked)
    step = max(1, alike // SHOWN)  # of many that tell as much, some from all over the document
    chosen = [*ranked[:alike:step], *ranked[alike:]][:SHOWN]
    return [(spelled[value], count if sample is not None else None) for count, _, _, value in chosen]


def _described(shingle: str, count: int | None, sample: int) -> str:
    line = visible(shingle).replace("\n", " ")
    shown = f"“{line if len(line) <= WIDE else line[: WIDE - 1] + '…'}”"
    return shown if count is None else f"{shown}  ({counted(count, 'document')} of {sample:,})"


def _chance(probability: float) -> str:
    if 0.9999 < probability < 1:
        return "above 0.9999"
    return f"{probability:.4f}" if probability >= 0.0001 else f"{probability:.2g}"
