"""The forecast of `link`: of files, of objects, of numbers of records; and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from test_plan import MADE_UP

from likewise.base.memory import Budget
from likewise.cli import cli
from likewise.errors import ParameterError
from likewise.jobs.plan import linkage, machine, plan_link
from likewise.jobs.plan.linkage import RecordsSample, forecast_link
from likewise.jobs.plan.machine import Machine
from likewise.jobs.settings import Resources

PEOPLE = pa.table({"id": range(500), "name": [f"ann lee {n}" for n in range(500)], "town": ["york"] * 500})


@pytest.fixture(autouse=True)
def no_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test measure the machine; it is as fast as that to which the costs were fitted."""
    known = replace(MADE_UP, sketch=linkage.REFERENCE)
    monkeypatch.setattr(machine, "_cached", lambda threads: replace(known, threads=threads))


def written(folder: Path, name: str) -> Path:
    """Write the people to a file of a format."""
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(PEOPLE, path)
    elif name.endswith(".csv"):
        pyarrow.csv.write_csv(PEOPLE, path)
    elif name.endswith(".arrow"):
        with pa.ipc.new_file(path, PEOPLE.schema) as out:
            out.write_table(PEOPLE)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in PEOPLE.to_pylist()))
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl", "a.arrow"])
def test_records_of_files_are_counted(tmp_path: Path, name: str) -> None:
    seen = RecordsSample.of(written(tmp_path, name))
    assert (seen.records, seen.fields) == (500, 3)
    assert 20 < seen.bytes < 60
    assert seen.exact == (name in ("a.parquet", "a.arrow"))


@pytest.mark.parametrize("most", [400, 403, 406])
def test_the_head_of_a_file_ends_between_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(linkage, "HEAD", most)
    (tmp_path / "notes.csv").write_text("id,note\n" + '1,"a\nb"\n' * 100)
    assert RecordsSample.of(tmp_path / "notes.csv").fields == 2


def test_two_tables_are_one_list(tmp_path: Path) -> None:
    found = plan_link(written(tmp_path, "a.parquet"), PEOPLE)
    assert found.records == 1000
    assert found.exact
    assert found.total == pytest.approx(sum(found.seconds.values()))


def test_a_million_people_as_measured() -> None:
    """The costs were fitted to runs, of which this one took 55 s of CPU and 2.4 GB."""
    found = plan_link(records=1e6, memory="16GiB", threads=2)
    assert found.candidates == 2_600_000
    assert 45 < found.cpu_seconds < 90
    assert 1.5e9 < found.memory < 3e9
    assert found.spill == 0


def test_ten_million_people_fit_in_8_gib() -> None:
    found = plan_link(records=1e7, memory="8GiB", threads=2)
    assert 5e9 < found.memory < 8 * 2**30
    assert not any("more than is allowed" in note for note in found.notes)
    less = plan_link(records=1e7, memory="2GiB", threads=2)
    assert less.spill == 10**7 * 96
    assert less.memory <= found.memory
    assert less.disk > less.spill
    assert any("more than is allowed" in note for note in less.notes)


def test_more_records_take_more() -> None:
    resources = Resources(2, Budget(8 << 30))
    sizes = [10_000, 100_000, 300_000, 1_000_000, 10_000_000]
    found = [forecast_link(RecordsSample(size, 8, 121.0), MADE_UP, resources) for size in sizes]
    for name in ("memory", "candidates", "disk", "cpu_seconds"):
        amounts = [getattr(one, name) for one in found]
        assert amounts == sorted(amounts), name


def test_a_slower_machine_takes_longer() -> None:
    sample, resources = RecordsSample(10**6, 8, 121.0), Resources(2, Budget(8 << 30))
    one, two = (
        forecast_link(sample, replace(MADE_UP, sketch=times * linkage.REFERENCE), resources) for times in (1, 2)
    )
    assert two.cpu_seconds - MADE_UP.start == pytest.approx(2 * (one.cpu_seconds - MADE_UP.start))
    assert two.memory == one.memory


def test_either_tables_or_a_number() -> None:
    for words in ({}, {"a": PEOPLE, "records": 5}):
        with pytest.raises(ParameterError, match="either tables, or the number"):
            plan_link(**words)
    with pytest.raises(ParameterError, match="mean_bytes"):
        plan_link(PEOPLE, mean_bytes=3)
    with pytest.raises(ParameterError, match="records"):
        plan_link(records=0)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "is_known", classmethod(lambda cls, threads: True))
    path = str(written(tmp_path, "a.csv"))

    def run(*words: str) -> str:
        done = CliRunner().invoke(cli, ["plan", "--link", *words], catch_exceptions=True)
        return done.output if done.exception is None else str(done.exception)

    told = run(path, path)
    assert "about 1,000 of" in told
    assert "compare_fields" in told
    assert "lines were counted" in told
    found = json.loads(run("--records", "1e7", "--memory", "8GiB", "--json"))
    assert (found["command"], found["records"]) == ("link", 10**7)
    assert "no effect on a plan with --link" in run(path, "--threshold", "0.5")
    assert "one INPUT or two" in run(path, path, path)
    assert "either tables" in run()
    done = CliRunner().invoke(cli, ["plan", "--records", "5"])
    assert "--records is for --link" in str(done.exception)
