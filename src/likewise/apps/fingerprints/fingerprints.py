"""`fingerprints`: which prints are of one finger; one against many, or all against all (MMDS §3.8.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.clusters import best_of_each, cluster_columns
from likewise.apps.fingerprints.comparison import ComparedPrints, Comparison, FingerprintSettings
from likewise.apps.fingerprints.prints import ANGLE, DPI, OWNER, Floats, Prints, read_prints, tables_of
from likewise.apps.fingerprints.rates import Threshold, choose, match_rates
from likewise.base import checks
from likewise.base.arrays import Ints, strings, to_arrow
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.base.words import counted
from likewise.errors import InputError, ParameterError
from likewise.io.read.find import notes_on
from likewise.jobs.result import Result
from likewise.jobs.settings import Resources

FALSE_MATCHES = 1.0
MIRRORS = 100
"""Least number of mirrored prints that are compared, if there are as many prints."""
COMPARISONS = 100_000
"""Least number of comparisons with mirrored prints, if there are as many; more of them give a surer threshold."""
SHOWN = 5
"""Examples in notes and in run.json."""


@dataclass(repr=False, eq=False)
class Fingerprints(Result):
    """The result of `fingerprints`: tables `.matches`, `.fingers`, `.scored`, `.stats`, and `.save(dir)`.

    matches: pairs of prints of one finger, best first: id_a, id_b, score; minutiae, the number that agree; overlap_a,
    overlap_b, the minutiae of each print in the overlap; rotation (degrees, from the x axis towards the y axis),
    shift_x, shift_y (pixels at 500 dpi), which move print a onto print b; triples, the number that led to the pair.
    fingers: id, cluster (its first print), size, keeper (the print with the most minutiae); None unless all prints were
    compared with each other.
    scored: id_a, id_b, score of all pairs that were compared; all others share too little. It is not saved.
    """

    files: ClassVar[dict[str, str]] = {"matches.parquet": "matches", "fingers.parquet": "fingers"}

    matches: pa.Table
    fingers: pa.Table | None
    scored: pa.Table
    stats: dict[str, Any]

    def _summary(self) -> str:
        counts = self.stats["counts"]
        others = f" and {counted(counts['others'], 'other')}" if counts["others"] else ""
        clusters = f", {counted(counts['clusters'], 'cluster')}" if "clusters" in counts else ""
        matches = counted(counts["matches"], "match", "matches")
        return f"{counted(counts['prints'], 'print')}{others}, {matches}{clusters}"


def fingerprints(
    source: Any,
    other: Any = None,
    *,
    only: Sequence[str] | None = None,
    threshold: float | None = None,
    false_matches: float = FALSE_MATCHES,
    near: float = 15.0,
    turned: float = 20.0,
    votes: float = 0.1,
    aligned: bool = False,
    functions: int = 1024,
    groups: int = 2,
    side: float = 20.0,
    border: float = 5.0,
    seed: int = 1,
    id: str | None = None,
    x: str = "x",
    y: str = "y",
    angle: str = ANGLE,
    finger: str | None = None,
    angles: str = "auto",
    flip: bool = False,
    dpi: float = DPI,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress | None = None,
) -> Fingerprints:
    """Find prints of one finger by their minutiae, whatever their position and rotation.

    source: a table of minutiae, in files or in memory, or `Prints`. With `other`, prints of `source` are compared with
        those of `other`, else with each other. only: look up these prints of `source` alone. id, x, y, angle, finger,
        angles, flip, dpi: see `likewise.apps.fingerprints.read_prints`.

    Candidates are pairs of prints with triples of minutiae that agree on a rotation and a shift. Each is verified: one
    print is laid on the other, and minutiae agree that are within `near` pixels and `turned` degrees. The score is the
    part of the minutiae in the overlap that agree, lowered if they are few; a match has at least `threshold`. By
    default the threshold is chosen such that `false_matches` pairs of different fingers are expected among all, at most
    one in a thousand of them, judged by mirror images of prints, which match nothing but by chance.

    votes: prints of m and n minutiae are compared if votes·√(m·n) triples agree; a lower number finds more and is
        slower.
    aligned: the prints are aligned, and candidates are found by random triples of grid squares (MMDS §3.8.5): an AND of
        `groups` ORs of `functions` triples, on squares of `side` pixels; a minutia within `border` pixels of an edge
        counts in the next square as well. Directions are not needed.
    finger: the column of the known finger. The true and false match rates are measured with it, in
        stats["details"]["rates"]; it does not change the matches.
    threads, memory: neither the number of threads nor the memory to use, such as "2GiB", changes the result.

    >>> one = {"x": [0, 40, 10, 70, 30], "y": [0, 10, 50, 60, 90], "angle": [10, 80, 200, 300, 120]}
    >>> two = {"x": [100 - y for y in one["y"]], "y": one["x"], "angle": [(a + 90) % 360 for a in one["angle"]]}
    >>> found = fingerprints({"print": ["p"] * 5, **one}, {"print": ["q"] * 5, **two}, threshold=0.3)
    >>> found.matches.select(["id_a", "id_b", "score", "minutiae", "rotation"]).to_pylist()
    [{'id_a': 'p', 'id_b': 'q', 'score': 0.333333, 'minutiae': 5, 'rotation': 90.0}]
    """
    settings = FingerprintSettings(near, turned, votes, aligned, functions, groups, side, border, seed)
    if threshold is not None:
        checks.threshold(OWNER, threshold)
        checks.unused(OWNER, {"false_matches": (false_matches, FALSE_MATCHES)}, "with a threshold")
    rule = "a positive number of pairs"
    false_matches = checks.number(OWNER, "false_matches", false_matches, 0, open_left=True, rule=rule)
    resources = Resources.of(OWNER, threads, memory)
    count = resources.threads
    columns = {"id": id, "x": x, "y": y, "angle": angle, "finger": finger, "angles": angles, "flip": flip, "dpi": dpi}
    sources = [source] if other is None else [source, other]
    if all(isinstance(prints, Prints) for prints in sources):
        defaults = read_prints.__kwdefaults__ or {}
        checks.unused(OWNER, {name: (value, defaults[name]) for name, value in columns.items()}, "for Prints")
    log = RunLog.of(progress)
    with log.stage("read"):
        given = [_read(prints, settings, columns) for prints in sources]
        log.notes += notes_on(*sources)
        every = given[0] if other is None else given[0].and_(given[1])
        queries = _queries(given[0], only)
    begin = 0 if other is None else len(given[0])
    later = other is None and only is None
    with log.stage("index", len(every)):
        mirrors = _mirrored(every, len(every) - begin, settings)
        room = resources.budget.pairs // (count + 1)
        comparison = Comparison(every.and_(mirrors[1]), begin, len(every), settings, room)
    with log.stage("compare", len(queries)) as tick:
        compared = comparison.compare(queries, later, count, tick)
    if only is not None and other is None:  # pairs whose prints were both looked up count once
        compared = compared.take(~(np.isin(compared.right, queries) & (compared.right < compared.left)))
    with log.stage("mirror", len(mirrors[0])) as tick:
        images = np.arange(len(every), len(every) + len(mirrors[0]))
        chance = comparison.compare(images, False, count, tick)
        chance = chance.take(mirrors[0][chance.left - len(every)] != chance.right)
    with log.stage("tables"):
        pairs = _pairs(len(queries), len(every) - begin, other is None, only is not None)
        own = int((mirrors[0] >= begin).sum())
        line = choose(chance.score, len(mirrors[0]) * (len(every) - begin) - own, pairs, false_matches, threshold)
        matched = compared.take(compared.score >= line.value)
        ids = strings(every.names)
        matches = _match_table(matched, ids)
        fingers = _finger_table(matched, ids, every.sizes) if later else None
        scored = pa.table(_scores(compared, ids, compared.score))
    log.counts |= {
        "prints": len(given[0]), "others": len(given[1]) if other is not None else 0, "queries": len(queries),
        "minutiae": len(every.x), "possible_pairs": pairs, "compared": len(compared), "matches": len(matched),
        "mirrored": line.mirrored,
    }  # fmt: skip
    if fingers is not None:
        sizes = np.bincount(np.unique(fingers["cluster"].to_pylist(), return_inverse=True)[1])
        log.counts |= {"clusters": int((sizes > 1).sum()), "clustered": int(sizes[sizes > 1].sum())}
    _note_prints(given, every, log)
    log.details["threshold"] = asdict(line)
    log.details["below"] = _below(every, compared, line)
    if every.fingers is not None:
        log.details["rates"] = match_rates(every, queries, begin, other is None, compared, line.value)
        if log.details["rates"] is None:
            log.notes.append("no rates: no two prints are of one finger, or no two are of different ones")
    parameters = {
        **asdict(settings), "threshold": threshold, "false_matches": false_matches,
        "only": None if only is None else list(only), **columns, **resources.used,
    }  # fmt: skip
    return Fingerprints(matches, fingers, scored, run_json(OWNER, parameters, given, log))


def _read(source: Any, settings: FingerprintSettings, columns: dict[str, Any]) -> Prints:
    if isinstance(source, Prints):
        prints = source
    else:
        if settings.aligned and columns["angle"] == ANGLE:
            there = all(ANGLE in table.column_names for table, _ in tables_of(source))
            columns = {**columns, "angle": ANGLE if there else None}
        prints = read_prints(source, **columns)
    if prints.angle is None and not settings.aligned:
        raise InputError(
            "the directions of the minutiae are unknown; without them prints must be aligned, aligned=True"
        )
    return prints


def _queries(prints: Prints, only: Sequence[str] | None) -> Ints:
    if only is None:
        return np.arange(len(prints))
    if isinstance(only, str) or not only:
        raise ParameterError.of(OWNER, "only", "a list of ids of prints", only)
    numbers = {name: number for number, name in enumerate(prints.names)}
    for name in only:
        if name not in numbers:
            some = ", ".join(prints.names[:SHOWN]) + (", …" if len(prints) > SHOWN else "")
            raise InputError(f"there is no print '{name}'; there are {len(prints):,}: {some}")
    return np.array(sorted({numbers[name] for name in only}), np.int64)


def _mirrored(every: Prints, database: int, settings: FingerprintSettings) -> tuple[Ints, Prints]:
    """Return the numbers of some prints, spread over all, and their mirror images."""
    count = min(len(every), max(MIRRORS, -(-COMPARISONS // max(1, database))))
    chosen = np.unique(np.linspace(0, len(every) - 1, count).round().astype(np.int64))
    middle = float(every.x.min() + every.x.max()) / 2 if settings.aligned and len(every.x) else 0.0
    return chosen, every.take(chosen).mirrored(middle)


def _pairs(queries: int, database: int, within: bool, some: bool) -> int:
    """Return the number of possible pairs of different prints."""
    if not within:
        return queries * database
    return queries * (database - queries) + queries * (queries - 1) // 2 if some else database * (database - 1) // 2


def _copies(every: Prints) -> list[list[str]]:
    """Return pairs of a print and an earlier one with exactly the same minutiae."""
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


def _note_prints(given: list[Prints], every: Prints, log: RunLog) -> None:
    """Note prints without minutiae, repeated minutiae, and prints with the same minutiae."""
    empty = [name for one in given for name in one.empty]
    if empty:
        log.details["empty"] = {"prints": len(empty), "first": empty[:SHOWN]}
        log.notes.append(f"prints without minutiae, which match nothing: {_examples(empty)}")
    repeated = sum(one.repeated for one in given)
    if repeated:
        log.details["repeated_minutiae"] = repeated
        log.notes.append(f"minutiae given more than once, counted once: {repeated:,} rows left out")
    copies = _copies(every)
    if copies:
        log.details["identical"] = {"prints": len(copies), "first": copies[:SHOWN]}
        log.notes.append(f"prints with exactly the minutiae of another: {_examples([' = '.join(c) for c in copies])}")


def _examples(names: list[str]) -> str:
    return f"{len(names):,} ({', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''})"


def _below(every: Prints, compared: ComparedPrints, line: Threshold) -> list[dict[str, Any]]:
    """Return the best pairs below the threshold."""
    below = np.flatnonzero(compared.score < line.value)
    best = compared.take(below[np.argsort(-compared.score[below], kind="stable")[:SHOWN]])
    rows = zip(best.left.tolist(), best.right.tolist(), best.score.tolist(), strict=True)
    return [{"id_a": every.names[a], "id_b": every.names[b], "score": round(s, 4)} for a, b, s in rows]


def _scores(compared: ComparedPrints, ids: pa.Array, score: Floats) -> dict[str, pa.Array]:
    columns = {"id_a": ids.take(to_arrow(compared.left)), "id_b": ids.take(to_arrow(compared.right))}
    return {**columns, "score": to_arrow(score)}


def _match_table(compared: ComparedPrints, ids: pa.Array) -> pa.Table:
    """Return the table of matches, best first."""
    compared = compared.take(np.lexsort((compared.right, compared.left, -compared.score)))
    columns = _scores(compared, ids, np.round(compared.score, 6))
    counts = {"minutiae": compared.agreed, "overlap_a": compared.own, "overlap_b": compared.other}
    columns |= {name: to_arrow(values) for name, values in counts.items()}
    columns["rotation"] = to_arrow(np.round(np.degrees(compared.rotation), 3))
    columns |= {f"shift_{axis}": to_arrow(np.round(compared.shift[:, i], 3)) for i, axis in enumerate("xy")}
    return pa.table({**columns, "triples": to_arrow(compared.triples)})


def _finger_table(compared: ComparedPrints, ids: pa.Array, minutiae: Ints) -> pa.Table:
    """Return the cluster of every print; its keeper is the print with the most minutiae, the first if several."""
    first = groups(len(ids), compared.left, compared.right, compared.score)
    order = np.argsort(first, kind="stable")
    keeper = best_of_each(np.argsort(-minutiae, kind="stable"), first)
    return pa.table(cluster_columns(lambda rows: ids.take(to_arrow(rows)), order, first, keeper))


def groups(n: int, left: Ints, right: Ints, score: Floats) -> Ints:
    """Return for each of n prints the first print of its cluster; one false match does not join two.

    Best matches first, two clusters are merged if at least half of the pairs between them match, until none are.

    >>> left, right = np.array([0, 1, 0, 3, 4, 3, 2]), np.array([1, 2, 2, 4, 5, 5, 3])
    >>> groups(6, left, right, np.ones(7)).tolist()
    [0, 0, 0, 3, 3, 3]
    """
    group = list(range(n))
    members = [[i] for i in range(n)]
    between: list[dict[int, int]] = [{} for _ in range(n)]
    order = np.lexsort((right, left, -score))
    waiting = list(zip(left[order].tolist(), right[order].tolist(), strict=True))
    for a, b in waiting:
        between[a][b] = between[b][a] = 1
    joined = True
    while joined:
        joined, later = False, []
        for a, b in waiting:
            a, b = group[a], group[b]
            if a == b:
                continue
            if 2 * between[a][b] < len(members[a]) * len(members[b]):
                later.append((a, b))
                continue
            if len(members[a]) < len(members[b]):
                a, b = b, a
            for member in members[b]:
                group[member] = a
            members[a] += members[b]
            for other, count in between[b].items():
                if other != a:
                    between[a][other] = between[other][a] = between[a].get(other, 0) + count
                del between[other][b]
            between[b] = {}
            members[b] = []
            joined = True
        waiting = later
    return np.array([min(members[g]) if members[g] else g for g in group], np.int64)
