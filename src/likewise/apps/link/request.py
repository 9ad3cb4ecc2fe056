"""What `link` is asked for: checked in one place, passed whole to the steps, and written to run.json from here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.apps.link.fields import check_kind
from likewise.apps.link.labels import Ask
from likewise.apps.link.learned_rules import MODEL
from likewise.apps.link.result import Links
from likewise.apps.link.window import Ends, check_window
from likewise.base import checks
from likewise.errors import ParameterError
from likewise.jobs.settings import Resources

QUESTIONS = 30
"""Questions that are asked if no other number is given: about ten minutes of a person's time."""

DEFAULTS: dict[str, Any] = {"columns": {}, "window": {}, "missing": (), "scored": False, "fresh": False}
"""What parameters are if they are not given, of those that are not None then."""

SETTLED = ("b", "id", "fields", "columns", "missing", "weights", "threshold", "one_to_one", "window", "validate",
           "true", "truth", "training", "ask", "label", "questions", "nicknames", "scored")  # fmt: skip
"""What an earlier run has decided for the records that are added to it."""

COLUMNS = "a mapping of columns of a to columns of b, such as {'cast': 'actors'}; several are joined by +, None is none"
MISSING = "a list of texts that are not empty, such as ['0.0', '1900-01-01']"
WINDOW = "a mapping of columns to two numbers, the least and the largest difference, such as {'created': (0, 90)}"


@dataclass(frozen=True)
class LinkRequest:
    """The parameters of `link`, which its docstring describes, in one form each.

    fields: kinds by name, None to guess one. columns: of b by column of a. window: its two ends, by column.
    """

    a: Any
    b: Any
    against: Any
    id: str | None
    fields: dict[str, str | None] | None
    columns: dict[str, str | None]
    missing: tuple[str, ...]
    weights: Mapping[str, float] | None
    threshold: float | None
    one_to_one: bool | None
    window: dict[str, Ends]
    validate: str | None
    true: float | None
    truth: Any
    training: Any
    ask: Ask | None
    label: str | os.PathLike[str] | None
    questions: int | None
    nicknames: Any
    resources: Resources
    seed: int
    out: Path | None
    scored: bool
    fresh: bool

    def __post_init__(self) -> None:
        """Raise if a parameter is wrong by itself, contradicts another, or has no effect."""
        if self.id is not None:
            checks.column("link", "id", self.id)
        if self.threshold is not None:
            checks.number("link", "threshold", self.threshold)
        if self.one_to_one is not None:
            checks.flag("link", "one_to_one", self.one_to_one)
        checks.flag("link", "scored", self.scored)
        if self.true is not None:
            checks.threshold("link", self.true, "true")
        if self.validate is not None and not isinstance(self.validate, str):
            raise ParameterError.of("link", "validate", "the name of a column", self.validate)
        if self.weights is not None and not isinstance(self.weights, Mapping):
            raise ParameterError.of("link", "weights", "a mapping of fields to numbers", self.weights)
        if self.ask is not None and not callable(self.ask):
            raise ParameterError.of("link", "ask", "a function that answers a question", self.ask)
        if self.questions is not None:
            checks.whole("link", "questions", self.questions, 1)
        for given, names, without in (
            (self.b, ("one_to_one",), "for one table"),
            (self.b, ("columns",), "for one table"),
            (self.b, ("window",), "for one table, as its records have no order"),
            (self.validate, ("true",), "without 'validate'"),
            (self.ask, ("label", "questions"), "without 'ask', a function that answers"),
            (self.out, ("scored", "fresh"), "without 'out'"),
        ):
            if given is None:
                checks.unused("link", {name: (getattr(self, name), DEFAULTS.get(name)) for name in names}, without)
        if self.against is not None:
            if not isinstance(self.against, str | os.PathLike | Links):
                raise ParameterError.of("link", "against", "the folder or the result of an earlier run", self.against)
            given = {name: (getattr(self, name), DEFAULTS.get(name)) for name in SETTLED}
            checks.unused("link", given, "with 'against', as the earlier run has decided it")
        for one, other in (("threshold", "true"), ("weights", "training"), ("weights", "ask")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ParameterError(
                    f"The '{one}' and '{other}' parameters of link exclude each other. Give one of them."
                )
        if self.out is not None:
            given = each_given([self.a, self.b, self.truth, self.training, self.label, self.nicknames])
            read = [one for one in given if isinstance(one, str | os.PathLike)]
            if isinstance(self.against, str | os.PathLike):
                read.append(Path(self.against) / MODEL)
            Links.check_folder(self.out, read)

    @property
    def most_questions(self) -> int:
        """The number of questions, at most."""
        return QUESTIONS if self.questions is None else int(self.questions)

    @property
    def sources(self) -> list[Any]:
        """The tables and files of words, on which the candidates depend."""
        return each_given([self.a, self.b, self.nicknames])

    @property
    def decisive(self) -> dict[str, Any]:
        """The parameters on which the candidates and their comparison depend, as run.json has them."""
        return {
            "against": _named(self.against), "id": self.id, "fields": self.fields, "columns": self.columns or None,
            "missing": list(self.missing) or None,
            "weights": None if self.weights is None else "given",
            "window": {name: list(ends) for name, ends in self.window.items()} or None,
            "validate": self.validate, "nicknames": _named(self.nicknames), "seed": self.seed,
        }  # fmt: skip

    def parameters(self, weights: Mapping[str, float] | None) -> dict[str, Any]:
        """Return all parameters as run.json has them; the weights are those of the fields."""
        return {
            **self.decisive, "weights": weights, "threshold": None if self.threshold is None else float(self.threshold),
            "one_to_one": self.one_to_one, "true": None if self.true is None else float(self.true),
            "truth": _named(self.truth), "training": _named(self.training), "label": _named(self.label),
            "scored": self.scored, "questions": None if self.ask is None else self.most_questions,
            "threads": self.resources.threads, "memory": self.resources.budget.total,
        }  # fmt: skip


def each_given(parameters: Iterable[Any]) -> list[Any]:
    """Return what parameters refer to, of which some are None and others lists."""
    flat = (one for some in parameters for one in (some if isinstance(some, list | tuple) else [some]))
    return [one for one in flat if one is not None]


def _named(given: Any) -> Any:
    """Return what run.json says of a parameter that may be a path or data."""
    if isinstance(given, list | tuple) and given and all(isinstance(one, str | os.PathLike) for one in given):
        return [str(one) for one in given]
    return given if given is None else str(given) if isinstance(given, str | os.PathLike) else type(given).__name__


def field_kinds(given: Mapping[str, str | None] | Sequence[str] | None) -> dict[str, str | None] | None:
    """Return the fields to compare and their kinds (None: to be guessed), given as a mapping or as NAME or NAME:KIND.

    >>> field_kinds(["name:name", "phone"])
    {'name': 'name', 'phone': None}
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        kinds: dict[str, str | None] = dict(given)
    else:
        rule = "a list of names, or a mapping of names to kinds"
        given = checks.listed("link", "fields", given, rule)
        if not all(isinstance(field, str) for field in given):
            raise ParameterError.of("link", "fields", rule, given)
        kinds = {}
        for field in given:
            name, colon, kind = field.rpartition(":")
            kinds[name if colon else field] = kind if colon else None
    if not kinds:
        raise ParameterError.of("link", "fields", "one or more fields", given)
    for chosen in kinds.values():
        check_kind(chosen)
    return kinds


def column_pairs(given: Any) -> dict[str, str | None]:
    """Return the columns of b by column of a, None for a column without counterpart."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not given:
        raise ParameterError.of("link", "columns", COLUMNS, given)
    for name, other in given.items():
        if not isinstance(name, str) or not name or not (other is None or (isinstance(other, str) and other)):
            raise ParameterError.of("link", "columns", COLUMNS, given)
    return dict(given)


def missing_values(given: Any) -> tuple[str, ...]:
    """Return the values that mean none.

    >>> missing_values(["0.0", "1900-01-01"])
    ('0.0', '1900-01-01')
    """
    found = [] if given is None else checks.listed("link", "missing", given, MISSING)
    if not all(isinstance(one, str) and one.strip() for one in found):
        raise ParameterError.of("link", "missing", MISSING, given)
    return tuple(found)


def window_ends(given: Any) -> dict[str, Ends]:
    """Return the windows by column."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not given:
        raise ParameterError.of("link", "window", WINDOW, given)
    return {
        checks.column("link", "window", name): check_window("link", "window", ends, WINDOW)
        for name, ends in given.items()
    }
