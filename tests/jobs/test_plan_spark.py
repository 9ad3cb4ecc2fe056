"""The arithmetic of a run on Spark, by hand."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

import pytest

from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.jobs.plan import Machine, fleet, machine, model, of_input, plan, spark_cluster
from likewise.jobs.plan.fleet import START, STEP, KernelSpeed, SparkLoad
from made_inputs import documents

NAMES = [field.name for field in fields(Machine) if field.type == "float"]
MADE_UP = Machine("made up", 4, 2, **{**dict.fromkeys(NAMES, 1e-9), "parallel": 2.0, "read_speed": 1e9})
SPEED = KernelSpeed(1e-9, 1e-9, 1e-9, 1e-9)
LOAD = SparkLoad(1000, 900, 5e5, 80.0, Banding(10, 4), 300.0, 600.0, 0.8)


@pytest.fixture(autouse=True)
def no_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test measure the machine."""
    monkeypatch.setattr(machine, "_cached", lambda threads: replace(MADE_UP, threads=threads))
    monkeypatch.setattr(model, "others_load", lambda: 0.0)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every corpus on the cluster."""
    monkeypatch.setattr(fleet, "ON_DRIVER", 0)


@pytest.mark.usefixtures("large")
def test_bytes_by_hand() -> None:
    sent = LOAD.shuffled()
    assert sent["copies"] == 20 * 1000
    assert sent["groups"] == 20 * 900
    assert sent["buckets"] == 6 * 900
    assert sent["candidates"] == round(9.4 * 900 * 10)
    involved = 900 * (1 - math.exp(-600 / 900))
    assert sent["verify"] == round(0.55 * 500 * involved + 9 * 300)


def test_what_few_documents_leave_to_the_driver() -> None:
    long = replace(LOAD, text_bytes=2e9)
    assert list(long.shuffled()) == ["verify"]
    work, found = long.work(MADE_UP, SPEED), long.forecast(MADE_UP, SPEED, 2, 4, 0.5, 1e6)
    assert list(found.steps) == ["start", "read", "sketch", "driver", "verify", "write"]
    meeting = (1000 + 900 + 900 * 10 + 600) * 1e-9
    assert work["driver"] == pytest.approx(meeting)
    assert found.steps["driver"].seconds == pytest.approx(work["driver"] / 4)
    found = LOAD.forecast(MADE_UP, SPEED, 2, 4, 0.5, 1e6)
    assert list(found.steps) == ["start", "read", "sketch", "driver", "write"]
    assert not found.shuffle_bytes
    assert found.steps["driver"].seconds > meeting / 4


@pytest.mark.usefixtures("large")
def test_cores_share_the_work_and_machines_the_network() -> None:
    one, two = (LOAD.forecast(MADE_UP, SPEED, count, 4, 0.5, 1e6) for count in (2, 4))
    assert one.shuffle_bytes == two.shuffle_bytes == sum(LOAD.shuffled().values())
    fixed = START + STEP * (len(one.steps) - 1)
    assert one.total - fixed == pytest.approx(2 * (two.total - fixed))
    work = LOAD.work(MADE_UP, SPEED)
    assert one.core_seconds == pytest.approx(sum(work.values()))
    travel = LOAD.shuffled()["copies"] / 2 / 1e6
    assert one.steps["copies"].seconds == pytest.approx(STEP + work["copies"] / 4 + travel)
    alone = LOAD.forecast(MADE_UP, SPEED, 1, 4, 1.0, 1e6)
    assert alone.steps["copies"].seconds == pytest.approx(STEP + work["copies"] / 4)
    assert json.loads(json.dumps(one.to_dict()))["steps"]["copies"]["shuffle_bytes"] == 20_000


def test_a_cluster_without_an_input() -> None:
    work = spark_cluster(1e10, 5000, 1000, machine=MADE_UP)
    assert work.documents == 10**10
    assert work.banding.probability(0.8) >= 0.99
    assert work.candidates <= 2 * (2_000_000 + 50 * 10**10) + 10**9
    assert next(iter(work.steps)) == "start"
    assert any("not measured" in note for note in work.notes)
    few = spark_cluster(1e6, 100, 2, memory_per_machine="1GiB", bands=9, rows=4, machine=MADE_UP)
    assert any("less than 16.0 GB" in note for note in few.notes)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"documents": 0}, "The 'documents' parameter of plan must be a positive whole number. Got 0 instead."),
        ({"mean_bytes": 0}, "The 'mean_bytes' parameter of plan must be a positive number. Got 0 instead."),
        ({"bands": 5}, "The 'bands' and 'rows' parameters of plan go together: give both or neither."),
    ],
)
def test_wrong_parameters(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        spark_cluster(**{"documents": 10, "mean_bytes": 100, "machines": 2, "machine": MADE_UP, **wrong})
    assert words in str(caught.value)


def test_an_input_that_is_compared_exactly() -> None:
    found = plan(documents(300), method="exact")
    with pytest.raises(ParameterError, match="give method='lsh'"):
        of_input(found, "words:5", MADE_UP)
    found = replace(plan(documents(300), method="lsh"), candidates=7)
    work = of_input(found, "words:5", MADE_UP, machines=3, cores_per_machine=2)
    assert (work.documents, work.candidates, work.machines, work.cores) == (300, 7, 3, 2)
