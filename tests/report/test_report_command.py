"""The command line: every command that writes a folder writes its report, and no report costs a result."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_runs import documents
from test_report_page import check_page

import likewise
from made_inputs import write_for_applications

CALLS = {
    "dedup": ["dedup docs.parquet --by source --out run"],
    "dedup by hashing": ["dedup docs.parquet --id id --method lsh --ignore-common 0.9 --out run"],
    "dedup by estimate": ["dedup docs.parquet --estimate --threshold 0.6 --out run"],
    "dedup of sets": ["dedup sets.txt --sets --out run"],
    "dedup of nothing similar": ["dedup one.parquet --out run"],
    "dedup against a run": [
        "dedup one.parquet --id id --no-report --out old",
        "dedup docs.parquet --against old --out run",
    ],
    "dedup against a run by hashing": [
        "dedup one.parquet --id id --method lsh --no-report --out old",
        "dedup docs.parquet --against old --out run",
    ],
    "rethreshold": ["dedup docs.parquet --no-report --out run", "rethreshold run --threshold 0.9 --by source"],
    "rethreshold to another folder": ["dedup docs.parquet --out old", "rethreshold old --keep longest --out run"],
    "rethreshold by hashing": [
        "dedup docs.parquet --method lsh --certify 20 --no-report --out run",
        "rethreshold run --threshold 0.9",
        "rethreshold run --threshold 0.85 --keep longest",
    ],
    "rethreshold of estimates": [
        "dedup docs.parquet --estimate --threshold 0.6 --no-report --out run",
        "rethreshold run --threshold 0.7",
    ],
    "pairs": ["pairs docs.parquet --with one.parquet --out run"],
    "pairs by hashing": ["pairs docs.parquet --method lsh --out run"],
    "pairs by containment": ["pairs docs.parquet --measure containment --out run"],
    "pairs of vectors": ["pairs vectors.npy --measure l2 --within 0.5 --out run"],
    "nearest": ["nearest vectors.npy -k 2 --out run"],
    "index query": ["index create index", "index add index docs.parquet", "index query index one.parquet --out run"],
    "link of two": ["link people.csv others.csv --validate born --out run"],
    "link of one": ["link people.csv --weight name=2 --weight address=1 --out run"],
    "passages": ["passages docs.parquet --sources docs.parquet --not-itself --out run"],
    "dedup of vectors": ["dedup vectors.npy --measure l2 --within 0.5 --out run"],
    "dedup of lines": ["dedup docs.parquet --unit lines --min-words 2 --out run"],
    "decontaminate": ["decontaminate docs.parquet --tests one.parquet --action cut --out run"],
    "articles": ["articles docs.parquet --shingle words:3 --by source --out run"],
    "mirrors": ["mirrors urls.txt --out run"],
    "recommend": ["recommend ratings.csv --out run"],
    "fingerprints": ["fingerprints prints.csv --out run"],
}


@pytest.fixture
def inputs(tmp_path):
    path, _, _ = documents(tmp_path, 40)
    pq.write_table(pq.read_table(path).slice(0, 5), tmp_path / "one.parquet")
    (tmp_path / "sets.txt").write_text("a b c d e f\na b c d e f g\nx y z\nx y z\n")
    write_for_applications(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", CALLS)
def test_every_command_writes_its_report(inputs, typed, name):
    for call in CALLS[name]:
        done = typed(*call.split())
        assert done.returncode == 0, done.stderr
    assert "no report" not in done.stderr
    assert done.stdout.splitlines()[-2] == "report: run/report.html"
    page = (inputs / "run" / "report.html").read_text(encoding="utf-8")
    parsed = check_page(page)
    assert "not shown" not in page
    stats = json.loads((inputs / "run" / "run.json").read_text())
    assert f"likewise {stats['command']}" in "".join(parsed.text)


def test_no_report(inputs, typed):
    assert typed("dedup", "docs.parquet", "--out", "run").returncode == 0
    assert (inputs / "run" / "report.html").exists()
    done = typed("dedup", "docs.parquet", "--no-report", "--out", "run")
    assert "report" not in done.stdout
    assert not (inputs / "run" / "report.html").exists(), "the report of the earlier result is gone with it"
    done = typed("report", "run", "--by", "source", "--out", "page.html")
    assert (done.returncode, done.stdout) == (0, "→ page.html\n")
    assert "Removed by source" in (inputs / "page.html").read_text()
    assert typed("report", "run", "--quiet").stdout == ""


def test_json_and_quiet_print_no_line_about_it(inputs, typed):
    done = typed("pairs", "docs.parquet", "--json", "--out", "run")
    assert json.loads(done.stdout)["command"] == "pairs"
    assert (inputs / "run" / "report.html").exists()
    assert typed("pairs", "docs.parquet", "--quiet", "--out", "run").stdout == ""
    assert (inputs / "run" / "report.html").exists()


def test_options_without_effect(inputs, typed):
    for words, message in (
        ("pairs docs.parquet --no-report --out pairs.csv", "--no-report has no effect without a folder"),
        ("dedup docs.parquet --no-report --by source --out run", "--by has no effect with --no-report"),
        ("report run --by source", "has no effect on a run of pairs"),
    ):
        typed("pairs", "docs.parquet", "--out", "run") if "report run" in words else None
        done = typed(*words.split())
        assert done.returncode == 2
        assert message in done.stderr


def test_a_column_that_is_not_there_is_found_before_the_run(inputs, typed):
    done = typed("dedup", "docs.parquet", "--by", "sauce", "--out", "run")
    assert done.returncode == 1
    assert "there is no column 'sauce'" in done.stderr
    assert not (inputs / "run").exists()


def test_the_recall_of_a_higher_threshold_is_that_of_the_same_bands(inputs, typed):
    for words in ("--method lsh", "--estimate"):
        assert typed(*f"dedup docs.parquet --threshold 0.6 {words} --out run".split()).returncode == 0
        first = json.loads((inputs / "run" / "run.json").read_text())["details"]
        assert typed(*["rethreshold", "run", "--threshold", "0.8"]).returncode == 0
        again = json.loads((inputs / "run" / "run.json").read_text())["details"]
        assert again["banding"] == first["banding"]
        banding = likewise.Banding(first["banding"]["bands"], first["banding"]["rows"])
        if words == "--method lsh":
            assert again["predicted_recall"] == banding.probability(0.8) > first["predicted_recall"]
            assert (
                f"A pair at the threshold is found with probability {again['predicted_recall']:.4f}"
                in (inputs / "run/report.html").read_text()
            )
        else:
            assert 0.4 < again["predicted_recall"] < banding.probability(0.8)


def test_a_run_that_does_not_say_its_recall_has_a_page(inputs, typed):
    """As rethreshold of earlier versions did not."""
    assert typed(*["dedup", "docs.parquet", "--method", "lsh", "--out", "run"]).returncode == 0
    stats = json.loads((inputs / "run" / "run.json").read_text())
    del stats["details"]["predicted_recall"]
    (inputs / "run" / "run.json").write_text(json.dumps(stats))
    assert typed("report", "run").returncode == 0
    assert "A pair at the threshold is found" not in (inputs / "run" / "report.html").read_text()


def test_without_the_extra_the_run_succeeds(inputs, typed, monkeypatch):
    from likewise.base import extras

    found = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "jinja2" else found(name))
    done = typed("dedup", "docs.parquet", "--out", "run")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "pip install 'likewise[report]'" in done.stderr
    assert (inputs / "run" / "run.json").exists()
    done = typed("report", "run")
    assert (done.returncode, "pip install 'likewise[report]'" in done.stderr) == (1, True)


@pytest.mark.parametrize("error", [RuntimeError("broken"), MemoryError(), likewise.InputError("gone")])
def test_a_report_that_fails_costs_nothing(inputs, typed, monkeypatch, error):
    from likewise.report import write

    def fail(*given):
        raise error

    monkeypatch.setattr(write, "_html", fail)
    done = typed("dedup", "docs.parquet", "--out", "run")
    assert done.returncode == 0
    assert done.stderr.startswith("no report")
    assert sorted(path.name for path in (inputs / "run").iterdir()) == [
        "clusters.parquet", "kept", "pairs.parquet", "removed.parquet", "run.json", "state",
    ]  # fmt: skip
    assert typed("rethreshold", "run", "--threshold", "0.9").returncode == 0


def test_a_run_with_a_report_is_built_upon(inputs, typed):
    assert typed("dedup", "docs.parquet", "--out", "first").returncode == 0
    assert typed("dedup", "one.parquet", "--against", "first", "--out", "run").returncode == 0
    assert typed("dedup", "docs.parquet", "--out", "first").returncode == 0


def test_a_page_with_pictures_needs_no_matplotlib(tmp_path):
    """Its import would take longer than the page."""
    made = [
        f"{' '.join(f'word{i}x{j}' for j in range(40))} {end}" for i in range(60) for end in ("", "more", "and more")
    ]
    pq.write_table(pa.table({"text": made}), tmp_path / "docs.parquet")
    program = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv = "
        "'likewise dedup docs.parquet --threshold 0.5 --method lsh --out run'.split(); "
        "from likewise.cli import run; run()"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert (tmp_path / "run" / "report.html").read_text().count('class="picture"') >= 2


def test_records_with_views_of_strings_have_their_page(tmp_path):
    """Arrow cannot take rows of such columns."""
    import pyarrow as pa

    import likewise
    from likewise.report import write_report

    rows = [f"person {i // 2} of the town" for i in range(40)]
    table = pa.table({"id": [f"r{i}" for i in range(40)], "name": rows, "note": pa.array(rows, pa.string_view())})
    with pa.ipc.new_file(tmp_path / "people.arrow", table.schema) as out:
        out.write_table(table)
    likewise.link(tmp_path / "people.arrow", fields=["name"], id="id", out=tmp_path / "out")
    assert "person 1 of the town" in write_report(tmp_path / "out").read_text()
