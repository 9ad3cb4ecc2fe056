"""One reading of dates for fields, points and differences."""

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.fields import date_digits, spelled
from likewise.apps.link.points import field_points
from likewise.apps.link.window import day_number


@given(st.dates(datetime.date(1000, 1, 1)))
def test_every_spelling_is_the_same_day(day):
    digits = f"{day.year:04}{day.month:02}{day.day:02}"
    for text in (
        f"{day:%Y-%m-%d}",
        digits,
        f"{day.year:04}/{day.month}/{day.day}",
        f"{day.day}.{day.month}.{day.year:04}",
    ):
        assert date_digits(text) == digits
        assert field_points(day, text, "date") == 100
        assert day_number(text) == day_number(day) == day.toordinal()


@pytest.mark.parametrize(
    "text", ["", "2024", "1234.112", "1234-112", "March 1999", "2024-13-50", "99.99.2024", "a.b.1999"]
)
def test_other_texts_are_no_days(text):
    assert day_number(text) is None


def test_the_time_of_day_is_a_fraction():
    assert day_number("2024-03-01T12:00:00") == datetime.date(2024, 3, 1).toordinal() + 0.5
    assert date_digits("1999-03-01 10:30") == date_digits("1999-03-01t10:30") == "19990301"
    assert spelled(pa.array(["1999-03-01t10:30", "in march 1999"]), "date").to_pylist() == ["19990301", "inmarch1999"]
