"""Collaborative filtering as a set-similarity problem (MMDS §3.1.3): similar customers, similar items, recommendations.

reading          files and objects → rows of customer, item and rating
ratings          `read_ratings` → `Ratings`: each pair of customer and item once, and the sets made of them
inverted_lists   exact neighbours at low thresholds
similarity_join  similar pairs by counting, by the exact join or by hashing, whichever is cheapest; groups of items
votes            recommendations from the votes of neighbours
recommend        `recommend`: all of these steps, and its tables
"""

from __future__ import annotations

from likewise.apps.recommend.ratings import Ratings, read_ratings
from likewise.apps.recommend.recommend import Recommendations, recommend

__all__ = ["Ratings", "Recommendations", "read_ratings", "recommend"]
