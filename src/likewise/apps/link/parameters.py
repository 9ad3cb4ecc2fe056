"""Checks of the parameters of `link` that concern more than one of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from likewise.apps.link import synonyms
from likewise.apps.link.points import check_weights
from likewise.apps.link.questions import QUESTIONS
from likewise.apps.link.records import RecordTable
from likewise.base import checks
from likewise.errors import ParameterError


def check_parameters(
    b: Any, id: Any, threshold: Any, one_to_one: Any, validate: Any, true: Any, weights: Any, training: Any
) -> None:
    """Raise if a parameter is wrong by itself, contradicts another, or has no effect."""
    if id is not None:
        checks.column("link", "id", id)
    if threshold is not None:
        checks.number("link", "threshold", threshold)
    if one_to_one is not None:
        checks.flag("link", "one_to_one", one_to_one)
    if b is None:
        checks.unused("link", {"one_to_one": (one_to_one, None)}, "for one table")
    if validate is None:
        checks.unused("link", {"true": (true, None)}, "without 'validate'")
    elif not isinstance(validate, str):
        raise ParameterError.of("link", "validate", "the name of a column", validate)
    if true is not None:
        checks.threshold("link", true, "true")
    if weights is not None and not isinstance(weights, Mapping):
        raise ParameterError.of("link", "weights", "a mapping of fields to numbers", weights)
    for names, values in ((("threshold", "true"), (threshold, true)), (("weights", "training"), (weights, training))):
        if all(value is not None for value in values):
            one, other = names
            raise ParameterError(f"The '{one}' and '{other}' parameters of link exclude each other. Give one of them.")


def check_asking(ask: Any, label: Any, questions: Any, weights: Any) -> int:
    """Return the number of questions; raise if a parameter of asking is wrong or has no effect."""
    if ask is None:
        given = {"label": (label, None), "questions": (questions, None)}
        checks.unused("link", given, "without 'ask', a function that answers")
        return QUESTIONS
    if not callable(ask):
        raise ParameterError.of("link", "ask", "a function that answers a question", ask)
    if weights is not None:
        raise ParameterError("The 'weights' and 'ask' parameters of link exclude each other. Give one of them.")
    return QUESTIONS if questions is None else checks.whole("link", "questions", questions, 1)


def check_fields(records: RecordTable, words: Any, weights: Mapping[str, float] | None) -> dict[str, float] | None:
    """Return the weights; raise if they or the nicknames do not fit the fields that are compared."""
    if words is not None and not any(one.kind in synonyms.KINDS for one in records.fields):
        why = f"without a field of kind {', '.join(synonyms.KINDS)}"
        checks.unused("link", {"nicknames": (words, None)}, why)
    return None if weights is None else check_weights("link", weights, [one.name for one in records.fields])


def each_given(parameters: Iterable[Any]) -> list[Any]:
    """Return what parameters refer to, of which some are None and others lists."""
    flat = (one for some in parameters for one in (some if isinstance(some, list | tuple) else [some]))
    return [one for one in flat if one is not None]


def named(given: Any) -> Any:
    """Return what run.json says of a parameter that may be a path or data."""
    if isinstance(given, list | tuple) and given and all(isinstance(one, str | os.PathLike) for one in given):
        return [str(one) for one in given]
    return given if given is None else str(given) if isinstance(given, str | os.PathLike) else type(given).__name__
