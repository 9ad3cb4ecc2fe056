"""Collaborative filtering as a similar-sets problem: customers of the same tastes, items that go together (A8; §3.1.3).

shapes        how a file is laid out: columns, or one basket a line
reading       files and objects → customers, items, ratings
collecting    `read`, `Ratings`: each pair once; ratings to sets (S8)
counting      exact neighbours at low thresholds
joining       counting, the exact join or hashing, whichever is cheaper
finding       `tastes`: similar customers and similar items
recommending  `recommend`: what people like you also bought
answer        the tables and their folder
"""

from __future__ import annotations

from likewise.apps.recommend.answer import Tastes
from likewise.apps.recommend.collecting import Ratings, read
from likewise.apps.recommend.finding import tastes
from likewise.apps.recommend.recommending import recommend

__all__ = ["Ratings", "Tastes", "read", "recommend", "tastes"]
