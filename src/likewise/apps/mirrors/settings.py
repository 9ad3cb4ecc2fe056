"""When two hosts are mirrors, and when two pages are one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from likewise.apps.mirrors.contracting import OWNER, Rules
from likewise.errors import ParameterError
from likewise.shingle import Shingler, parse_shingler
from likewise.shingle.urls import STOP, Urls

THRESHOLD, RECALL, LEAST, SHINGLE, SIMILAR_TEXT, CONFIRMED = 0.2, 0.99, 5, "words:3", 0.8, 0.5


@dataclass(frozen=True)
class Settings:
    """The parameters of a search for mirrors, validated.

    threshold: the Jaccard similarity of two hosts as sets of positional bigrams, at least.
    least: paths that two hosts share, at least, and a tenth of the smaller one's; paths that have no token but stop
    components do not count.
    similar_text: two pages are similar if their texts, as sets of `shingle`, have this Jaccard similarity.
    confirmed: of the paths that two hosts share, and whose texts are known, this fraction must be similar.
    """

    threshold: float = THRESHOLD
    recall: float = RECALL
    least: int = LEAST
    position: str | None = "end"
    stop: Iterable[str] = STOP
    shingle: str | Shingler = SHINGLE
    similar_text: float = SIMILAR_TEXT
    confirmed: float = CONFIRMED
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        for name in ("threshold", "similar_text", "confirmed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise ParameterError.of(OWNER, name, "in (0, 1]", value)
        if isinstance(self.least, bool) or not isinstance(self.least, int) or self.least < 1:
            raise ParameterError.of(OWNER, "least", "a positive whole number", self.least)
        self.urls, self.texts  # noqa: B018  wrong ones are errors now

    @property
    def urls(self) -> Urls:
        """How the paths of a host become a set."""
        return Urls(stop=self.stop, host=False, position=self.position)

    @property
    def texts(self) -> Shingler:
        """How the text of a page becomes a set."""
        return parse_shingler(self.shingle, owner="mirrors")

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        names = ("threshold", "recall", "least", "position", "similar_text", "confirmed")
        return {
            **{name: getattr(self, name) for name in names}, "stop": list(self.urls.stop), "shingle": str(self.texts),
            "similar_links": self.rules.similar, "least_links": self.rules.least, "template": self.rules.template,
        }  # fmt: skip
