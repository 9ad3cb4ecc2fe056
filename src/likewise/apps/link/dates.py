"""Dates as they are written in records: year first or year last, with or without separators."""

from __future__ import annotations

import re
from datetime import date, datetime

DATE = re.compile(r"(\d{4})\D?(\d{1,2})\D?(\d{1,2})(?:[Tt ].*)?|(\d{1,2})\D(\d{1,2})\D(\d{4})")
SHORTEST = len("20240517")
SEPARATED = re.compile(r"\d+\D\d+\D\d+")


def date_digits(text: str) -> str | None:
    """Return a date as eight digits, year first, or None for any other text; with the year last, the day comes first.

    >>> date_digits("1999-3-1"), date_digits("3.1.1999"), date_digits("19990301"), date_digits("March 1999")
    ('19990301', '19990103', '19990301', None)
    """
    found = DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day = found.group(1, 2, 3) if found[1] else found.group(6, 5, 4)
    return f"{year}{int(month):02}{int(day):02}"


def day_number(value: object) -> float | None:
    """Return a date, or a text that is a date, as a number of days, with the time of day as a fraction; or None.

    >>> day_number("2024-03-01") - day_number("28.2.2024"), day_number("1234.112"), day_number("2024")
    (2.0, None, None)
    """
    if isinstance(value, datetime):
        return value.toordinal() + (value.hour * 3600 + value.minute * 60 + value.second) / 86400
    if isinstance(value, date):
        return float(value.toordinal())
    if not isinstance(value, str) or len(value.strip()) < SHORTEST:
        return None
    text = value.strip()
    try:
        return day_number(datetime.fromisoformat(text))
    except ValueError:
        pass
    digits = date_digits(text) if SEPARATED.fullmatch(text) else None
    try:
        return None if digits is None else day_number(datetime.strptime(digits, "%Y%m%d"))
    except ValueError:
        return None
