"""When two hosts are mirrors, and when two texts are similar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from likewise.base import checks
from likewise.search.prepare import METHODS
from likewise.shingle import Shingler, parse_shingler
from likewise.shingle.urls import STOP, Urls

OWNER = "mirrors"
THRESHOLD = 0.2
"""Least similarity of two hosts. In benchmarks/mirrors.py every pair found at 0.2 or above is a pair of mirrors, and at
0.1 nearly every one; a higher threshold misses mirrors of which a crawl has seen different pages."""
RECALL = 0.99
LEAST = 5
"""Least number of shared paths: hosts with fewer pages in the list give too little evidence."""
SHINGLE = "words:3"
SIMILAR_TEXT = 0.8
"""Least similarity of two texts of one page: mirrors may add a banner or a date."""
CONFIRMED = 0.5
"""Least fraction of compared pages with similar texts: mirrors are crawled at different times, so some pages differ."""


@dataclass(frozen=True)
class MirrorSettings:
    """The parameters of a search for mirrors, validated.

    threshold: least Jaccard similarity of two hosts as sets of positional bigrams.
    recall, method, seed: how similar hosts and similar texts are found; see `likewise.pairs`.
    least: least number of paths that two mirrors share; they also share at least a tenth of the smaller host's paths.
    Paths that consist of stop components do not count.
    similar_text: two texts are similar if their sets of `shingle` have at least this Jaccard similarity.
    confirmed: the fraction of the shared paths with known texts that must have similar texts.
    """

    threshold: float = THRESHOLD
    recall: float = RECALL
    method: str = "auto"
    seed: int = 1
    least: int = LEAST
    position: str | None = "end"
    stop: Iterable[str] = STOP
    shingle: str | Shingler = SHINGLE
    similar_text: float = SIMILAR_TEXT
    confirmed: float = CONFIRMED

    def __post_init__(self) -> None:
        for name in ("threshold", "similar_text", "confirmed"):
            object.__setattr__(self, name, checks.threshold(OWNER, getattr(self, name), name))
        object.__setattr__(self, "recall", checks.recall(OWNER, self.recall))
        checks.choice(OWNER, "method", self.method, METHODS)
        checks.seed(OWNER, self.seed)
        checks.whole(OWNER, "least", self.least)
        if self.position is not None:
            checks.choice(OWNER, "position", self.position, ("start", "end"))
        object.__setattr__(self, "stop", tuple(checks.listed(OWNER, "stop", self.stop, "a list of components")))
        self.urls, self.texts  # noqa: B018  raises if the stop components or the shingles are invalid

    @property
    def urls(self) -> Urls:
        """The shingler that turns the paths of a host into a set."""
        return Urls(stop=self.stop, host=False, position=self.position)

    @property
    def texts(self) -> Shingler:
        """The shingler that turns the text of a page into a set."""
        return parse_shingler(self.shingle, owner="mirrors")

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        names = ("threshold", "recall", "method", "seed", "least", "position", "similar_text", "confirmed")
        asked = {name: getattr(self, name) for name in names}
        return {**asked, "stop": list(self.urls.stop), "shingle": str(self.texts)}
