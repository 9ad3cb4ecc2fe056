"""Pages that carry the same article, whatever surrounds it (MMDS §3.2.4 and §3.8.6).

articles  `articles`: pages → pairs → clusters of pages with the same article
result    its tables
"""

from __future__ import annotations

from likewise.apps.articles.articles import articles
from likewise.apps.articles.result import Articles

__all__ = ["Articles", "articles"]
