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
from likewise.apps.articles import articles
from likewise.measures import jaccard

STOPS = ["the", "of", "and", "to", "in", "that", "is", "for", "was", "with"]
NAMES = [a + b + c for a in "bdfgkl" for b in "aeiou" for c in ("rt", "nd", "sk", "mp", "lt")]


def text(rng, count, share):
    return " ".join(rng.choice(STOPS) if rng.random() < share else rng.choice(NAMES) for _ in range(count))


def made(seed, articles=6, sites=4):
    """Articles on two sites or more each, the last paragraphs cut from some; (page, number of the article) for each."""
    rng = random.Random(seed)
    furniture = [text(rng, 80, 0.1) for _ in range(sites)]
    pages = []
    for number in range(articles):
        article = text(rng, 160, 0.45)
        for site in rng.sample(range(sites), rng.randint(2, sites)):
            words = article.split()[: rng.choice([160, 160, 120])]
            head = f"<title>Story {number}</title><nav>{furniture[site]}</nav>"
            pages.append((f"{head}<p>{' '.join(words)}</p><i>{text(rng, 9, 0)}</i>", number))
    rng.shuffle(pages)
    return pages


@pytest.fixture
def parser():
    return pytest.importorskip("selectolax.lexbor", reason="pip install 'likewise[html]'")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_article_is_one_cluster(parser, seed):
    pages = made(seed)
    found = articles([page for page, _ in pages], html=True)
    groups = {}
    for row in found.articles.to_pylist():
        groups.setdefault(row["cluster"], set()).add(row["id"])
        assert row["title"] == f"Story {pages[row['id']][1]}"
        assert row["language"] == "en"
    truth = {}
    for number, (_, article) in enumerate(pages):
        truth.setdefault(article, set()).add(number)
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, truth.values()))


@pytest.mark.parametrize("method", ["lsh", "exact"])
def test_pairs_sizes_and_keepers_are_what_the_definition_says(parser, method):
    from likewise.io.read.pages import page_text

    pages = [page for page, _ in made(4)]
    finely = {"recall": 0.999999} if method == "lsh" else {}
    found = articles(pages, html=True, threshold=0.4, method=method, shingle="stopwords:en", **finely)
    sets = [set(StopWords("en").shingles(page_text(page))) for page in pages]
    truth = {
        (a, b): jaccard(sets[a], sets[b])
        for a, b in itertools.combinations(range(len(pages)), 2)
        if jaccard(sets[a], sets[b]) >= 0.4
    }
    assert {(row["id_a"], row["id_b"]): row["similarity"] for row in found.pairs.to_pylist()} == truth
    rows = found.articles.to_pylist()
    lengths = [len(page_text(page)) for page in pages]
    members = {}
    for row in rows:
        members.setdefault(row["cluster"], []).append(row["id"])
        if row["keeper"] == row["id"]:
            assert row["similarity"] == 1.0
        else:
            assert row["similarity"] == truth[min(row["id"], row["keeper"]), max(row["id"], row["keeper"])]
        assert row["language"] is None, "it was given, not guessed"
    for row in rows:
        assert row["size"] == len(members[row["cluster"]])
        assert row["cluster"] == row["keeper"]
    keeper_of = {row["id"]: row["keeper"] for row in rows}
    for group in members.values():
        longest = max(group, key=lambda page: (lengths[page], -page))
        assert keeper_of[longest] == longest
    firsts = [min(group) for group in members.values()]
    assert firsts == sorted(firsts)
    assert found.stats["counts"]["clusters"] == sum(len(group) > 1 for group in members.values())


@pytest.mark.parametrize("keep", ["first", "longest"])
def test_there_are_no_chains(keep):
    """a is like b and b like c, but a is not like c: c is with b only if b is kept."""
    words = [f"the w{i} x{i}" for i in range(30)]
    pages = [" ".join(words[:20]), " ".join(words[5:25]), " ".join(words[10:])]
    pages[1] += " the" * 5 * (keep == "longest")
    found = articles(pages, threshold=0.45, keep=keep, shingle="words:3", method="exact")
    assert {(row["id_a"], row["id_b"]) for row in found.pairs.to_pylist()} == {(0, 1), (1, 2)}
    rows = {row["id"]: (row["cluster"], row["size"]) for row in found.articles.to_pylist()}
    assert rows == ({0: (0, 2), 1: (0, 2), 2: (2, 1)} if keep == "first" else {0: (1, 3), 1: (1, 3), 2: (1, 3)})


def test_empty_pages_are_alone(parser):
    found = articles(["<p></p>", "", "<title></title>", "Buy Sudzo", "buy <b>sudzo</b>"], html=True)
    assert [(row["id"], row["size"]) for row in found.articles.to_pylist()] == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)]
    assert found.pairs.to_pylist() == [{"id_a": 3, "id_b": 4, "similarity": 1.0}]
    assert (found.stats["counts"]["empty"], found.stats["counts"]["without_stop_words"]) == (3, 2)
    assert articles([]).articles.num_rows == 0


def test_threads_batches_and_memory_do_not_change_the_answer(parser):
    pages = [page for page, _ in made(5, 20, 8)]
    first = articles(pages, html=True, threads=1)
    for options in ({"threads": 2}, {"batch_rows": 3}, {"memory": "64MiB"}):
        other = articles(pages, html=True, **options)
        assert other.articles.equals(first.articles)
        assert other.pairs.equals(first.pairs)


def test_the_result_is_shown_and_saved(tmp_path):
    found = articles(
        ["it is the bridge of the town that was closed", "it is the bridge of the town that was closed", "a"]
    )
    assert repr(found) == "<Articles: 3 pages with 2 articles, 1 of them on several pages>"
    assert "<caption>articles</caption>" in found._repr_html_()
    assert found.save(tmp_path / "out") == tmp_path / "out"
    assert pq.read_table(tmp_path / "out/articles.parquet").equals(found.articles)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "articles.parquet", "pairs.parquet", "run.json",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["threshold", "recall", "seed", "method", "threads", "memory", "on_error", "html"])
def test_errors_name_the_function_that_was_called(name):
    with pytest.raises(likewise.ParameterError, match=f"The '{name}' parameter of articles must be"):
        articles(["a"], **{name: -1})


def test_wrong_parameters():
    with pytest.raises(likewise.ParameterError, match="stopwords:LANGUAGE"):
        articles(["a"], shingle="tokens")
    with pytest.raises(likewise.ParameterError, match="keep"):
        articles(["a"], keep="best")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pages").mkdir()
    for number, (page, article) in enumerate(made(6, 3, 3)):
        (tmp_path / f"pages/{number}-{article}.html").write_text(page, encoding="utf-8")
    return tmp_path


def test_the_command(parser, typed, folder):
    done = typed("articles", "pages", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "3 articles on two or more pages" in done.stdout
    assert "pages: Story " in done.stdout
    assert done.stdout.splitlines()[-1].endswith("→ out")
    table = pq.read_table(folder / "out/articles.parquet")
    assert table.column_names == ["id", "cluster", "size", "keeper", "similarity", "title", "language"]
    for row in table.to_pylist():
        assert row["id"].split("-")[1] == row["cluster"].split("-")[1]
    run = json.loads((folder / "out/run.json").read_text())
    assert (run["command"], run["parameters"]["html"]) == ("articles", True)
    before = (folder / "out/articles.parquet").read_bytes()
    assert typed("articles", "pages", "--out", "out", "--json").returncode == 0
    assert (folder / "out/articles.parquet").read_bytes() == before


def test_a_column_of_html(parser, typed, folder):
    pages = [json.dumps({"url": f"u{i}", "page": page}) for i, (page, _) in enumerate(made(7, 3, 3))]
    (folder / "pages.jsonl").write_text("\n".join(pages), encoding="utf-8")
    done = typed("articles", "pages.jsonl", "--html", "--text", "page", "--id", "url", "--out", "out", "--json")
    stats = json.loads(done.stdout)
    assert stats["counts"]["clusters"] == 3
    first = pq.read_table(folder / "out/articles.parquet").to_pylist()[0]
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
    done = typed("articles", *words)
    assert done.returncode == code
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (folder / "out").exists()


def test_the_missing_extra_is_named(typed, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "selectolax", None)
    done = typed("articles", "pages", "--out", "out")
    assert (done.returncode, done.stderr) == (
        1,
        "likewise: HTML needs selectolax and webencodings: pip install 'likewise[html]'\n",
    )


def test_help_loads_nothing_heavy():
    code = "import likewise.cli.articles, sys; print([m for m in ('numpy', 'numba', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_text_beside_pages_stays_text(parser, folder):
    text = "if a <b and c> d then the result of it is not lost to the reader of it, and that is what we want to see"
    (folder / "mixed").mkdir()
    (folder / "mixed/a.html").write_text("<title>T</title><p>The page of the site is here for all of us to see.")
    for name in ("b.txt", "c.txt"):
        (folder / "mixed" / name).write_text(text)
    found = articles(folder / "mixed", shingle="words:2").articles.to_pylist()
    assert [row["title"] for row in found] == ["T", None, None]
    alone = articles([folder / "mixed/b.txt", folder / "mixed/c.txt"], shingle="words:2")
    together = articles(folder / "mixed", shingle="words:2")
    assert together.stats["counts"]["bytes"] > alone.stats["counts"]["bytes"] == 2 * len(text)
    assert together.stats["parameters"]["html"] is None
