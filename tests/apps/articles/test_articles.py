"""Pages grouped by article: against the naive truth, and as a user types it."""

import itertools
import json
import random
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import likewise
from likewise import StopWords
from likewise.apps.articles import stories
from likewise.measures import jaccard

STOPS = ["the", "of", "and", "to", "in", "that", "is", "for", "was", "with"]
NAMES = [a + b + c for a in "bdfgkl" for b in "aeiou" for c in ("rt", "nd", "sk", "mp", "lt")]


def text(rng, count, share):
    return " ".join(rng.choice(STOPS) if rng.random() < share else rng.choice(NAMES) for _ in range(count))


def made(seed, news=6, sites=4):
    """Articles on two sites or more each, the last paragraphs cut from some; (page, story) for each."""
    rng = random.Random(seed)
    furniture = [text(rng, 80, 0.1) for _ in range(sites)]
    pages = []
    for story in range(news):
        article = text(rng, 160, 0.45)
        for site in rng.sample(range(sites), rng.randint(2, sites)):
            words = article.split()[: rng.choice([160, 160, 120])]
            head = f"<title>Story {story}</title><nav>{furniture[site]}</nav>"
            pages.append((f"{head}<p>{' '.join(words)}</p><i>{text(rng, 9, 0)}</i>", story))
    rng.shuffle(pages)
    return pages


@pytest.fixture
def parser():
    return pytest.importorskip("selectolax.lexbor", reason="pip install 'likewise[html]'")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_article_is_one_story(parser, seed):
    pages = made(seed)
    found = stories([page for page, _ in pages], html=True)
    groups = {}
    for row in found.stories.to_pylist():
        groups.setdefault(row["story"], set()).add(row["id"])
        assert row["title"] == f"Story {pages[row['id']][1]}"
        assert row["language"] == "en"
    truth = {}
    for number, (_, story) in enumerate(pages):
        truth.setdefault(story, set()).add(number)
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, truth.values()))


@pytest.mark.parametrize("method", ["lsh", "exact"])
def test_pairs_sizes_and_keepers_are_what_the_definition_says(parser, method):
    from likewise.io.read.pages import page_text

    pages = [page for page, _ in made(4)]
    found = stories(pages, html=True, threshold=0.4, recall=0.999999, method=method, shingle="stopwords:en")
    sets = [set(StopWords("en").shingles(page_text(page))) for page in pages]
    truth = {
        (a, b): jaccard(sets[a], sets[b])
        for a, b in itertools.combinations(range(len(pages)), 2)
        if jaccard(sets[a], sets[b]) >= 0.4
    }
    assert {(row["id_a"], row["id_b"]): row["similarity"] for row in found.pairs.to_pylist()} == truth
    rows = found.stories.to_pylist()
    lengths = [len(page_text(page)) for page in pages]
    members = {}
    for row in rows:
        members.setdefault(row["story"], []).append(row["id"])
        if row["keeper"] == row["id"]:
            assert row["similarity"] == 1.0
        else:
            assert row["similarity"] == truth[min(row["id"], row["keeper"]), max(row["id"], row["keeper"])]
        assert row["language"] is None, "it was given, not guessed"
    for row in rows:
        assert row["size"] == len(members[row["story"]])
        assert lengths[row["story"]] == max(lengths[member] for member in members[row["story"]])
    firsts = [min(group) for group in members.values()]
    assert firsts == sorted(firsts)
    assert found.stats["counts"]["shared_stories"] == sum(len(group) > 1 for group in members.values())


def test_empty_pages_are_no_story(parser):
    found = stories(["<p></p>", "", "<title></title>", "Buy Sudzo", "buy <b>sudzo</b>"], html=True)
    assert [(row["id"], row["size"]) for row in found.stories.to_pylist()] == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)]
    assert found.pairs.to_pylist() == [{"id_a": 3, "id_b": 4, "similarity": 1.0}]
    assert (found.stats["counts"]["empty"], found.stats["counts"]["without_stop_words"]) == (3, 2)
    assert stories([]).stories.num_rows == 0


def test_threads_batches_and_memory_do_not_change_the_answer(parser):
    pages = [page for page, _ in made(5, 20, 8)]
    first = stories(pages, html=True, threads=1)
    for options in ({"threads": 2}, {"batch_rows": 3}, {"memory": "64MiB"}):
        other = stories(pages, html=True, **options)
        assert other.stories.equals(first.stories)
        assert other.pairs.equals(first.pairs)


def test_wrong_parameters():
    with pytest.raises(likewise.ParameterError, match="stopwords:LANGUAGE"):
        stories(["a"], shingle="tokens")
    with pytest.raises(likewise.ParameterError, match="keep"):
        stories(["a"], keep="best")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pages").mkdir()
    for number, (page, story) in enumerate(made(6, 3, 3)):
        (tmp_path / f"pages/{number}-{story}.html").write_text(page, encoding="utf-8")
    return tmp_path


def test_the_command(parser, typed, folder):
    done = typed("stories", "pages", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "3 stories on two pages or more" in done.stdout
    assert "pages: Story " in done.stdout
    assert done.stdout.splitlines()[-1].endswith("→ out")
    table = pq.read_table(folder / "out/stories.parquet")
    assert table.column_names == ["id", "story", "size", "keeper", "similarity", "title", "language"]
    for row in table.to_pylist():
        assert row["id"].split("-")[1] == row["story"].split("-")[1]
    run = json.loads((folder / "out/run.json").read_text())
    assert (run["command"], run["finished"], run["parameters"]["html"]) == ("stories", True, True)
    before = (folder / "out/stories.parquet").read_bytes()
    assert typed("stories", "pages", "--out", "out", "--json").returncode == 0
    assert (folder / "out/stories.parquet").read_bytes() == before


def test_a_column_of_html(parser, typed, folder):
    pages = [json.dumps({"url": f"u{i}", "page": page}) for i, (page, _) in enumerate(made(7, 3, 3))]
    (folder / "pages.jsonl").write_text("\n".join(pages), encoding="utf-8")
    done = typed("stories", "pages.jsonl", "--html", "--text", "page", "--id", "url", "--out", "out", "--json")
    stats = json.loads(done.stdout)
    assert stats["counts"]["shared_stories"] == 3
    first = pq.read_table(folder / "out/stories.parquet").to_pylist()[0]
    assert (first["id"], first["title"][:6]) == ("u0", "Story ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["none", "--out", "out"], 1, "none: there is no such file or folder"),
        (["pages", "--out", "pages"], 1, "the folder is not empty"),
        (["pages", "--shingle", "stopwords:xx", "--out", "out"], 2, "no stop words for 'xx'"),
        (["pages", "--shingle", "stopwords:empty.txt", "--out", "out"], 1, "empty.txt: there are no stop words"),
        (["pages", "--threshold", "1.4", "--out", "out"], 2, "threshold"),
        (["pages", "--out", "dedup"], 1, "the result of likewise dedup"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(parser, typed, folder, words, code, message):
    (folder / "empty.txt").write_text("")
    (folder / "dedup").mkdir()
    (folder / "dedup/run.json").write_text('{"likewise": "1", "command": "dedup"}')
    done = typed("stories", *words)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (folder / "out").exists()


def test_the_missing_extra_is_named(typed, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    done = typed("stories", "pages", "--out", "out")
    assert (done.returncode, done.stderr) == (1, "likewise: HTML needs a parser: pip install 'likewise[html]'\n")


def test_help_loads_nothing_heavy():
    code = "import likewise.cli.articles, sys; print([m for m in ('numpy', 'numba', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
