"""The result of `articles`: pages clustered by article, and the pairs that join them."""

from __future__ import annotations

from typing import Any, ClassVar

from likewise.base.words import counted
from likewise.jobs.result import Result


class Articles(Result):
    """The result of `articles`: tables `.articles` and `.pairs`, `.stats`, and `.save(dir)`.

    articles: one row per page. id; cluster, the id of its keeper; size, the number of pages in the cluster; keeper, the
    page that represents this one and is itself similar to it; similarity to the keeper; title; language. The
    pages of a cluster are adjacent, and clusters are ordered by their first row in the input.
    pairs: id_a, id_b, similarity of every two pages at or above the threshold.
    """

    files: ClassVar[dict[str, str]] = {"articles.parquet": "articles", "pairs.parquet": "pairs"}

    def __init__(self, articles: Any, pairs: Any, stats: dict[str, Any]) -> None:
        self.articles = articles
        self.pairs = pairs
        self.stats = stats

    def _summary(self) -> str:
        counts = self.stats["counts"]
        return (
            f"{counted(len(self.articles), 'page')} with {counted(counts['articles'], 'article')}, "
            f"{counts['clusters']:,} of them on several pages"
        )
