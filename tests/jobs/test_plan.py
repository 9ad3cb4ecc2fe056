"""The forecast: what a glimpse tells about an input, the arithmetic, the calibration, and the command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise.base.memory import Budget
from likewise.errors import MissingInput, ParameterError
from likewise.families.minhash import MinHash
from likewise.families.tuning import Similarities
from likewise.io.read import ReadOptions, open_source
from likewise.jobs.plan import Forecast, InputSample, Machine, cluster, forecast, machine, model, plan
from likewise.jobs.plan.model import Model
from likewise.search.local import Search
from made_inputs import documents, make

Run = Callable[..., subprocess.CompletedProcess[str]]
NANO = 1e-9
NAMES = [field.name for field in fields(Machine) if field.type == "float"]
MADE_UP = Machine(
    "made up", 4, 2, **{**dict.fromkeys(NAMES, NANO), "parallel": 2.0, "start": 1.0, "base": 2e8, "read_speed": 1e9}
)
MADE_UP = replace(MADE_UP, write_speed=5e8)


@pytest.fixture(autouse=True)
def no_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test in this process measure the machine, but those that say so."""
    monkeypatch.setattr(machine, "_cached", lambda threads: replace(MADE_UP, threads=threads))
    monkeypatch.setattr(model, "others_load", lambda: 0.0)


def test_broken_rows_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "fine"}\n{"text": broken}\n{"text": null}\n')
    assert any("2 of 3 sampled rows are broken" in note for note in plan(tmp_path / "a.jsonl").notes)


@pytest.mark.parametrize("source", [[], ["one"], ["", "", ""], ["a b c"] * 2, ["x " * 100_000]])
def test_empty_and_tiny_inputs(source: list[str]) -> None:
    found = plan(pa.array(source, pa.string()))
    assert found.documents == len(source)
    assert found.different == len(set(source))
    assert found.spill == 0
    assert found.total > 0
    assert json.loads(json.dumps(found.to_dict()))["documents"] == len(source)


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.csv", "lines.txt", "file.arrow"])
def test_files_without_rows(tmp_path: Path, name: str) -> None:
    found = plan(make(tmp_path, name, []), lines=name == "lines.txt")
    assert found.documents == 0
    assert found.removed == 0


def test_a_sample_of_everything_tells_what_the_run_will_find() -> None:
    texts = documents(400) + documents(400)[:50]
    texts += [text + " and more" for text in texts[:80]]
    found = plan(texts, threads=1, method="lsh")
    stats = likewise.dedup(texts, threads=1, method="lsh").stats
    assert found.to_dict()["banding"] == stats["details"]["banding"]
    assert found.different == stats["counts"]["different"]
    assert found.candidates == stats["counts"]["candidates"]
    assert found.removed == stats["counts"]["removed"]


@pytest.mark.parametrize("method", ["auto", "exact", "lsh"])
@pytest.mark.parametrize("threshold", [0.5, 0.9])
def test_the_method_of_the_run_is_predicted(method: str, threshold: float) -> None:
    """With all documents in the sample, the forecast takes the method of the run, for the same reason."""
    texts = documents(3000, mean=150)
    found = plan(texts, method=method, threshold=threshold)
    stats = likewise.dedup(texts, method=method, threshold=threshold).stats
    assert found.method == stats["method"]["taken"]
    assert method != "auto" or found.why == stats["method"]["why"]
    stages = {"sets", "join"} if found.method == "exact" else {"sketch", "candidates", "verify"}
    assert stages <= found.seconds.keys() & stats["seconds"].keys()
    assert not {"sets", "join", "sketch", "candidates", "verify"} - stages & found.seconds.keys()
    assert (found.banding is None) == (found.method == "exact")
    assert found.removed == stats["counts"]["removed"]
    assert found.method in repr(found)


def test_bands_mean_hashing() -> None:
    found = plan(["a b c d e f"] * 3, bands=4, rows=3)
    assert (found.method, found.why, str(found.banding)) == ("lsh", "bands and rows were given", "4 bands of 3 rows")


def test_copies_far_apart_are_estimated(tmp_path: Path) -> None:
    """A tenth of 20,000 documents are copies of another. The sample shows k of the pairs, give or take √k."""
    texts = documents(18_000, mean=20) + documents(18_000, mean=20)[:2000]
    np.random.default_rng(5).shuffle(texts)
    source = open_source(make(tmp_path, "a.parquet", texts))
    sample = InputSample.of(source, "words:5", 1 << 20)
    assert sample.share < 0.6
    trial = sample.trial(Search(0.8, 0.99, MinHash()))
    k = 2000 * sample.share**2
    assert abs(1 - trial.different - 0.1) < 0.1 * (1 + 4) / np.sqrt(k)
    assert trial.kept <= trial.different


def test_copies_side_by_side_are_not_scaled_up_twice(tmp_path: Path) -> None:
    texts = [text for text in documents(10_000, mean=20) for _ in range(2)]
    sample = InputSample.of(open_source(make(tmp_path, "a.parquet", texts)), "words:5", 1 << 20)
    assert sample.share < 0.6
    assert abs(sample.trial(Search(0.8, 0.99, MinHash())).different - 0.5) < 0.02


def larger(sample: InputSample, times: int) -> InputSample:
    """The same sample, of so many times more."""
    seen = sample.seen
    more = {"documents": seen.documents * times, "text": seen.text * times, "stored": seen.stored * times}
    return replace(sample, seen=replace(seen, **more))


@pytest.fixture(scope="module")
def small_sample(tmp_path_factory: pytest.TempPathFactory) -> InputSample:
    folder = tmp_path_factory.mktemp("sample")
    return InputSample.of(open_source(make(folder, "a.parquet", documents(2000)), ReadOptions(id="id")))


def test_nothing_is_timed_while_kernels_are_loaded(small_sample: InputSample, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time in a process, work is done once before it is timed."""
    monkeypatch.setattr("likewise.jobs.plan.sample._loaded", set())
    spent = iter([3 << 22, 1 << 10, 1 << 10])
    seconds = [small_sample._timed("trial", lambda: sum(range(next(spent))))[1] for _ in range(2)]
    assert max(seconds) < 0.05
    assert next(spent, None) is None


def test_more_documents_take_more(small_sample: InputSample) -> None:
    search = Search(0.8, 0.99, MinHash(), threads=2, budget=Budget(1 << 34))
    found = [forecast(larger(small_sample, 10**power), MADE_UP, search) for power in range(6)]
    for less, more in pairwise(found):
        assert more.documents == 10 * less.documents
        assert more.total > less.total
        assert more.memory > less.memory
        assert more.answer > less.answer
        assert more.disk > less.disk
        assert all(more.seconds[stage] >= less.seconds[stage] for stage in ("read", "sketch", "identical", "write"))


def test_the_arithmetic_of_a_forecast(small_sample: InputSample) -> None:
    """With a second of one core for everything that is counted, by hand."""
    search = Search(0.8, 0.99, MinHash(), threads=2, budget=Budget(1 << 34))
    sample = larger(small_sample, 20)
    trial = replace(
        sample.trial(search), different=0.5, kept=0.25, candidates=1000.0, pairs=400.0, involved=0.1, sketch=3e-9,
        shingle=5e-9, tune=0.2,
    )  # fmt: skip
    slow = replace(MADE_UP, identical=1e-3, cluster=2e-3, table=3e-3, probe=0.0, meet=0.0, index=0.0, start=7.0)
    found = Model(sample, slow, search, trial).forecast()
    n, text = 40_000, sample.seen.text  # as many documents as the machine was measured on: nothing grows
    assert (found.documents, found.different, found.removed) == (n, n // 2, 3 * n // 4)
    seconds = found.seconds
    assert seconds["start"] == 7.0
    assert seconds["identical"] == pytest.approx(n * 1e-3)
    assert seconds["cluster"] == pytest.approx(n * 2e-3)
    assert seconds["tables"] == pytest.approx(n * 3e-3)
    assert seconds["sketch"] == pytest.approx(text * 0.5 * 3e-9 / 2)
    assert found.banding is not None
    bands = found.banding.b
    assert seconds["candidates"] == pytest.approx((n / 2 * (bands + 1) * NANO + 1000 * NANO) / 2)
    compared = 1000 * sample.mean_set * NANO
    assert seconds["verify"] == pytest.approx((n / 2 * 0.1 * text / n * 5e-9 + compared) / 2)
    assert found.total == pytest.approx(sum(seconds.values()))
    assert found.cpu_seconds > found.total  # some of the work is shared by two threads
    keys = 4 * bands * n / 2
    kept = n / 4 * sample.seen.kept
    assert found.answer > kept + keys + 9 * n
    assert found.answer < kept + keys + 9 * n + n * 60
    assert found.spill == 0


def test_other_work_is_told(small_sample: InputSample, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(0.8, 0.99, MinHash(), threads=2, budget=Budget(1 << 34))
    assert not forecast(small_sample, MADE_UP, search).notes
    monkeypatch.setattr(model, "others_load", lambda: 5.2)
    assert "other work keeps all 4 cores busy now" in forecast(small_sample, MADE_UP, search).notes[0]


@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize(("own", "share"), [(4, 0.01), (30, 1.0)])
def test_crowds_are_planned_as_they_are_met(own: int, share: float, method: str) -> None:
    """A template, and some own words of each document: with 4 all are similar, with 30 no two are."""
    chance, template = np.random.default_rng(own), " ".join(f"t{i}" for i in range(60))
    texts = [f"{template} {' '.join(f'u{i}' for i in chance.integers(10**9, size=own))}" for _ in range(3000)]
    found = plan(texts, threads=1, method=method)
    run = likewise.dedup(texts, threads=1, method=method).stats
    assert ("crowds" in found.seconds) == ("crowds" in run["seconds"]) == (own == 4)
    assert found.documents - found.removed <= share * found.documents
    assert abs(found.removed - run["counts"]["removed"]) <= 0.02 * found.documents
    assert any("share a template" in note for note in found.notes) == (own == 4)


def test_little_memory_means_work_files(small_sample: InputSample, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = larger(small_sample, 1000)
    trial = sample.trial(Search(0.8, 0.99, MinHash()))
    monkeypatch.setattr(InputSample, "trial", lambda *_: trial)  # timed once: other work would make one of two longer
    roomy = forecast(sample, MADE_UP, Search(0.8, 0.99, MinHash(), budget=Budget(1 << 36)))
    tight = forecast(sample, MADE_UP, Search(0.8, 0.99, MinHash(), budget=Budget(1 << 28)))
    assert tight.spill > sample.seen.text * sample.packing.share
    assert roomy.spill == 0
    assert tight.disk > roomy.disk
    assert tight.memory < roomy.memory
    assert tight.total > roomy.total
    assert any("keep data on disk" in note for note in tight.notes)
    assert not roomy.notes


# --- the cluster, by hand


def test_the_arithmetic_of_a_cluster() -> None:
    work = cluster(1e10, 5000, 1000, cores_per_machine=16, bands=20, rows=5, machine=MADE_UP)
    n = 10**10
    assert work.documents == n
    assert work.text_bytes == 50 * 10**12
    assert work.signature_bytes == 4 * 100 * n
    assert work.key_bytes == 800 * 10**9
    assert work.shuffle["keys"] == 2400 * 10**9  # 12 bytes for each of 20 bands
    assert work.shingles == pytest.approx(5000 / 6 - 4)
    assert work.pairs == 10**9
    typical = Similarities.typical(n)
    useless = met = 0.0
    for s, pairs in zip(typical.values, typical.pairs, strict=True):
        if s < 0.8:
            useless += pairs * (1 - (1 - s**5) ** 20)
            met += pairs * 20 * s**5
    assert work.candidates == pytest.approx(useless + 10**9, rel=1e-6)
    assert work.shuffle["texts"] == pytest.approx(2 * work.candidates * 5000, rel=1e-6)
    assert work.shuffle["pairs"] == pytest.approx(16 * (met + 1e9 * 20 * 0.9**5), rel=1e-6)
    travelling = sum(work.shuffle.values())
    assert work.shuffle_bytes == travelling
    cores = 1000 * 16 * 0.5
    pairs_met = work.shuffle["pairs"] / 16
    assert work.seconds["candidates"] == pytest.approx((n * 20 * NANO * 1.5 + pairs_met * NANO) / cores, rel=1e-6)
    assert work.seconds["cluster"] == pytest.approx((n * NANO + 1e9 * NANO) * 1.5 / cores)
    assert work.seconds["shuffle"] == pytest.approx(2 * travelling / 1000 / 5e8)  # the disk is slower than the network
    assert work.disk == pytest.approx((50e12 * 1.9 + 2 * travelling) / 1000)
    assert work.memory == 16 * (200_000_000 + 512_000_000)
    assert work.total == pytest.approx(sum(work.seconds.values()))
    assert json.loads(json.dumps(work.to_dict()))["shuffle_bytes"]["total"] == travelling


def test_a_cluster_takes_the_banding_that_is_quickest_and_keeps_the_promise() -> None:
    work = cluster(1e9, 3000, 100, machine=MADE_UP, threshold=0.7, recall=0.95)
    assert work.banding.probability(0.7) >= 0.95
    other = cluster(1e9, 3000, 100, machine=MADE_UP, threshold=0.7, bands=work.banding.b + 40, rows=work.banding.r)
    assert work.total < 1.2 * other.total
    assert work.shuffle_bytes < other.shuffle_bytes


def test_twice_the_machines_take_half_the_time() -> None:
    one, two = (cluster(1e8, 2000, count, bands=30, rows=8, machine=MADE_UP) for count in (50, 100))
    for stage in ("candidates", "shuffle", "cluster"):
        assert one.seconds[stage] == pytest.approx(2 * two.seconds[stage])
    assert one.shuffle == two.shuffle
    assert one.disk == pytest.approx(2 * two.disk, abs=1)
    assert one.memory == two.memory


def test_too_little_memory_of_a_machine_is_told() -> None:
    notes = cluster(1e6, 100, 2, memory_per_machine="1GiB", bands=9, rows=4, machine=MADE_UP).notes
    assert any("less than 11.4 GB" in note for note in notes)
    assert len(cluster(1e6, 100, 2, memory_per_machine="64GiB", bands=9, rows=4, machine=MADE_UP).notes) == 3


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"documents": 0}, "The 'documents' parameter of plan must be a positive whole number. Got 0 instead."),
    ({"documents": 1.5}, "The 'documents' parameter of plan must be a positive whole number. Got 1.5 instead."),
    ({"documents": float("nan")}, "The 'documents' parameter of plan must be a positive whole number. Got nan"),
    ({"documents": True}, "The 'documents' parameter of plan must be a positive whole number. Got True"),
    ({"machines": -1}, "The 'machines' parameter of plan must be a positive whole number. Got -1 instead."),
    ({"cores_per_machine": 0}, "The 'cores_per_machine' parameter of plan must be a positive whole number."),
    ({"mean_bytes": 0}, "The 'mean_bytes' parameter of plan must be a positive number. Got 0 instead."),
    ({"mean_bytes": float("inf")}, "The 'mean_bytes' parameter of plan must be a positive number. Got inf instead."),
    ({"threshold": 1.4}, "The 'threshold' parameter of plan must be in (0, 1]. Got 1.4 instead."),
    ({"recall": 0}, "The 'recall' parameter of plan must be in (0, 1), such as 0.99. Got 0 instead."),
    ({"memory_per_machine": "much"}, "The 'memory_per_machine' parameter of plan must be a size such as 4GiB"),
    ({"bands": 5}, "The 'bands' and 'rows' parameters of plan go together: give both or neither."),
    ({"shingle": "lines:5"}, "must be words:K, chars:K, tokens, stopwords:LANGUAGE or urls"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_parameters_of_a_cluster(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        cluster(**{"documents": 10, "mean_bytes": 100, "machines": 2, "machine": MADE_UP, **wrong})
    assert words in str(caught.value)


def test_wrong_parameters_of_a_plan(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"threshold": 0}, "The 'threshold' parameter of plan must be in (0, 1]. Got 0 instead."),
        ({"recall": 1}, "The 'recall' parameter of plan must be in (0, 1)"),
        ({"threads": 0}, "The 'threads' parameter of plan must be a positive whole number. Got 0 instead."),
        ({"memory": "1kB"}, "The 'memory' parameter of plan must be at least 64MiB. Got '1kB' instead."),
        ({"rows": 3}, "The 'bands' and 'rows' parameters of plan go together"),
        ({"certify": -1}, "The 'certify' parameter of plan must be"),
        ({"ignore_common": 2}, "The 'ignore_common' parameter of plan must be"),
    ]
    for options, words in wrong:
        with pytest.raises(ParameterError) as caught:
            plan(["a", "b"], **options)
        assert words in str(caught.value)
    with pytest.raises(MissingInput):
        plan(tmp_path / "nothing.parquet")


# --- the calibration and its cache


@pytest.fixture
def real_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Use the cache as it is, in an empty folder; measuring is counted, not done."""
    monkeypatch.undo()
    measured: list[int] = []

    def calibrated(threads: int) -> Machine:
        measured.append(threads)
        return replace(MADE_UP, threads=threads)

    monkeypatch.setattr(machine, "_calibrated", calibrated)
    monkeypatch.setattr(machine, "cache_directory", lambda: tmp_path)
    return measured


def test_the_machine_is_measured_once(real_cache: list[int], tmp_path: Path) -> None:
    assert not Machine.is_known(3)
    first = Machine.measured(3)
    assert Machine.is_known(3)
    assert replace(Machine.measured(3), write_speed=0, read_speed=0) == replace(first, write_speed=0, read_speed=0)
    assert real_cache == [3]
    Machine.measured(2)
    assert real_cache == [3, 2]
    Machine.measured(3, again=True)
    assert real_cache == [3, 2, 3]
    assert len(list(tmp_path.glob("machine-*.json"))) == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'"x"', b'{"name": 1}', b"\xff\xfe", b"null", b'{"threads": "many"}'],
)
def test_a_broken_cache_is_measured_again(real_cache: list[int], tmp_path: Path, content: bytes) -> None:
    Machine.measured(2)
    place = next(tmp_path.glob("machine-*.json"))
    place.write_bytes(content)
    assert Machine.measured(2).threads == 2
    assert real_cache == [2, 2]
    assert json.loads(place.read_bytes())["threads"] == 2


@pytest.mark.parametrize("wrong", [{"sketch": "fast"}, {"sketch": -1.0}, {"parallel": 0.1}, {"sort": None}])
def test_numbers_that_make_no_sense_are_measured_again(
    real_cache: list[int], tmp_path: Path, wrong: dict[str, Any]
) -> None:
    Machine.measured(2)
    place = next(tmp_path.glob("machine-*.json"))
    place.write_text(json.dumps({**json.loads(place.read_bytes()), **wrong}))
    Machine.measured(2)
    assert real_cache == [2, 2]


def test_no_place_for_a_cache_is_no_error(
    real_cache: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "cache_directory", lambda: None)
    assert Machine.measured(2).threads == 2
    monkeypatch.setattr(machine, "cache_directory", lambda: tmp_path / "gone" / "away")
    assert Machine.measured(2).threads == 2
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(machine, "cache_directory", lambda: tmp_path / "file")
    assert Machine.measured(2).threads == 2
    assert real_cache == [2, 2, 2]


def test_a_disk_that_cannot_be_tried_is_taken_to_be_usual(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_speed, read_speed = machine.disk_speed(tmp_path / "not" / "yet")
    assert write_speed > 1e5
    assert read_speed > 1e5
    assert list(tmp_path.iterdir()) == []

    def full(**options: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(machine.tempfile, "TemporaryFile", full)
    assert machine.disk_speed(tmp_path) == (machine.USUAL_DISK, machine.USUAL_DISK)


def test_the_real_calibration_makes_sense() -> None:
    found = machine._calibrated(2)
    assert (found.start, found.base) != (machine.USUAL_START, machine.USUAL_BASE)
    assert 1 <= found.parallel <= 2
    for name in NAMES:
        value = getattr(found, name)
        assert value >= 0, name
        if name not in ("parallel", "start", "base", "write_speed", "read_speed"):
            assert value < 1e-4, name
    assert 1e-10 < found.sketch < 1e-6
    assert found.miss < found.match


def test_a_start_that_fails_is_taken_to_be_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.sys, "executable", "/nowhere/python")
    assert machine._start() == (machine.USUAL_START, machine.USUAL_BASE)


# --- the command


@pytest.fixture
def run(tmp_path: Path, typed: Run) -> Run:
    make(tmp_path, "a.parquet", documents(300))
    return lambda *words: typed("plan", *words)


def test_the_command_for_an_input(run: Run) -> None:
    done = run("a.parquet", "--id", "id")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("documents        300, ")
    assert any(" join " in line for line in lines)
    assert any(line.startswith("method: exact, predicted to take ") for line in lines)
    assert lines[-1].startswith("about ")
    assert lines[-1].endswith("of disk")
    found = json.loads(run("a.parquet", "--id", "id", "--method", "lsh", "--json").stdout)
    assert found["documents"] == 300
    assert found["method"] == {"taken": "lsh", "why": "requested"}
    assert set(found["seconds"]) >= {"read", "identical", "tune", "sketch", "candidates", "verify", "write"}
    assert found["total_seconds"] == pytest.approx(sum(found["seconds"].values()), abs=0.01)
    assert found["spill_bytes"] == 0


def test_the_command_for_a_cluster(run: Run) -> None:
    words = ["--documents", "1e10", "--mean-bytes", "5000", "--machines", "1000", "--bands", "20", "--rows", "5"]
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert "10,000,000,000 of 5.0 kB: 50.0 TB of text" in done.stdout
    assert "shuffle: keys" in done.stdout
    assert "2.4 TB" in done.stdout
    assert "not measured" in done.stdout
    found = json.loads(run(*words, "--json").stdout)
    assert found["shuffle_bytes"]["keys"] == 2400 * 10**9


def test_exit_codes(run: Run, tmp_path: Path) -> None:
    def fails(code: int, *words: str) -> str:
        done = run(*words)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        return done.stderr

    assert "either INPUT, or --documents" in fails(2)
    assert "either INPUT, or --documents" in fails(2, "a.parquet", "--documents", "10")
    assert "--machines" in fails(2, "--documents", "10", "--mean-bytes", "5")
    assert "--text needs an INPUT" in fails(
        2, "--documents", "10", "--mean-bytes", "5", "--machines", "1", "--text", "x"
    )
    assert "must be in (0, 1]" in fails(2, "a.parquet", "--threshold", "2")
    assert "positive whole number" in fails(2, "--documents", "1.5", "--mean-bytes", "5", "--machines", "1")
    assert "missing.parquet" in fails(1, "missing.parquet")
    assert "'body'" in fails(1, "a.parquet", "--text", "body")
    (tmp_path / "fake.parquet").write_bytes(b"no")
    assert "fake.parquet" in fails(1, "fake.parquet")
    assert run("--help").returncode == 0
    assert "Examples:" in run("--help").stdout


def test_measuring_again_is_told(run: Run, real_cache: list[int]) -> None:
    done = run("a.parquet", "--calibrate", "--json", "--threads", "2")
    assert "measuring this machine" in done.stderr
    assert json.loads(done.stdout)["documents"] == 300
    assert real_cache == [2]
    assert "measuring this machine" not in run("a.parquet", "--json", "--threads", "2").stderr
    assert real_cache == [2]


def test_a_forecast_is_public() -> None:
    assert likewise.plan is plan
    assert isinstance(likewise.plan(["a b c d e f"] * 3), Forecast)


@pytest.mark.parametrize("method", ["auto", "exact", "lsh"])
def test_a_large_run_carries_the_forecast_of_its_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr("likewise.jobs.dedup.FORECAST_FROM", 1)
    source = make(tmp_path, "a.parquet", documents(300))
    stats = likewise.dedup(source, method=method, out=tmp_path / "out").stats
    predicted = stats["details"]["forecast"]
    assert predicted["method"]["taken"] == stats["method"]["taken"]
    assert predicted["removed"] == stats["counts"]["removed"]
    assert predicted["measured"]["total_seconds"] > 0
