"""The index as it would be written in ten minutes: a dict of sets, every one compared with every query."""

from __future__ import annotations

from fractions import Fraction


def jaccard(a: frozenset, b: frozenset) -> Fraction:
    return Fraction(len(a & b), len(a | b)) if a | b else Fraction(1)


def containment(a: frozenset, b: frozenset) -> Fraction:
    return Fraction(len(a & b), len(a)) if a else Fraction(-1)


MEASURES = {"jaccard": jaccard, "containment": containment}


class NaiveIndex:
    """Ids to sets, in the order in which they were added."""

    def __init__(self) -> None:
        self.sets: dict[object, frozenset] = {}

    def add(self, ids, sets) -> None:
        for id, tokens in zip(ids, sets, strict=True):
            self.sets.pop(id, None)
            self.sets[id] = frozenset(tokens)

    def remove(self, ids) -> None:
        for id in ids:
            self.sets.pop(id, None)

    def query(self, tokens, k, threshold, measure) -> list[tuple[object, float]]:
        asked = frozenset(tokens)
        least = Fraction(str(threshold))
        found = [(id, MEASURES[measure](asked, one)) for id, one in self.sets.items()]
        found = [(id, score) for id, score in found if score >= least]
        found.sort(key=lambda entry: -entry[1])
        return [(id, float(score)) for id, score in found[:k]]
