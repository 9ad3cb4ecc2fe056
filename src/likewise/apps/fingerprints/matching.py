"""`match`: which prints are of one finger; one against many, or all against all (Section 3.8.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints.answer import COMMAND, Matches, make_fingers, make_matches, make_scored
from likewise.apps.fingerprints.comparing import Compared, Comparison
from likewise.apps.fingerprints.prints import DPI, OWNER, Prints, read, tables_of
from likewise.apps.fingerprints.rates import Rate, curve
from likewise.apps.fingerprints.settings import Settings
from likewise.apps.fingerprints.threshold import Threshold, check_numbers, choose
from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.memory import peak_memory
from likewise.base.runlog import Progress, RunLog
from likewise.errors import InputError, ParameterError

Floats = NDArray[np.float64]

MIRRORS = 100
"""Mirrored prints that are compared at least, if there are so many."""
COMPARISONS = 100_000
"""Comparisons with mirrored prints that are made at least, if there are so many."""
SHOWN = 5


def match(
    prints: Any,
    others: Any = None,
    *,
    only: Sequence[str] | None = None,
    threshold: float | None = None,
    false: float = 1.0,
    near: float = 15.0,
    turned: float = 20.0,
    votes: float = 0.3,
    as_they_lie: bool = False,
    functions: int = 1024,
    groups: int = 2,
    side: float = 20.0,
    border: float = 5.0,
    seed: int = 1,
    id: str | None = None,
    x: str = "x",
    y: str = "y",
    angle: str = "angle",
    finger: str | None = None,
    angles: str = "auto",
    flip: bool = False,
    dpi: float = DPI,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Matches:
    """Find prints of one finger, however they lie: among all prints, or between prints and others (A7).

    prints, others: tables of minutiae, as files or in memory, or what `read` returned; see there for id, x, y, angle,
    finger, angles, flip, dpi. only: look for these prints alone.

    Candidates are pairs of prints with triples of minutiae that agree on a rotation and a shift. Each is verified: one
    print is laid on the other, and minutiae count that agree within `near` pixels and `turned` degrees. The score is
    the part of minutiae in the overlap that agree, less if these are few; a match has at least `threshold`. Without
    one, it is chosen such that `false` pairs of different fingers are to be expected among all, and no more than one
    in a thousand of them, judged by prints in a mirror, which match nothing but by chance.

    as_they_lie: prints lie alike, as the chapter assumes, and its functions find the candidates: see `Settings`.
    finger: what the true and false match rates are measured against; it has no influence on the matches.

    >>> one = {"x": [0, 40, 10, 70, 30], "y": [0, 10, 50, 60, 90], "angle": [10, 80, 200, 300, 120]}
    >>> other = {"x": [100 - y for y in one["y"]], "y": one["x"], "angle": [(a + 90) % 360 for a in one["angle"]]}
    >>> found = match({"print": ["p"] * 5, **one}, {"print": ["q"] * 5, **other}, threshold=0.3)
    >>> found.matches.select(["id_a", "id_b", "score", "minutiae", "rotation"]).to_pylist()
    [{'id_a': 'p', 'id_b': 'q', 'score': 0.333333, 'minutiae': 5, 'rotation': 90.0}]
    """
    settings = Settings(near, turned, votes, as_they_lie, functions, groups, side, border, seed)
    check_numbers(threshold, false)
    count = checks.threads(OWNER, threads)
    log = RunLog.of(progress)
    reading = {"id": id, "x": x, "y": y, "finger": finger, "angles": angles, "flip": flip, "dpi": dpi}
    with log.stage("read"):
        given = [_read(one, settings, angle, reading) for one in (prints, others) if one is not None]
        every = given[0] if others is None else given[0].and_(given[1])
        queries = _queries(given[0], only)
    begin = 0 if others is None else len(given[0])
    later = others is None and only is None
    with log.stage("index", len(every)):
        mirrors = _mirrored(every, len(every) - begin, settings)
        comparison = Comparison(every.and_(mirrors[1]), begin, len(every), settings)
    with log.stage("compare", len(queries)) as tick:
        found = _all(comparison, queries, later, count, tick)
    if only is not None and others is None:
        found = _once(found, queries)
    with log.stage("mirror", len(mirrors[0])) as tick:
        chance = _all(comparison, np.arange(len(every), len(every) + len(mirrors[0])), False, count, tick)
        chance = chance.take(mirrors[0][chance.left - len(every)] != chance.right)
    with log.stage("tables"):
        pairs = _pairs(len(queries), len(every) - begin, others is None, only is not None)
        own = int((mirrors[0] >= begin).sum())
        line = choose(chance.score, len(mirrors[0]) * (len(every) - begin) - own, pairs, float(false), threshold)
        matched = found.take(found.score >= line.value)
        answer = make_matches(matched, every.names)
        grouped = make_fingers(matched, every.names) if later else None
        scored = make_scored(found, every.names)
    log.counts |= {
        "prints": len(given[0]), "others": len(given[1]) if others is not None else 0, "queries": len(queries),
        "minutiae": len(every.x), "pairs": pairs, "compared": len(found), "matches": len(matched),
        "mirrored": line.mirrored,
    }  # fmt: skip
    if grouped is not None:
        sizes = np.bincount(np.unique(grouped["group"].to_pylist(), return_inverse=True)[1])
        log.counts |= {"groups": int((sizes > 1).sum()), "in_groups": int(sizes[sizes > 1].sum())}
    notes = _notes(given, every, found, line)
    if every.fingers is not None:
        notes["rates"] = rates(every, queries, begin, later or only is not None, found, line.value)
    stats = {
        "likewise": version("likewise"),
        "command": COMMAND,
        "finished": True,
        "parameters": {**settings.to_dict(), "threshold": threshold, "false": false, "only": only, "threads": count}
        | {"angle": angle, **reading},
        "threshold": asdict(line),
        "counts": log.counts,
        "seconds": {stage: round(seconds, 4) for stage, seconds in log.seconds.items()},
        "peak_memory_bytes": peak_memory(),
        **notes,
    }
    return Matches(answer, grouped, scored, stats)


def _read(source: Any, settings: Settings, angle: str | None, reading: dict[str, Any]) -> Prints:
    if not isinstance(source, Prints) and settings.as_they_lie and not _has(source, angle):
        angle = None
    prints = source if isinstance(source, Prints) else read(source, angle=angle, **reading)
    if prints.angle is None and not settings.as_they_lie:
        raise InputError("the directions of the minutiae are not known, so prints can only be compared as_they_lie")
    return prints


def _has(source: Any, column: str | None) -> bool:
    return all(column in table.column_names for table, _ in tables_of(source))


def _queries(prints: Prints, only: Sequence[str] | None) -> Ints:
    if only is None:
        return np.arange(len(prints))
    if isinstance(only, str) or not only:
        raise ParameterError.of(OWNER, "only", "a list of names of prints", only)
    numbers = {name: number for number, name in enumerate(prints.names)}
    for name in only:
        if name not in numbers:
            some = ", ".join(prints.names[:SHOWN]) + (", …" if len(prints) > SHOWN else "")
            raise InputError(f"there is no print '{name}'; there are {len(prints):,}: {some}")
    return np.array(sorted({numbers[name] for name in only}), np.int64)


def _mirrored(every: Prints, database: int, settings: Settings) -> tuple[Ints, Prints]:
    """Return some prints, spread over all, as a mirror shows them; and which they are."""
    count = min(len(every), max(MIRRORS, -(-COMPARISONS // max(1, database))))
    chosen = np.unique(np.linspace(0, len(every) - 1, count).round().astype(np.int64))
    middle = float(every.x.min() + every.x.max()) / 2 if settings.as_they_lie and len(every.x) else 0.0
    return chosen, every.take(chosen).mirrored(middle)


def _all(comparison: Comparison, queries: Ints, later: bool, threads: int, tick: Any) -> Compared:
    empty = np.zeros(0, np.int64)
    parts = [Compared(empty, empty, empty, empty, empty, empty, np.zeros(0), np.zeros((0, 2)))]
    for done, part in comparison.compare(queries, later, threads):
        parts.append(part)
        tick(done)
    return Compared.joined(parts)


def _once(found: Compared, queries: Ints) -> Compared:
    """Leave out the second of two pairs that are the same, where both prints were looked for."""
    return found.take(~(np.isin(found.right, queries) & (found.right < found.left)))


def _pairs(queries: int, database: int, within: bool, some: bool) -> int:
    """Return how many pairs of different prints there are to decide on."""
    if not within:
        return queries * database
    return queries * (database - queries) + queries * (queries - 1) // 2 if some else database * (database - 1) // 2


def _copies(every: Prints) -> list[list[str]]:
    """Return the prints that have the very same minutiae as one before, and that one."""
    first: dict[bytes, str] = {}
    copies = []
    columns = [every.x, every.y] if every.angle is None else [every.x, every.y, every.angle]
    table = np.column_stack(columns)
    for number, name in enumerate(every.names):
        some = table[every.offsets[number] : every.offsets[number + 1]]
        if len(some):
            known = first.setdefault(some[np.lexsort(some.T)].tobytes(), name)
            if known is not name:
                copies.append([known, name])
    return copies


def _notes(given: list[Prints], every: Prints, found: Compared, line: Threshold) -> dict[str, Any]:
    notes: dict[str, Any] = {}
    empty = [name for one in given for name in one.notes.get("empty", [])]
    if empty:
        notes["empty"] = {"prints": len(empty), "first": empty[:SHOWN]}
    repeated = sum(one.notes.get("repeated", 0) for one in given)
    if repeated:
        notes["repeated_minutiae"] = repeated
    copies = _copies(every)
    if copies:
        notes["identical"] = {"prints": len(copies), "first": copies[:SHOWN]}
    below = np.flatnonzero(found.score < line.value)
    below = below[np.argsort(-found.score[below], kind="stable")[:SHOWN]]
    rows = zip(found.left[below].tolist(), found.right[below].tolist(), found.score[below].tolist(), strict=True)
    notes["below"] = [{"id_a": every.names[a], "id_b": every.names[b], "score": round(s, 4)} for a, b, s in rows]
    return notes


def rates(
    every: Prints, queries: Ints, begin: int, within: bool, found: Compared, threshold: float
) -> dict[str, Any] | None:
    """Return how good the scores and the matches are, where the fingers are known; None if that cannot be said."""
    codes = np.unique(np.array(every.fingers), return_inverse=True)[1]
    n = len(every)
    wanted = np.zeros(n, bool)
    wanted[queries] = True
    left, right = (side.ravel() for side in np.meshgrid(queries, np.arange(begin, n), indexing="ij"))
    keep = (left != right) & ~(wanted[right] & (right < left)) if within else left != right
    left, right = left[keep], right[keep]
    score = np.zeros(len(left))
    keys = left * n + right
    order = np.argsort(keys)
    at = order[np.searchsorted(keys, found.left * n + found.right, sorter=order)]
    score[at] = found.score
    candidate = np.zeros(len(left), bool)
    candidate[at] = True
    same = codes[left] == codes[right]
    if not same.any() or same.all():
        return None
    drawn = curve(score[same], score[~same])
    passed = score >= threshold
    missed = np.unique(codes[left[same & ~passed]])
    shared = np.unique(codes[left[same]])
    return {
        "true_match": Rate(int(passed[same].sum()), int(same.sum())).to_dict(),
        "false_match": Rate(int(passed[~same].sum()), int((~same).sum())).to_dict(),
        "fingers_complete": Rate(len(shared) - len(missed), len(shared)).to_dict(),
        "equal_error": drawn.equal_error,
        "candidates_true": Rate(int(candidate[same].sum()), int(same.sum())).to_dict(),
        "candidates_false": Rate(int(candidate[~same].sum()), int((~same).sum())).to_dict(),
        "fingers": len(shared),
    }
