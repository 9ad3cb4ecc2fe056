"""Reading minutiae: units, names, what is missing, what is there twice; errors that name the row."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.apps.fingerprints import read_prints
from likewise.errors import ColumnError, FormatError, InputError, ParameterError

TWO = {"print": ["p", "p", "q"], "x": [10, 20, 15], "y": [5, 7, 9], "angle": [0.0, 1.0, 6.0]}
CSV = "print,x,y,angle\np,10,5,0\np,20,7,1\nq,15,9,6\n"


def test_files_and_tables_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "a.tsv").write_text("\ufeff" + CSV.replace(",", "\t"))
    (tmp_path / "a.jsonl").write_text('{"print":"p","x":10,"y":5,"angle":0}\n{"print":"p","x":20,"y":7,"angle":1}\n'
                                      '{"print":"q","x":15,"y":9,"angle":6}\n')  # fmt: skip
    pq.write_table(pa.table(TWO), tmp_path / "a.parquet")
    files = [tmp_path / f"a.{kind}" for kind in ("csv", "tsv", "jsonl", "parquet")]
    for source in (TWO, pa.table(TWO), pa.table(TWO).to_pylist(), *files, str(files[0])):
        prints = read_prints(source)
        assert (prints.names, prints.offsets.tolist()) == (["p", "q"], [0, 2, 3])
        assert (prints.x.tolist(), prints.y.tolist()) == ([10, 20, 15], [5, 7, 9])
        assert prints.angle is not None
        assert prints.angle.tolist() == [0, 1, 6]


def test_rows_of_a_print_need_not_stand_together() -> None:
    prints = read_prints({"id": [7, 8, 7], "x": [1, 2, 3], "y": [1, 2, 3], "angle": [1, 2, 3]})
    assert prints.names == ["7", "8"]
    assert prints.x.tolist() == [1, 3, 2]


def test_the_unit_of_angles() -> None:
    for degrees, angles in ((90.0, "auto"), (90.0, "degrees")):
        found = read_prints({**TWO, "angle": [degrees, 0, 359]}, angles=angles).angle
        assert found is not None
        assert found[0] == pytest.approx(np.pi / 2)
    flipped = read_prints(TWO, flip=True).angle
    assert flipped is not None
    assert flipped == pytest.approx([0, 2 * np.pi - 1, 2 * np.pi - 6])
    with pytest.raises(InputError, match=r"row 1: 'angle' is 90, beyond 2π.*angles='degrees'"):
        read_prints({**TWO, "angle": [0, 90, 1]}, angles="radians")
    with pytest.raises(InputError, match=r"row 2: 'angle' is 700, beyond 360"):
        read_prints({**TWO, "angle": [0, 90, 700]})
    many = {"print": ["p"] * 40, "x": list(range(40)), "y": list(range(40)), "angle": [0.1] * 40}
    with pytest.raises(InputError, match="cannot be degrees"):
        read_prints(many, angles="degrees")


def test_resolution() -> None:
    assert read_prints(TWO, dpi=1000).x.tolist() == [5, 10, 7.5]
    with pytest.raises(ParameterError, match="dpi"):
        read_prints(TWO, dpi=0)


def test_a_print_without_minutiae_and_minutiae_given_twice(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV + "r,,,\nq,15,9,6\n")
    prints = read_prints(tmp_path / "a.csv")
    assert prints.names == ["p", "q", "r"]
    assert prints.sizes.tolist() == [2, 1, 0]
    assert (len(prints.x), prints.repeated, prints.empty) == (3, 1, ["r"])


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("p,abc,5,0", r"a\.csv: row 1: 'x' must be a number, not 'abc'"),
        ("p,1,,0", r"a\.csv: row 1: 'y' must be a number, not ''"),
        ("p,1,nan,0", r"a\.csv: row 1: 'y' must be a number, not 'nan'"),
        ("p,1,2,inf", r"a\.csv: row 1: 'angle' must be a number, not 'inf'"),
        (",1,2,3", r"a\.csv: row 1: the column 'print' is empty"),
        ("\n\np,1,2,x", r"a\.csv: row 1: 'angle' must be a number"),
        ("p,99999,2,3", r"a\.csv: row 1: this minutia of print 'p' is 9.* with dpi="),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, rows: str, told: str) -> None:
    (tmp_path / "a.csv").write_text(f"print,x,y,angle\np,10,5,0\n{rows}\np,12,5,0\n")
    with pytest.raises(InputError, match=told):
        read_prints(tmp_path / "a.csv")


def test_a_row_of_another_width(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("print,x,y,angle\np,10,5,0\np,10,5\n")
    with pytest.raises(FormatError, match=r"a\.csv: row 1 has 3 fields instead of 4"):
        read_prints(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [
        ({"name": ["p"], "x": [1], "y": [1], "angle": [1]}, {}, "id='COLUMN'; the columns are: name, x, y, angle"),
        (TWO, {"id": "nobody"}, "no column 'nobody'"),
        (TWO, {"x": "across"}, "no column 'across'"),
        (TWO, {"angle": "theta"}, "aligned=True"),
        (TWO, {"finger": "whose"}, "no column 'whose'"),
    ],
)
def test_columns_that_are_not_there(source: object, options: dict[str, str], told: str) -> None:
    with pytest.raises(ColumnError, match=told):
        read_prints(source, **options)  # type: ignore[arg-type]


def test_other_errors(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("p")
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "b.csv").write_text("print,x,y,angle\n")
    (tmp_path / "c.csv").write_bytes(b"print,x\np,\xff\n")
    (tmp_path / "d.parquet").write_text("no table")
    for name, told in (("a.txt", "CSV, TSV"), ("a.csv", "empty"), ("b.csv", "no minutiae"),
                       ("c.csv", "c.csv: row 0 is not UTF-8"), ("d.parquet", "cannot be read")):  # fmt: skip
        with pytest.raises(InputError, match=told):
            read_prints(tmp_path / name)
    with pytest.raises(ParameterError, match="a path, a list of paths, a pyarrow"):
        read_prints(42)
    with pytest.raises(InputError, match=r"row 1: print 'p' is of finger 'b' here, and of finger 'a' before"):
        read_prints({**TWO, "finger": ["a", "b", "c"]}, finger="finger")
