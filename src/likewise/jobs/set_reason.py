"""Why two documents or sets are a pair or not: what they share, how similar they are, and how they would be found."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.webpage import Span, page, paragraph, section, side_by_side, table, text
from likewise.base.words import counted, shortened, visible
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.sketches import standard_error
from likewise.io.disk import atomic
from likewise.search.band_keys import HeldKeys
from likewise.search.estimate import LEAST_SLOTS, acceptance, banded
from likewise.search.sketch import SketchPlan, key_sets
from likewise.shingle import Shingler

SHOWN = 8
"""Shingles of each kind that an explanation lists."""
WIDE = 70
"""Characters of a shingle that are shown."""
MOST_WORDS = 10_000
"""Words of each document that are compared word by word for a page: in at most 13 MB, one bit for every two."""
BANDS_SHOWN = 12
"""Bands that are listed by number."""


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
class SetReason:
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
        scheme = self.scheme
        above = "at or above" if self.near else "below"
        verdict = {True: "a pair", False: "no pair", None: "similar" if above != "below" else "not similar"}[self.found]
        said = f"{scheme.measure} similarity {self.similarity:.4f}, {above} the threshold {scheme.threshold:g}"
        return f"{shortened(self.id_a, WIDE)} and {shortened(self.id_b, WIDE)}: {verdict}; {said}"

    def facts(self) -> list[tuple[str, str]]:
        """Return everything but the shingles as lines of a table."""
        a, b = (shortened(one, 24) for one in (self.id_a, self.id_b))
        scheme, measured = self.scheme, self.similarities
        union = sum(self.sizes) - self.shared
        noun = f"shingles ({self.shingle})" if self.shingle else "elements"
        said = [
            (noun, f"{self.sizes[0]:,} in {a}, {self.sizes[1]:,} in {b}"),
            ("shared", f"{self.shared:,} of {union:,}"),
            ("jaccard", f"{measured['jaccard']:.4f}"),
            ("containment", f"{measured['containment']:.4f} of {a} in {b}"),
            ("", f"{measured['containment_of_b']:.4f} of {b} in {a}"),
            ("cosine", f"{measured['cosine']:.4f}"),
            ("dice", f"{measured['dice']:.4f}"),
            ("overlap", f"{measured['overlap']:.4f}"),
            ("estimate", f"{self.estimate:.4f} ± {self.standard_error:.4f} from {scheme.slots:,} minhash values"),
        ]  # fmt: skip
        if scheme.banding is None:
            said.append(("search", "exact: every pair at or above the threshold is found"))
            return said
        listed = ", ".join(str(band + 1) for band in self.bands[:BANDS_SHOWN])
        more = ", …" if len(self.bands) > BANDS_SHOWN else ""
        met = f"{len(self.bands):,} of {scheme.banding}" + (f": {listed}{more}" if self.bands else "")
        said.append(("bands they share", met))
        said.append(("candidates", f"with probability {_chance(self.candidate)} at this similarity"))
        reported = f"with probability {_chance(self.probability)}" if self.probability else "no: below the threshold"
        said.append(("reported", reported))
        return said

    def telling(self) -> list[tuple[str, list[str]]]:
        """Return the lists of shingles with their titles."""
        a, b = (shortened(one, 24) for one in (self.id_a, self.id_b))
        titles = {"shared": "in both", "only_a": f"only in {a}", "only_b": f"only in {b}"}
        counts = {"shared": self.shared, "only_a": self.sizes[0] - self.shared, "only_b": self.sizes[1] - self.shared}
        return [
            (f"{titles[kind]}: {counts[kind]:,}", [_described(*one, self.sample) for one in listed])
            for kind, listed in self.shingles.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the documents as plain data, for JSON."""
        scheme = self.scheme
        banding = {"bands": scheme.banding.b, "rows": scheme.banding.r} if scheme.banding else None
        return {
            "id_a": self.id_a, "id_b": self.id_b, "found": self.found, "measure": scheme.measure,
            "threshold": scheme.threshold, "shingle": self.shingle, "sizes": list(self.sizes), "shared": self.shared,
            "similarities": self.similarities, "estimate": self.estimate, "standard_error": self.standard_error,
            "slots": scheme.slots, "banding": banding, "bands": self.bands, "candidate": self.candidate,
            "probability": self.probability, "sample": self.sample,
            "shingles": {
                kind: [{"shingle": shown, "documents": count} for shown, count in listed]
                for kind, listed in self.shingles.items()
            },
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(name) for name, _ in facts)
        lines = [self.summary(), *self.notes, *(f"  {name:<{width}}  {said}" for name, said in facts)]
        for title, listed in self.telling():
            lines += [title, *(f"  {one}" for one in listed)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary()}>"

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        facts = Table(box=None, pad_edge=False, show_header=False)
        facts.add_column(style="dim")
        facts.add_column(overflow="fold")
        for name, said in self.facts():
            facts.add_row(Text(name), Text(said))
        lines: list[Any] = [Text(self.summary(), style="bold"), *map(Text, self.notes), facts]
        for title, listed in self.telling():
            lines += [Text(title, style="dim"), *(Text(f"  {one}") for one in listed)]
        return Group(*lines)

    def parts(self) -> list[str]:
        """Return the parts of a page: the verdict, the facts, and the shingles."""
        found = [paragraph(self.summary(), *self.notes), section("How similar", table((), self.facts()))]
        if self.shingles:
            lists = "".join(
                f"<div><b>{text(title)}</b><ul>{''.join(f'<li>{text(one)}</li>' for one in listed)}</ul></div>"
                for title, listed in self.telling()
            )
            found.append(section("Most distinctive shingles", f'<div class="lists">{lists}</div>'))
        return found

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the explanation as a page of HTML, and write it to a file if a path is given."""
        parts = self.parts()
        if self.texts is not None:
            names = (self.id_a, self.id_b)
            both = side_by_side(names, self.texts, changed_words(*self.texts))
            parts.insert(1, section("The documents, and the words that differ", both))
        whole = page(f"{shortened(self.id_a, WIDE)} and {shortened(self.id_b, WIDE)}", *parts)
        if path is not None:
            write_page(path, whole)
        return whole

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return "".join(self.parts())


def explain_sets(
    ids: tuple[Any, Any], sets: Sets, scheme: SetScheme, shingle: str | None = None, **known: Any
) -> SetReason:
    """Compare two sets under every measure, and by the scheme of a run."""
    a, b = (np.unique(one.astype(np.uint64)) for one in sets)
    shared = len(np.intersect1d(a, b, assume_unique=True))
    measured = measures_of(len(a), len(b), shared)
    estimate, bands = scheme.sketch(sets)
    candidate, reported = scheme.chances(measured[scheme.measure], measured["jaccard"])
    error = standard_error(measured["jaccard"], scheme.slots)
    sizes = len(a), len(b)
    return SetReason(
        *ids, scheme, sizes, shared, measured, estimate, error, bands, candidate, reported, shingle, **known
    )


def explain_texts(
    ids: tuple[Any, Any], texts: tuple[str, str], shingler: Shingler, scheme: SetScheme, sets: Sets,
    sample: Sets | None = None, **known: Any,
) -> SetReason:  # fmt: skip
    """Compare the sets of two documents, and name their most telling shingles: the rarest in the sets of a sample."""
    a, b = (np.unique(one.astype(np.uint64)) for one in sets)
    spelled = _spelled(texts, shingler)
    kinds = {
        "shared": np.intersect1d(a, b, assume_unique=True),
        "only_a": np.setdiff1d(a, b, assume_unique=True),
        "only_b": np.setdiff1d(b, a, assume_unique=True),
    }
    shingles = {kind: _most_telling(values, spelled, sample) for kind, values in kinds.items()}
    size = 0 if sample is None else len(sample)
    return replace(explain_sets(ids, sets, scheme, str(shingler), **known), shingles=shingles, sample=size, texts=texts)


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
    words = [[(one.start(), one.end()) for one in re.finditer(r"\S+", whole)][:MOST_WORDS] for whole in (a, b)]
    sides = [[whole[slice(*one)] for one in listed] for whole, listed in zip((a, b), words, strict=True)]
    spans: tuple[list[Span], list[Span]] = ([], [])
    from rapidfuzz.distance import Indel

    for step in Indel.opcodes(*sides):
        if step.tag != "equal":
            places = (step.src_start, step.src_end), (step.dest_start, step.dest_end)
            for found, listed, (low, high) in zip(spans, words, places, strict=True):
                if high > low:
                    found.append((listed[low][0], listed[high - 1][1]))
    return spans


def write_page(path: str | Path, whole: str) -> None:
    """Write a page; the file appears under its name only when it is complete."""
    with atomic(Path(path)) as out:
        out.write(whole.encode())


def _spelled(texts: tuple[str, str], shingler: Shingler) -> dict[int, str]:
    """Return the text of every shingle by its hash; the repetitions of a bag have none."""
    plain = replace(shingler, bag=False)
    names: dict[int, str] = {}
    for one in texts:
        names.update(zip(plain.sets([one]).values.tolist(), plain.members(one), strict=False))
    return names


def _most_telling(values: Hashes, spelled: dict[int, str], sample: Sets | None) -> list[tuple[str, int | None]]:
    order = {value: place for place, value in enumerate(spelled)}
    named = [(order[value], value, place) for place, value in enumerate(values.tolist()) if value in spelled]
    counts = _carriers(values, sample) if sample is not None else np.zeros(len(values), np.int64)
    ranked = sorted((counts[place], -len(spelled[value]), at, value) for at, value, place in named)
    alike = sum(one[:2] == ranked[0][:2] for one in ranked)
    step = max(1, alike // SHOWN)  # of many that tell as much, some from all over the document
    chosen = [*ranked[:alike:step], *ranked[alike:]][:SHOWN]
    return [(spelled[value], int(count) if sample is not None else None) for count, _, _, value in chosen]


def _carriers(values: Hashes, sample: Sets) -> Ints:
    """Count for each of these values, which ascend, the sets of a sample that have it."""
    if not len(values):
        return np.zeros(0, np.int64)
    every: NDArray[Any] = sample.values.astype(np.uint64)
    place = np.minimum(np.searchsorted(values, every), len(values) - 1)
    return np.bincount(place[values[place] == every], minlength=len(values))


def _described(shingle: str, count: int | None, sample: int) -> str:
    line = visible(shingle).replace("\n", " ")
    shown = f"“{line if len(line) <= WIDE else line[: WIDE - 1] + '…'}”"
    return shown if count is None else f"{shown}  ({counted(count, 'document')} of {sample:,})"


def _chance(probability: float) -> str:
    if 0.9999 < probability < 1:
        return "above 0.9999"
    return f"{probability:.4f}" if probability >= 0.0001 else f"{probability:.2g}"
