"""Groups of items: customers who bought different items of the same groups are similar, too (MMDS §3.1.3).

Two readers of science fiction may have few books in common. If books that the same customers read form a group, both
have bought within the same groups. Groups are found by the similarity of items, or given, such as genres.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.recommend.ratings import OWNER, IntegerSets, Ratings, View
from likewise.apps.recommend.similarity_join import JoinSettings, similar_pairs
from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.runlog import RunLog
from likewise.errors import InputError, ParameterError
from likewise.kernels import graph

RULE = "the least similarity of the items of a group, in (0, 1], or a mapping from items to groups"


def check_groups(groups: Any) -> Any:
    """Return a threshold, a mapping, or None."""
    if groups is None or isinstance(groups, Mapping):
        return groups
    return checks.number(OWNER, "groups", groups, 0, 1, open_left=True, rule=RULE)


@dataclass(frozen=True)
class ItemGroups:
    """The group of every item, as the number of the item that stands for it, and the names of groups that are given."""

    of: Ints
    names: list[str] | None = None

    @classmethod
    def found(cls, ratings: Ratings, view: View, threshold: float, join: JoinSettings, log: RunLog) -> ItemGroups:
        """Put similar items in one group: each is itself similar to the one that stands for the group.

        Items are taken in the order of the number of their customers, the first of them in case of a tie; each that
        is not in a group yet makes one of itself and of the items similar to it that are in none.
        """
        if join.summed:
            checks.number(
                OWNER, "groups", threshold, 0, 0.5, open_left=True, rule=f"{RULE}; with union='sum', at most 0.5"
            )
        sets = view.sets_of(ratings, "items")
        settings = replace(join, threshold=threshold, k=None)
        pairs, _ = similar_pairs(sets, settings, log, "groups")
        left, right = (np.ascontiguousarray(side, np.int64) for side in (pairs.left, pairs.right))
        order = np.lexsort((np.arange(len(sets.sizes)), -sets.sizes))
        by = graph.keepers(order, left, right)
        of, gone = np.arange(len(sets.sizes)), np.flatnonzero(by >= 0)
        of[gone] = left[by[gone]] + right[by[gone]] - gone
        return cls(of)

    @classmethod
    def given(cls, ratings: Ratings, groups: Mapping[Any, Any]) -> ItemGroups:
        """Put items in the groups that a mapping names; an item that is not in it is a group of its own."""
        items = [str(name) for name in ratings.item_ids.to_pylist()]
        named = {str(item).strip(): group for item, group in groups.items()}
        known = [_group(named.get(item)) for item in items]
        if not any(group is not None for group in known):
            raise InputError(f"'groups' names none of the {len(items):,} items, such as {', '.join(items[:3])}")
        first: dict[str, int] = {}
        of = np.arange(len(items))
        for number, group in enumerate(known):
            if group is not None:
                of[number] = first.setdefault(group, number)
        return cls(of, [item if group is None else group for item, group in zip(items, known, strict=True)])

    def __len__(self) -> int:
        return len(np.unique(self.of))

    def customers(self, ratings: Ratings, view: View) -> IntegerSets:
        """Return the set, or bag, of groups of every customer."""
        return view.sets_of(ratings, "customers", self.of)

    def table(self, ratings: Ratings) -> Any:
        """Return the items of groups of two or more: id, cluster, size, keeper.

        The keeper is the item to which the others are similar; of given groups, the one with the most customers.
        """
        keeper = self.of if self.names is None else self._most_bought(ratings)
        sizes = np.bincount(self.of, minlength=len(self.of))[self.of]
        rows = np.flatnonzero(sizes > 1)
        rows = rows[np.lexsort((rows, self.of[rows]))]
        take = ratings.item_ids.take
        named = take(to_arrow(self.of[rows]))
        if self.names is not None:
            named = pa.array([self.names[row] for row in rows.tolist()], pa.string())
        return pa.table(
            {
                "id": take(to_arrow(rows)),
                "cluster": named,
                "size": to_arrow(sizes[rows].astype(np.int64)),
                "keeper": take(to_arrow(keeper[rows])),
            }
        )

    def _most_bought(self, ratings: Ratings) -> Ints:
        """Return for every item the one of its group with the most customers, the first in case of a tie."""
        buyers = np.bincount(ratings.items, minlength=len(self.of))
        order = np.lexsort((np.arange(len(self.of)), -buyers, self.of))
        first = np.append(True, self.of[order][1:] != self.of[order][:-1])
        keeper = np.empty(len(self.of), np.int64)
        keeper[self.of[order[first]]] = order[first]
        return keeper[self.of]


def gathered(ratings: Ratings, view: View, groups: Any, join: JoinSettings, log: RunLog) -> ItemGroups | None:
    """Return the groups of items that are asked for, and count them."""
    if groups is None:
        return None
    if not isinstance(groups, Mapping):
        made = ItemGroups.found(ratings, view, groups, join, log)
    elif not groups:
        raise ParameterError.of(OWNER, "groups", RULE, groups)
    else:
        made = ItemGroups.given(ratings, groups)
    log.counts["item_groups"] = len(made)
    log.details["sets"] += f"; customers by {len(made):,} groups of {len(made.of):,} items"
    return made


def _group(group: Any) -> str | None:
    """Return the name of a group; None and NaN, as tables have them for missing values, are none."""
    if group is None or group != group:
        return None
    if not isinstance(group, str | int | float | np.generic):
        raise ParameterError.of(OWNER, "groups", "a mapping from each item to the name of one group", group)
    return str(group)
