"""Everything the user can set that changes the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from likewise.base import checks
from likewise.base.memory import Budget
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.read import ReadOptions
from likewise.search.common_shingles import check_fraction
from likewise.search.prepare import METHODS
from likewise.search.recall.sample import check_sample
from likewise.search.search import Search
from likewise.shingle import Shingler, Tokens, parse_shingler


@dataclass(frozen=True)
class Settings:
    """Everything the user can set that changes the answer, validated; `run.json` holds it.

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

    def __post_init__(self) -> None:
        owner = self.owner
        object.__setattr__(self, "threshold", checks.threshold(owner, self.threshold))
        object.__setattr__(self, "recall", checks.recall(owner, self.recall))
        checks.seed(owner, self.seed)
        object.__setattr__(self, "ignore_common", check_fraction(owner, self.ignore_common))
        check_sample(owner, self.certify)
        parse_shingler(self.shingle, owner=owner)
        checks.choice(owner, "method", self.method, METHODS)
        if self.method == "exact" and self.bands is not None:
            raise ParameterError(f"The 'bands' and 'rows' parameters of {owner} are not for method 'exact'.")
        if (self.bands is None) != (self.rows is None):
            raise ParameterError(f"The 'bands' and 'rows' parameters of {owner} go together: give both or neither.")

    def search(self, threads: int, budget: Budget) -> Search:
        """Return the search these settings describe."""
        banding = Banding(self.bands, self.rows) if self.bands is not None and self.rows is not None else None
        minhash = MinHash(self.seed, self.sketch)
        return Search(
            self.threshold,
            self.recall,
            minhash,
            banding,
            self.max_slots,
            threads,
            budget,
            self.ignore_common,
            certify=self.certify,
            method=self.method,
        )

    def to_dict(self, shingler: Shingler | None) -> dict[str, Any]:
        """Return all parameters, for run.json."""
        return {
            **(shingler.to_dict() if shingler else {"shingle": None}),
            "threshold": self.threshold,
            "recall": self.recall,
            "seed": self.seed,
            "sketch": self.sketch,
            "bands": self.bands,
            "rows": self.rows,
            "max_slots": self.max_slots,
            "ignore_common": self.ignore_common,
            "certify": self.certify,
            "method": self.method,
        }


def read_options(
    shingle: str | Shingler,
    text: str,
    id: str | None,
    score: str | None,
    on_error: str,
    encoding_errors: str,
    lines: bool,
    html: bool,
    batch_rows: int | None,
    budget: Budget,
    owner: str = "dedup",
) -> ReadOptions:
    """Return how the input is read."""
    sets = isinstance(parse_shingler(shingle), Tokens)
    more: dict[str, Any] = {"batch_bytes": budget.batch, **({} if batch_rows is None else {"batch_rows": batch_rows})}
    return ReadOptions(
        text=text,
        id=id,
        score=score,
        on_error=on_error,
        encoding_errors=encoding_errors,
        lines=lines or sets,
        sets=sets,
        html=html,
        owner=owner,
        **more,
    )
