"""Parameter checks, one per kind of parameter, so that every function words its errors in the same way.

Each check returns the value as a plain Python object, or raises a ParameterError that names the function the user
called (`owner`), the parameter, the rule and the value. NumPy numbers are accepted wherever Python numbers are; True
and False are not numbers.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import ParameterError

Floats = NDArray[np.float64]
SEEDS = 2**64
"""Seeds are 64-bit unsigned integers."""
LARGEST = 2**63 - 1
"""The largest integer that any parameter takes: it must fit in 64 bits."""
MOST_FUNCTIONS = 2**31 - 1
"""The most hash functions of a family: their numbers are hashed as 32-bit integers."""
MOST_THREADS = 1 << 16
"""More threads than any machine has cores."""


def whole(
    owner: str, name: str, value: object, least: int = 1, most: int | None = None, *, rule: str | None = None
) -> int:
    """Return an integer from `least` to `most`."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        found = int(value)
        if least <= found <= (LARGEST if most is None else most):
            return found
        if most is None and found > LARGEST:
            raise ParameterError.of(owner, name, f"less than 2**63; {rule or 'a whole number'}", value)
    if rule is None and most is None:
        rule = "a positive whole number" if least == 1 else f"a whole number of at least {least}"
    raise ParameterError.of(owner, name, rule or f"a whole number from {least} to {most}", value)


def number(
    owner: str,
    name: str,
    value: object,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    open_left: bool = False,
    open_right: bool = False,
    rule: str | None = None,
) -> float:
    """Return a finite number in an interval, whose ends may be open."""
    found = _finite(value)
    if found is not None:
        above = found > least if open_left else found >= least
        if above and (found < most if open_right else found <= most):
            return found
    raise ParameterError.of(owner, name, rule or _interval(least, most, open_left, open_right), value)


def _finite(value: object) -> float | None:
    """Return a finite real number as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _interval(least: float, most: float, open_left: bool, open_right: bool) -> str:
    if least == -math.inf and most == math.inf:
        return "a finite number"
    if most == math.inf:
        return f"a number above {least:g}" if open_left else f"a number of at least {least:g}"
    if least == -math.inf:
        return f"a number below {most:g}" if open_right else f"a number of at most {most:g}"
    return f"in {'(' if open_left else '['}{least:g}, {most:g}{')' if open_right else ']'}"


def numbers(owner: str, name: str, value: object, least: float = -math.inf, most: float = math.inf) -> Floats:
    """Return a number or an array of numbers in a closed interval, as an array; NaN is never in it."""
    try:
        array: Floats = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError.of(owner, name, "a number or an array of numbers", value) from error
    if not ((array >= least) & (array <= most)).all():
        raise ParameterError.of(owner, name, _interval(least, most, False, False), value)
    return array


def threshold(owner: str, value: object, name: str = "threshold") -> float:
    """Return a similarity threshold, in (0, 1]."""
    return number(owner, name, value, 0, 1, open_left=True)


def recall(owner: str, value: object) -> float:
    """Return a recall, in (0, 1)."""
    hint = "; no number of bands finds every pair for certain" if _finite(value) == 1 else ""
    return number(owner, "recall", value, 0, 1, open_left=True, open_right=True, rule=f"in (0, 1), such as 0.99{hint}")


def seed(owner: str, value: object) -> int:
    """Return a seed, an integer from 0 to 2**64 - 1."""
    return whole(owner, "seed", value, 0, SEEDS - 1, rule="a whole number from 0 to 2**64 - 1")


def threads(owner: str, value: object) -> int:
    """Return the number of threads: as given, or the number of cores this process may use if None."""
    if value is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole(owner, "threads", value, most=MOST_THREADS, rule="a positive whole number")


def functions(owner: str, value: object) -> int:
    """Return the number of hash functions to use."""
    return whole(owner, "n", value, most=MOST_FUNCTIONS, rule="a positive whole number")


def listed(owner: str, name: str, value: Any, rule: str) -> list[Any]:
    """Return the elements of a collection; text and mappings are none.

    >>> listed("f", "x", (1, 2), "a list")
    [1, 2]
    """
    if not isinstance(value, str | bytes | Mapping) and isinstance(value, Iterable):
        try:
            return list(value)
        except TypeError:  # an array without dimensions
            pass
    raise ParameterError.of(owner, name, rule, value)


def choice(owner: str, name: str, value: object, choices: Collection[str]) -> str:
    """Return one of a few strings."""
    if not isinstance(value, str) or value not in choices:
        *some, last = [repr(one) for one in choices]
        raise ParameterError.of(owner, name, f"{', '.join(some)} or {last}" if some else last, value)
    return value


def flag(owner: str, name: str, value: object) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError.of(owner, name, "True or False", value)
    return bool(value)


def column(owner: str, name: str, value: object) -> str:
    """Return the name of a column."""
    if not isinstance(value, str):
        raise ParameterError.of(owner, name, "the name of a column", value)
    return value


def path(owner: str, name: str, value: object) -> Path:
    """Return a path."""
    if not isinstance(value, str | os.PathLike):
        raise ParameterError.of(owner, name, "a path", value)
    return Path(value)


def unused(owner: str, given: Mapping[str, tuple[object, object]], why: str) -> None:
    """Raise if a parameter was given that has no effect in this call; `given` maps names to (value, default).

    >>> unused("pairs", {"shingle": ("words:5", "words:5"), "bands": (20, None)}, "for vectors")
    Traceback (most recent call last):
    likewise.errors.ParameterError: The 'bands' parameter of pairs has no effect for vectors. Leave it out.
    """
    for name, (value, default) in given.items():
        if value is not default and not _equal(value, default):
            raise ParameterError(f"The '{name}' parameter of {owner} has no effect {why}. Leave it out.")


def is_spark_frame(source: object) -> bool:
    """Tell whether an object is a Spark DataFrame, classic or of Spark Connect, without importing PySpark."""
    return any(
        kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame" for kind in type(source).__mro__
    )


def prime(owner: str, name: str, value: object, most: int) -> int:
    """Return a prime number up to `most`, by trial division."""
    if not (isinstance(value, int | np.integer) and 2 <= value <= most and _is_prime(int(value))):
        raise ParameterError.of(owner, name, f"a prime number up to {most:,}", value)
    return int(value)


def seeded(owner: str, value: object) -> random.Random:
    """Return Python's random number generator, seeded."""
    return random.Random(seed(owner, value))


def _is_prime(value: int) -> bool:
    return all(value % factor for factor in range(2, math.isqrt(value) + 1))


def _equal(value: object, default: object) -> bool:
    """Tell whether a value is the default; an array is not."""
    try:
        return bool(value == default)
    except ValueError:
        return False
