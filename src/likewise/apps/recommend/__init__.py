"""Collaborative filtering as a set-similarity problem (MMDS §3.1.3): similar customers, similar items, recommendations.

recommend        the function `recommend`
result           its result: the tables, and the folder they are saved to
reading          `read_ratings`: files and objects to `Ratings`
layout           how a file is laid out: columns, or one basket per line
ratings          `Ratings`: each pair of customer and item once, and the sets made of them
item_groups      groups of similar items, by which customers are compared
similarity_join  similar pairs by counting, by the exact join or by hashing, whichever is cheapest
inverted_lists   exact neighbours at low thresholds
votes            recommendations from the votes of neighbours
"""

from __future__ import annotations

from likewise.apps.recommend.ratings import Ratings
from likewise.apps.recommend.reading import read_ratings
from likewise.apps.recommend.recommend import recommend
from likewise.apps.recommend.result import Recommendations

__all__ = ["Ratings", "Recommendations", "read_ratings", "recommend"]
