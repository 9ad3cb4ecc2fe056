"""The naive oracle of recommend: every pair compared, every recommendation summed up one vote at a time."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

VIEWS = ["bought", "liked", "liked-hated", "stars"]


def bags(rows, of, view, like=4.0, hate=2.0):
    """A bag for every customer, or item, in the order of first appearance; of a pair rated twice the last counts."""
    last = {(user, item): rating for user, item, rating in rows}
    made = {(row[0] if of == "customers" else row[1]): Counter() for row in rows}
    for (user, item), rating in last.items():
        owner, other = (user, item) if of == "customers" else (item, user)
        if view == "bought" or (view == "liked" and rating >= like):
            made[owner][other] = 1
        elif view == "liked-hated" and (rating >= like or rating <= hate):
            made[owner][other, rating >= like] = 1
        elif view == "stars":
            made[owner][other] = int(rating)
    return made


def similarity(a, b, union="max"):
    shared = sum((a & b).values())
    both = a.total() + b.total() if union == "sum" else (a | b).total()
    return (shared / both if both else 0.0), shared


def pairs(made, threshold, union="max"):
    found = []
    for one, other in combinations(made, 2):
        score, shared = similarity(made[one], made[other], union)
        if shared and score >= threshold:
            found.append((one, other, score, shared))
    return found


def nearest(made, one, k, threshold, union="max"):
    order = {name: place for place, name in enumerate(made)}
    scored = [(other, *similarity(made[one], made[other], union)) for other in made if other != one]
    scored = [entry for entry in scored if entry[2] and entry[1] >= threshold]
    return sorted(scored, key=lambda entry: (-entry[1], order[entry[0]]))[:k]


def recommended(rows, user, view, by, count, neighbours, union="max", like=4.0):
    """Items with their scores, best first, ties by first appearance."""
    last = {(one, item): rating for one, item, rating in rows}
    highest = max(last.values())
    weight = {
        "bought": lambda rating: 1.0,
        "stars": lambda rating: rating / highest,
    }.get(view, lambda rating: float(rating >= like))
    made = bags(rows, by, view)
    order = {item: place for place, item in enumerate(dict.fromkeys(item for _, item, _ in rows))}
    own = {item: weight(rating) for (one, item), rating in last.items() if one == user}
    scores = Counter()
    if by == "items":
        for item, wanted in own.items():
            if wanted:
                for other, score, _ in nearest(made, item, neighbours, 1e-12, union):
                    scores[other] += score * wanted
    else:
        for other, score, _ in nearest(made, user, neighbours, 1e-12, union):
            for (one, item), rating in last.items():
                if one == other:
                    scores[item] += score * weight(rating)
    left = [(item, score) for item, score in scores.items() if item not in own and score > 0]
    return sorted(left, key=lambda entry: (-round(entry[1], 9), order[entry[0]]))[:count]
