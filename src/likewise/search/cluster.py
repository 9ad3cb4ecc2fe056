"""Verified pairs to clusters and keepers: every removed item forms a verified pair with the item kept in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.copies import Groups
from likewise.base.runlog import RunLog
from likewise.errors import ColumnError, ParameterError
from likewise.kernels import graph
from likewise.search.scored import Scores, packed

RULES = ("first", "last", "longest", "shortest")
"""Rules without a column."""
NONE = "none"
"""The policy that keeps no document that has a similar one."""
NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


NEXT_RULE = re.compile(rf",(?=({'|'.join(RULES)})(,|$)|(max|min):)")
"""A comma between two rules; any other one is part of the name of a column."""


@dataclass(frozen=True)
class Keep:
    """Which document is kept: first, last, longest, shortest, max:COLUMN, min:COLUMN; ties go to the first. Or none.

    then: the rule that decides between documents which this one does not tell apart.

    >>> Keep.parse("max:score")
    Keep(rule='max', column='score', then=None)
    >>> [str(rule) for rule in Keep.parse("max:date,min:a,b,longest").rules]
    ['max:date', 'min:a,b', 'longest']
    """

    rule: str = "first"
    column: str | None = None
    then: Keep | None = None

    def __post_init__(self) -> None:
        checks.choice("Keep", "rule", self.rule, (*RULES, "max", "min", NONE))
        named = isinstance(self.column, str) and self.column != ""
        if not (named if self.rule in ("max", "min") else self.column is None):
            rule = "the name of a column with 'max' and 'min', and None with other rules"
            raise ParameterError.of("Keep", "column", rule, self.column)
        if self.column is not None and NEXT_RULE.search(self.column):
            raise ParameterError.of("Keep", "column", "a name without a comma before a rule", self.column)
        if self.then is not None and (self.rule in ("first", "last", NONE) or self.then.rule == NONE):
            told = self.rule if self.then.rule != NONE else NONE
            raise ParameterError.of("Keep", "then", f"None: '{told}' leaves nothing for another rule to decide", self)

    @classmethod
    def parse(cls, policy: str | Keep, owner: str = "dedup") -> Keep:
        """Read a policy as the user writes it; `owner` is the function the user called."""
        if isinstance(policy, Keep):
            return policy
        found, begin = None, [0, *(comma.end() for comma in NEXT_RULE.finditer(str(policy)))]
        for start, stop in zip(reversed(begin), [None, *(place - 1 for place in reversed(begin[1:]))], strict=True):
            rule, colon, column = str(policy)[start:stop].partition(":")
            if not (column if rule in ("max", "min") else rule in (*RULES, NONE) and not colon):
                allowed = f"one of {', '.join(RULES)}, max:COLUMN, min:COLUMN, none, or several rules and commas"
                raise ParameterError.of(owner, "keep", allowed, policy)
            if found is not None and rule in ("first", "last"):
                last = f"without a rule after '{rule}', which leaves nothing to decide"
                raise ParameterError.of(owner, "keep", last, policy)
            found = cls(rule, column or None, found)
        assert found is not None
        return found

    def __str__(self) -> str:
        rule = f"{self.rule}:{self.column}" if self.column else self.rule
        return rule if self.then is None else f"{rule},{self.then}"

    @property
    def rules(self) -> tuple[Keep, ...]:
        """The rules, one by one."""
        return (replace(self, then=None), *(self.then.rules if self.then else ()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rules compare, in their order."""
        return tuple(rule.column for rule in self.rules if rule.column is not None)

    @property
    def lowest(self) -> tuple[bool, ...]:
        """For each of these columns, whether the lowest value is preferred."""
        return tuple(rule.rule == "min" for rule in self.rules if rule.column is not None)

    @property
    def by_length(self) -> bool:
        """Whether a rule compares lengths."""
        return any(rule.rule in ("longest", "shortest") for rule in self.rules)

    def ranks(self, lengths: Ints, scores: Sequence[Any] = ()) -> Ints:
        """Return the place of every row in the order of preference, 0 for the most preferred.

        scores: the columns of the policy; not needed without rows.
        """
        order = rows = np.arange(len(lengths))
        values = iter(scores if len(rows) else [pa.nulls(0)] * len(self.columns))
        for rule, column in reversed([(rule, next(values) if rule.column else None) for rule in self.rules]):
            if rule.rule == "last":
                order = rows[::-1]
            elif rule.rule in ("longest", "shortest"):
                order = order[np.argsort(-lengths[order] if rule.rule == "longest" else lengths[order], kind="stable")]
            elif column is not None:
                order = order[rule._by_score(column if order is rows else column.take(to_arrow(order)))]
        ranks = np.empty(len(rows), np.int64)
        ranks[order] = rows
        return ranks

    def _by_score(self, scores: Any) -> Ints:
        """Sort rows by score, stably; rows without one, or with NaN, come last. Numbers may be text."""
        if pa.types.is_dictionary(scores.type):
            scores = scores.cast(scores.type.value_type)
        kind = scores.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            scores = scores.cast(pa.large_string())
            try:
                scores = scores.cast(pa.float64())
            except pa.ArrowInvalid as error:
                if pc.any(pc.match_substring_regex(scores, NUMBER)).as_py():
                    raise ColumnError(
                        f"column '{self.column}' of the keep policy '{self}' mixes numbers and text: {error}"
                    ) from error
        elif pa.types.is_float16(kind):
            scores = scores.cast(pa.float32())
        elif not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_temporal(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_null(kind)
        ):
            raise ColumnError(f"column '{self.column}' of the keep policy '{self}' cannot be sorted: it is {kind}")
        if pa.types.is_null(kind):
            return np.arange(len(scores))
        if pa.types.is_floating(scores.type):
            scores = pc.if_else(pc.is_nan(scores), pa.scalar(None, scores.type), scores)
        direction = "descending" if self.rule == "max" else "ascending"
        return np.asarray(pc.array_sort_indices(scores, order=direction, null_placement="at_end"), np.int64)


@dataclass(frozen=True)
class Removal:
    """Rows to remove, the row kept in place of each, their similarity, and whether the two are identical.

    With the policy none no row is kept in place of another: keepers are rows that these are similar to.
    """

    rows: Ints
    keepers: Ints
    similarity: Scores
    identical: NDArray[np.bool_]

    def since(self, first: int) -> Removal:
        """Return the removals of rows from this one on."""
        new = self.rows >= first
        return Removal(self.rows[new], self.keepers[new], self.similarity[new], self.identical[new])


def removals(
    groups: Groups,
    left: Ints,
    right: Ints,
    similarity: Scores,
    ranks: Ints,
    copies: Ints,
    empty: NDArray[np.bool_] | None = None,
    none: bool = False,
    directed: bool = False,
) -> Removal:
    """Choose keepers in the order of `ranks`; pairs are between groups. none: keep no row that has a similar one.

    Rows of equal `copies` are identical, and so are all rows of a group that is `empty`. directed: the left group of a
    pair is contained in the right one, and only the left one can be removed for it; see `graph.absorbers`.
    """
    if len(groups) == 0:
        nobody = np.zeros(0, np.int64)
        return Removal(nobody, nobody, np.zeros(0), np.zeros(0, bool))
    if none:
        keeper, alike = _similar_rows(groups, left, right, similarity, copies, directed)
    else:
        keeper, alike = _kept_rows(groups, left, right, similarity, ranks, directed)
    rows = np.flatnonzero(keeper != np.arange(len(keeper)))
    same = copies[rows] == copies[keeper[rows]]
    if empty is not None:
        same |= empty[groups.of[rows]] & (groups.of[rows] == groups.of[keeper[rows]])
    return Removal(rows, keeper[rows], alike[rows], same)


def _kept_rows(
    groups: Groups, left: Ints, right: Ints, similarity: Scores, ranks: Ints, directed: bool
) -> tuple[Ints, Scores]:
    """Return for every row the one kept in its place, itself if it is kept, and their similarity."""
    count = len(groups)
    ranked = ranks[groups.members]
    lowest = np.minimum.reduceat(ranked, groups.offsets[:-1])
    row_at = np.empty(len(ranks), np.int64)
    row_at[ranks] = np.arange(len(ranks))
    best = row_at[lowest]
    order = np.argsort(lowest)
    if directed:
        places = np.empty(count, np.int64)
        places[order] = np.arange(count)
        mutual = np.isin(packed(left, right), packed(right, left))
        removed_by = graph.absorbers(places, left, right, mutual)
    else:
        removed_by = graph.keepers(order, left, right)
    gone = removed_by >= 0
    pair = removed_by[gone]
    keeper_group = np.arange(count)
    keeper_group[gone] = left[pair] + right[pair] - keeper_group[gone]
    group_similarity = np.ones(count)
    group_similarity[gone] = similarity[pair]
    return best[keeper_group[groups.of]], group_similarity[groups.of]


def _similar_rows(
    groups: Groups, left: Ints, right: Ints, similarity: Scores, copies: Ints, directed: bool
) -> tuple[Ints, Scores]:
    """Return for every row another that it is similar to, itself if there is none, and their similarity.

    The first one with the same bytes; else the first with the same set; else the first of the most similar group.
    """
    one, other, alike = left, right, similarity
    if not directed:
        one, other = np.concatenate([left, right]), np.concatenate([right, left])
        alike = np.concatenate([similarity, similarity])
    order = np.lexsort((other, -alike, one))
    node, first = np.unique(one[order], return_index=True)
    partner, score = np.arange(len(groups)), np.ones(len(groups))
    partner[node], score[node] = other[order[first]], alike[order[first]]
    rows = np.arange(len(copies))
    similar, scores = groups.first[partner][groups.of], score[groups.of]
    for twin in (_twins(groups.of), _twins(copies)):
        similar, scores = np.where(twin != rows, twin, similar), np.where(twin != rows, 1.0, scores)
    return similar, scores


def _twins(labels: Ints) -> Ints:
    """Return for every row the first other one with its label, itself if there is none.

    >>> _twins(np.array([7, 8, 7, 7])).tolist()
    [2, 1, 0, 0]
    """
    _, first, of = np.unique(labels, return_index=True, return_inverse=True)
    rows = np.arange(len(labels))
    later = rows[rows != first[of]]
    second = first.copy()
    second[of[later[::-1]]] = later[::-1]
    return np.where(rows == first[of], second[of], first[of])


def note_unlisted(policy: Keep, log: RunLog) -> None:
    """Note what the policy none misses: among crowds, pairs of documents that are both kept are listed, not all."""
    if policy.rule == NONE and not log.details.get("crowds", {}).get("complete", True):
        log.notes.append(
            "of documents that are alike in crowds not all pairs are listed: with keep='none', a document whose similar"
            " ones are all paired with others is kept"
        )


def components(groups: Groups, left: Ints, right: Ints) -> Ints:
    """Return for every row the first row of its connected component."""
    labels: Ints = groups.first[graph.components(len(groups), left, right)[groups.of]]
    return labels
