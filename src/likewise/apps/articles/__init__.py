"""News: pages that carry the same article, whatever stands around it (A4; Sections 3.2.4 and 3.8.6).

grouping    `stories`: pages → pairs → stories
answer      its tables and its folder
"""

from __future__ import annotations

from likewise.apps.articles.answer import Stories
from likewise.apps.articles.grouping import stories

__all__ = ["Stories", "stories"]
