"""New documents against what earlier runs kept: the same documents remain as if all had come at once."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Chars, Sets, StopWords, Tokens, Words
from likewise.cli import cli
from likewise.jobs.against import Joined
from likewise.search.items import SetItems
from likewise.shingle import Shingler


def texts(seed: int, count: int = 300) -> list[str]:
    """Documents with near-copies and copies spread over the whole list."""
    rng = random.Random(seed)
    found = []
    for _ in range(count // 3):
        words = [f"w{rng.randrange(2000)}" for _ in range(rng.randint(30, 60))]
        found.append(" ".join(words))
        for _ in range(rng.randrange(4)):
            changed = list(words)
            changed[: rng.randrange(5)] = ["other"] * rng.randrange(5)
            found.append(" ".join(changed))
        if rng.random() < 0.2:
            found += [found[-1], found[-1].upper()]
    found += ["", "", "short", "short"]
    rng.shuffle(found)
    return found


def write(path: Path, rows: list[tuple[int, str]]) -> Path:
    path.write_text("".join(json.dumps({"n": n, "text": text}) + "\n" for n, text in rows))
    return path


def kept(folder: Path) -> list[int]:
    return [
        json.loads(line)["n"] for path in sorted((folder / "kept").iterdir()) for line in path.read_text().splitlines()
    ]


@pytest.mark.parametrize("memory", [None, "64MiB"])
def test_three_days_one_after_another_keep_what_one_run_keeps(tmp_path: Path, memory: str | None) -> None:
    rows = list(enumerate(texts(1)))
    third = len(rows) // 3
    days = [rows[:third], rows[third : 2 * third], rows[2 * third :]]
    files = [write(tmp_path / f"day{i}.jsonl", day) for i, day in enumerate(days)]
    likewise.dedup(write(tmp_path / "all.jsonl", rows), id="n", bands=30, rows=3, out=tmp_path / "all", memory=memory)
    folders: list[str | Path] = []
    for i, file in enumerate(files):
        folder = tmp_path / f"out{i}"
        likewise.dedup(file, id="n", bands=30, rows=3, out=folder, against=folders, memory=memory)
        folders.append(folder)
    assert [n for folder in folders for n in kept(Path(folder))] == kept(tmp_path / "all")


def test_removals_name_the_document_and_the_run_that_keeps_it(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(40)]
    old = write(tmp_path / "old.jsonl", [(1, " ".join(words)), (2, "something else entirely, as one can see here")])
    new = write(
        tmp_path / "new.jsonl",
        [
            (1, " ".join(words)),
            (7, " ".join([*words[:38], "x", "y"])),
            (8, "a new text"),
            (9, "A new  text."),
            (5, " ".join(words).upper()),
        ],
    )
    likewise.dedup(old, id="n", out=tmp_path / "old")
    result = likewise.dedup(new, id="n", out=tmp_path / "new", against=tmp_path / "old")
    folder = str(tmp_path / "old")
    assert pq.read_table(tmp_path / "new" / "removed.parquet").to_pylist() == [
        {"id": 1, "kept_id": 1, "similarity": 1.0, "kind": "identical", "kept_in": folder},
        {"id": 7, "kept_id": 1, "similarity": 34 / 38, "kind": "near", "kept_in": folder},
        {"id": 9, "kept_id": 8, "similarity": 1.0, "kind": "near", "kept_in": None},
        {"id": 5, "kept_id": 1, "similarity": 1.0, "kind": "near", "kept_in": folder},
    ]
    assert kept(tmp_path / "new") == [8]
    assert result.stats["counts"]["earlier"] == 2
    assert result.clusters.to_pylist() == [
        {"id": 1, "cluster": 1, "size": 3, "keeper": 1},
        {"id": 7, "cluster": 1, "size": 3, "keeper": 1},
        {"id": 8, "cluster": 8, "size": 2, "keeper": 8},
        {"id": 9, "cluster": 8, "size": 2, "keeper": 8},
        {"id": 5, "cluster": 1, "size": 3, "keeper": 1},
    ]
    assert set(result.pairs["a_in"].to_pylist()) == {folder, None}


def test_ids_of_different_types_become_text(tmp_path: Path) -> None:
    text = " ".join(f"w{i}" for i in range(30))
    pq.write_table(pa.table({"text": [text], "key": ["first"]}), tmp_path / "old.parquet")
    likewise.dedup(tmp_path / "old.parquet", id="key", out=tmp_path / "old")
    new = write(tmp_path / "new.jsonl", [(17, text)])
    removed = likewise.dedup(new, id="n", out=tmp_path / "new", against=tmp_path / "old").removed.to_pylist()
    assert (removed[0]["id"], removed[0]["kept_id"]) == ("17", "first")


def test_text_files_of_a_folder_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in "zyxa":
        (tmp_path / "in" / f"{name}.txt").write_text(" ".join(f"{name}{i}" for i in range(30)))
    given = [tmp_path / "in" / f"{name}.txt" for name in "yzax"]
    likewise.dedup(given, out=tmp_path / "old")
    again = tmp_path / "again.txt"
    again.write_text(" ".join(f"z{i}" for i in range(30)) + " more")
    removed = likewise.dedup([again], out=tmp_path / "new", against=tmp_path / "old").removed.to_pylist()
    assert [Path(row["kept_id"]).name for row in removed] == ["z.txt"]


def test_other_settings_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", list(enumerate(texts(2, 30))))
    likewise.dedup(file, out=tmp_path / "run", threshold=0.7, ignore_common=0.5)
    for name, value in [("threshold", 0.8), ("seed", 2), ("shingle", "words:4"), ("bands", 3)]:
        more = {"threshold": 0.7, name: value, **({"rows": 1} if name == "bands" else {})}
        with pytest.raises(likewise.IncompatibleError, match=f"made with {name}"):
            likewise.dedup(file, out=tmp_path / "new", against=tmp_path / "run", **more)
    with pytest.raises(likewise.MissingInput, match="no finished run"):
        likewise.dedup(file, out=tmp_path / "new", against=tmp_path / "nothing")
    likewise.dedup(file, out=tmp_path / "other", threshold=0.7, bands=7, rows=2)
    with pytest.raises(likewise.IncompatibleError, match="were made with different settings"):
        likewise.dedup(file, out=tmp_path / "new", threshold=0.7, against=[tmp_path / "run", tmp_path / "other"])


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (Tokens(counts=True), Tokens(bag=True), "counts"),
        (Tokens(), Tokens(separator=";"), "separator"),
        (Tokens(), Tokens(bag=True), "bag"),
        (Words(5), Words(5, casefold=False), "casefold"),
        (Words(5), Words(5, normalize="NFKC"), "normalize"),
        (Words(5), Words(5, bits=32), "bits"),
        (Chars(5), Chars(5, whitespace="remove"), "whitespace"),
        (Chars(5), Words(5), "shingle"),
        (StopWords("en"), StopWords("de"), "shingle"),
    ],
    ids=str,
)
def test_every_option_of_the_shingler_is_compared(tmp_path: Path, first: Shingler, second: Shingler, name: str) -> None:
    file = write(tmp_path / "a.jsonl", [(1, "the milk:2 bread;eggs"), (2, "the tea")])
    likewise.dedup(file, out=tmp_path / "first", shingle=first)
    likewise.dedup(file, out=tmp_path / "again", shingle=first, against=tmp_path / "first")
    with pytest.raises(likewise.IncompatibleError, match=f"was made with {name} .* and this run has"):
        likewise.dedup(file, out=tmp_path / "new", shingle=second, against=tmp_path / "first")
    likewise.dedup(file, out=tmp_path / "second", shingle=second)
    with pytest.raises(likewise.IncompatibleError, match=f"were made with different settings: {name} is"):
        likewise.dedup(file, out=tmp_path / "new", shingle=first, against=[tmp_path / "first", tmp_path / "second"])


def test_the_command_takes_the_settings_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.jsonl", list(enumerate(texts(3, 60))))
    run, new = str(tmp_path / "run"), str(tmp_path / "new")
    cli.main(["dedup", str(file), "--threshold", "0.6", "--shingle", "chars:7", "--out", run], standalone_mode=False)
    cli.main(["dedup", str(file), "--against", run, "--out", new], standalone_mode=False)
    stats = json.loads((tmp_path / "new" / "run.json").read_text())
    assert stats["parameters"]["threshold"] == 0.6
    assert stats["parameters"]["shingle"] == "chars:7"
    assert stats["counts"]["kept"] == 0
    assert stats["parameters"]["against"] == [run]
    with pytest.raises(likewise.IncompatibleError, match="threshold"):
        cli.main(["dedup", str(file), "--against", run, "--threshold", "0.9", "--out", new], standalone_mode=False)
    capsys.readouterr()


def test_empty_documents_are_copies_of_earlier_ones_and_counts_are_of_the_new(tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text("".join(json.dumps({"text": text}) + "\n" for text in ["", "one two", "three", "four"]))
    second.write_text("".join(json.dumps({"text": text}) + "\n" for text in ["\n", "five", "five", " "]))
    likewise.dedup(first, out=tmp_path / "one")
    result = likewise.dedup(second, out=tmp_path / "two", against=tmp_path / "one")
    assert [(row["id"], row["kept_id"], row["kind"]) for row in result.removed.to_pylist()] == [
        (0, 0, "identical"), (2, 1, "identical"), (3, 0, "identical"),
    ]  # fmt: skip
    counts = result.stats["counts"]
    assert (counts["items"], counts["different"], counts["earlier"]) == (4, 2, 4)
    again = likewise.rethreshold(tmp_path / "one", threshold=0.9)
    assert again.stats["counts"]["different"] == 4


def test_sizes_of_the_sets_of_several_collections_in_any_order() -> None:
    parts = [Sets.from_lists([list(range(n)) for n in sizes]) for sizes in ((3, 1), (4, 1, 5), (9,))]
    whole = Joined([SetItems(part) for part in parts])
    rows = np.array([5, 0, 3, 2, 4, 1, 0])
    assert whole.set_bytes(rows).tolist() == [8 * size + 64 for size in (9, 3, 1, 4, 5, 1, 3)]
