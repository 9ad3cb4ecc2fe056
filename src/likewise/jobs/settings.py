"""What the user of a job can set, checked once and passed on whole.

`Settings` say which documents or sets are similar and how they are found; `Resources` are what a run may use.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from likewise.base import checks
from likewise.base.memory import Budget
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.search.common_shingles import check_fraction
from likewise.search.local import Search
from likewise.search.prepare import METHODS
from likewise.search.recall.sample import check_sample
from likewise.shingle import Shingler, parse_shingler

Given = dict[str, tuple[object, object]]
"""Names of parameters, each with its value and its default: what `checks.unused` expects."""

HASHING = ("recall", "sketch", "bands", "rows", "max_slots", "certify", "estimate")
"""Settings of locality-sensitive hashing; an exact search uses none of them."""


@dataclass(frozen=True)
class Settings:
    """The settings of a search for similar documents or sets.

    owner: the function the user called, for error messages.
    """

    owner: str
    shingle: str | Shingler = "words:5"
    threshold: float = 0.8
    recall: float = 0.99
    seed: int = 1
    sketch: str = "fast"
    bands: int | None = None
    rows: int | None = None
    max_slots: int = DEFAULT_MAX_SLOTS
    ignore_common: float | None = None
    certify: int | None = None
    method: str = "auto"
    estimate: bool = False

    def __post_init__(self) -> None:
        owner = self.owner
        object.__setattr__(self, "threshold", checks.threshold(owner, self.threshold))
        object.__setattr__(self, "recall", checks.recall(owner, self.recall))
        checks.seed(owner, self.seed)
        checks.choice(owner, "sketch", self.sketch, ("fast", "classic"))
        checks.whole(owner, "max_slots", self.max_slots)
        object.__setattr__(self, "ignore_common", check_fraction(owner, self.ignore_common))
        check_sample(owner, self.certify)
        checks.choice(owner, "method", self.method, METHODS)
        checks.flag(owner, "estimate", self.estimate)
        _ = self.shingler
        if self.method == "exact":
            checks.unused(owner, self.given(*HASHING), "with method='exact'")
        if (self.bands is None) != (self.rows is None):
            raise ParameterError(f"The 'bands' and 'rows' parameters of {owner} go together: give both or neither.")
        if self.bands is not None:
            checks.unused(owner, self.given("max_slots"), "with 'bands' and 'rows'")

    @property
    def shingler(self) -> Shingler:
        """The shingler; where its k depends on the documents, with a k that may change."""
        return parse_shingler(self.shingle, owner=self.owner)

    @property
    def banding(self) -> Banding | None:
        """The banding the user gave, if any."""
        return Banding(self.bands, self.rows) if self.bands is not None and self.rows is not None else None

    def given(self, *names: str) -> Given:
        """Return these settings with their defaults, which are attributes of the class."""
        return {name: (getattr(self, name), getattr(type(self), name)) for name in names}

    def search(self, resources: Resources) -> Search:
        """Return the search these settings describe."""
        return Search(
            self.threshold,
            self.recall,
            MinHash(self.seed, self.sketch),
            self.banding,
            self.max_slots,
            resources.threads,
            resources.budget,
            self.ignore_common,
            certify=self.certify,
            method=self.method,
            estimate=self.estimate,
        )

    def to_dict(self, shingler: Shingler | None) -> dict[str, Any]:
        """Return these settings, and none of what else a request has, for run.json."""
        names = [field.name for field in fields(Settings) if field.name not in ("owner", "shingle")]
        shingled = shingler.to_dict() if shingler else {"shingle": None}
        return {**shingled, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Resources:
    """What a run may use: threads, memory, and a folder for what does not fit in memory."""

    threads: int
    budget: Budget
    spill: Path | None = None

    @classmethod
    def of(cls, owner: str, threads: object, memory: object, spill: str | Path | None = None) -> Resources:
        """Check what the user gave; by default all cores and half of the free memory."""
        folder = checks.path(owner, "spill", spill) if spill is not None else None
        return cls(checks.threads(owner, threads), Budget.of(owner, memory), folder)

    @property
    def used(self) -> dict[str, Any]:
        """The threads and the memory, for run.json."""
        return {"threads": self.threads, "memory": self.budget.total}
