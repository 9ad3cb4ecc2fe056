"""The result of `mirrors`: clusters of mirrored hosts, the pairs they are made of, and folded pages."""

from __future__ import annotations

from typing import Any, ClassVar

from likewise.base.words import counted
from likewise.jobs.result import Result


class Mirrors(Result):
    """The result of `mirrors`: tables `.mirrors`, `.pairs` and `.pages`, `.stats`, and `.save(dir)`.

    mirrors: one row per host that has mirrors. id, the host; cluster, the id of the first host of the cluster, which is
    its keeper; size, the number of hosts in the cluster; keeper, the host of the cluster with the most pages; pages;
    top, the folders above the pages that the cluster shares.
    pairs: hosts with similar URLs. id_a, id_b; similarity, the exact Jaccard similarity of their sets of positional
    bigrams; pages_a, pages_b; shared_paths, the number of paths they share; top_a, top_b, the folders above these paths
    on either host; compared, the number of shared paths whose texts were compared; confirmed, the fraction of these
    with similar texts (null if none was compared); mirror, whether the hosts are considered mirrors.
    pages: one row per folded page. id, its URL; keeper, the URL of the page it is folded into. None without links.
    """

    files: ClassVar[dict[str, str]] = {
        "mirrors.parquet": "mirrors",
        "pairs.parquet": "pairs",
        "pages.parquet": "pages",
    }

    def __init__(self, mirrors: Any, pairs: Any, pages: Any | None, stats: dict[str, Any]) -> None:
        self.mirrors = mirrors
        self.pairs = pairs
        self.pages = pages
        self.stats = stats

    def _summary(self) -> str:
        counts = self.stats["counts"]
        folded = "" if self.pages is None else f", {counted(len(self.pages), 'page')} folded"
        return (
            f"{len(self.mirrors):,} of {counted(counts['hosts'], 'host')} in {counted(counts['clusters'], 'cluster')} "
            f"of mirrors{folded}"
        )
