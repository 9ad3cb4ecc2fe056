"""`tastes`: similar customers and similar items from purchases or ratings (A8; Section 3.1.3)."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import numpy as np

from likewise.apps.recommend.answer import COMMAND, Tastes, pair_rows
from likewise.apps.recommend.collecting import SIDES, Ratings, View, read
from likewise.apps.recommend.counting import Found
from likewise.apps.recommend.joining import Aim, similar
from likewise.apps.recommend.recommending import Recommender, Way, customer_numbers
from likewise.base import checks
from likewise.base.memory import peak_memory
from likewise.base.runlog import Progress, RunLog
from likewise.errors import ParameterError

THRESHOLD = 0.2
BLOCK = 1 << 20


def tastes(
    source: Any,
    *,
    view: str = "auto",
    like: float | None = None,
    hate: float | None = None,
    union: str = "max",
    threshold: float = THRESHOLD,
    top: int | None = None,
    only: str | None = None,
    users: Any = None,
    everyone: bool = False,
    count: int = 10,
    by: str = "customers",
    neighbours: int = 50,
    method: str = "auto",
    recall: float = 0.99,
    seed: int = 1,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> Tastes:
    """Find customers with similar tastes, and items that the same customers have; recommend, if asked to (A8).

    source: `Ratings`, or what `read` takes, with its other parameters (user, item, rating, baskets, twice …).
    view: what of a rating goes into the sets. "bought": the pair, whatever the rating; "liked": only pairs rated `like`
        or better; "liked-hated": two elements for each item, liked (`like` or better) and hated (`hate` or worse);
        "stars": an item with n stars n times, as a bag. "auto": bought without ratings, liked with them. `like` and
        `hate` are by default the upper and the lower quarter of the scale: 4 and 2 of 1 to 5 stars.
    union: of two bags, "max" of the counts (equal bags have similarity 1) or the "sum", as the chapter has it (1/2).
    threshold: the least similarity of a pair. top: only the so many most similar ones of each, best first; a
        pair then stands there from both sides. only: "customers" or "items", one side alone.
    users, everyone: recommend for these customers, or for all of them; count, by, neighbours: see `recommend`.
    method: "count" what sets share through the lists of the sets with an element, "exact" join or "lsh" with `recall`
        as in `likewise.pairs`; "auto" takes what is predicted to be cheapest. All but lsh find every pair.

    >>> found = tastes({"ann": ["tea", "milk"], "bob": ["milk", "tea", "rum"], "eve": ["rum"]}, threshold=0.5)
    >>> found.customers.to_pylist()
    [{'id_a': 'ann', 'id_b': 'bob', 'similarity': 0.6666666666666666, 'shared': 2}]
    >>> found.items.to_pydict()["id_b"]
    ['milk']
    """
    aim = Aim(threshold, union, top, method, recall, seed, checks.threads("tastes", threads), memory)
    way = Way(count, by, neighbours, union)
    if only is not None and only not in SIDES:
        raise ParameterError.of("tastes", "only", "'customers' or 'items'", only)
    if everyone and users is not None:
        raise ParameterError("The 'users' and 'everyone' parameters of tastes exclude each other.")
    log = RunLog.of(progress)
    with log.stage("read"):
        ratings = source if isinstance(source, Ratings) else read(source, **reading)
    chosen = View.of(ratings, view, like, hate)
    asked = _asked(ratings, users, everyone)
    counts = {"customers": len(ratings.user_ids), "items": len(ratings.item_ids), "pairs": len(ratings.users)}
    log.counts.update({"rows": ratings.rows, **counts, "repeated": ratings.rows - len(ratings.users)})
    rows, notes = {}, {}
    for side, ids in (("customers", ratings.user_ids), ("items", ratings.item_ids)):
        if only in (None, side):
            found, notes[side] = similar(chosen.side(ratings, side), aim, log, side)
            log.counts[f"similar_{side}"] = len(found)
            notes[side]["closest"] = _closest(found, ids)
            rows[side] = pair_rows(found, ids)
    recommendations = None
    if asked is not None:
        recommendations = Recommender(ratings, chosen, way, aim.threads).recommend(asked, log)
        log.counts["recommendations"] = len(recommendations)
    parameters = {
        **chosen.to_dict(), "threshold": aim.threshold, "union": union, "top": top, "only": only, "method": method,
        "recall": recall, "seed": seed, "threads": aim.threads, **reading,
    }  # fmt: skip
    if asked is not None:
        parameters |= {"count": count, "by": by, "neighbours": neighbours}
    stats = {
        "likewise": version("likewise"),
        "command": COMMAND,
        "finished": True,
        "parameters": parameters,
        "columns": ratings.told,
        "sets": chosen.describe(ratings),
        "scale": None if ratings.values is None else list(ratings.scale),
        "counts": {**log.counts, "set_aside": len(ratings.aside)},
        "set_aside": [vars(entry) for entry in ratings.aside[:100]],
        "methods": notes,
        "seconds": {stage: round(seconds, 4) for stage, seconds in log.seconds.items()},
        "peak_memory_bytes": peak_memory(),
    }
    return Tastes(rows, recommendations, stats)


def _asked(ratings: Ratings, users: Any, everyone: bool) -> Any | None:
    """Return the customers to recommend for."""
    if everyone:
        return np.arange(len(ratings.user_ids))
    if users is None:
        return None
    return customer_numbers(ratings, [users] if isinstance(users, str) or not isinstance(users, Iterable) else users)


def _closest(found: Found, ids: Any) -> dict[str, Any] | None:
    """Return the most similar pair, and of several the one that shares most."""
    best, most = -1, (0.0, 0)
    for start in range(0, len(found), BLOCK):
        similarity = found.part(slice(start, start + BLOCK))
        shared = np.where(similarity < similarity.max(), 0, found.shared[start : start + BLOCK])
        place = int(np.argmax(shared))
        if (float(similarity[place]), int(shared[place])) > most:
            best, most = start + place, (float(similarity[place]), int(shared[place]))
    if best < 0:
        return None
    pair = ids[int(found.left[best])].as_py(), ids[int(found.right[best])].as_py()
    return {"id_a": pair[0], "id_b": pair[1], "similarity": most[0], "shared": most[1]}
