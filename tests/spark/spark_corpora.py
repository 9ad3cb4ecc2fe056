"""Small corpora that a search finds hard: copies, near-copies, templates, several scripts, empty documents."""

import random

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = [f"w{i}" for i in range(3000)]
ALPHABETS = ["abcdefghij", "абвгдежзик", "αβγδεζηθικ", "日本語文章検索比較類似", "ابتثجحخدذر"]


def documents(count, seed=1, words=WORDS):
    """Documents of which a third repeat an earlier one, wholly or nearly, and some are blank."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        chance = draw.random()
        if found and chance < 0.15:
            found.append(draw.choice(found))
        elif found and chance < 0.45:
            changed = draw.choice(found).split()
            for _ in range(draw.randint(1, 4) if changed else 0):
                changed[draw.randrange(len(changed))] = draw.choice(words)
            found.append(("  " if chance < 0.17 else " ").join(changed))
        elif chance < 0.47:
            found.append(" " * draw.randint(0, 3))
        else:
            found.append(" ".join(draw.choices(words, k=draw.randint(20, 120))))
    return found


def multilingual(count, seed=2):
    """Documents whose words are of several scripts."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(letters, k=4)) for letters in ALPHABETS for _ in range(400)]
    return documents(count, seed, words)


def templates(count, seed=3, filled=3):
    """Documents of three templates, each with a few words of its own: buckets of hundreds."""
    draw = random.Random(seed)
    frames = [draw.choices(WORDS, k=60) for _ in range(3)]
    found = []
    for number in range(count):
        words = list(frames[number % 3])
        for _ in range(draw.randint(0, filled)):
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        found.append(" ".join(words))
    return found


def table(texts, seed=5):
    """A table with ids that are no row numbers, and scores with ties."""
    draw = random.Random(seed)
    ids = [f"doc-{number:05d}" for number in range(len(texts))]
    draw.shuffle(ids)
    return pa.table({"name": ids, "text": texts, "score": [draw.randrange(5) for _ in texts]})


def tables_of(found):
    """The files of a Spark table in the order of their names, read without Spark; none if they are elsewhere."""
    urls = sorted(found.inputFiles())
    paths = [url.removeprefix("file://") for url in urls]
    return [pq.read_table(path) for path in paths] if all(path.startswith("/") for path in paths) else []


def settled(found):
    """The rows of a table, Arrow or Spark, in the order of their values."""
    if hasattr(found, "inputFiles"):
        files = tables_of(found)
        found = pa.concat_tables(files) if files else found.toArrow()
    return found.sort_by([(name, "ascending") for name in found.column_names]).to_pylist()


def in_order(found):
    """The rows of a table as they are: of Arrow's in memory, of Spark's in its files, by their names."""
    if not hasattr(found, "inputFiles"):
        return found.to_pylist()
    return [row for table in tables_of(found) for row in table.to_pylist()]


def posts(count, seed=4):
    """Messages of discussion groups: words by Zipf's law, headers, quotations, signatures, cross-posts, one FAQ."""
    draw = random.Random(seed)
    weights = [1 / (rank + 3) for rank in range(len(WORDS))]
    signatures = [" ".join(draw.choices(WORDS, k=draw.randint(5, 25))) for _ in range(40)]
    asked = draw.choices(WORDS, weights, k=300)
    found = []
    for number in range(count):
        chance = draw.random()
        if found and chance < 0.08:
            found.append(draw.choice(found))
            continue
        if chance < 0.12:
            changed = list(asked)
            changed[draw.randrange(len(changed))] = f"edition{number}"
            found.append(" ".join(changed))
            continue
        lines = [f"Subject: {' '.join(draw.choices(WORDS, weights, k=4))}", f"Lines: {draw.randrange(90)}", ""]
        if found and chance < 0.5:
            lines += [f"> {line}" for line in draw.choice(found).splitlines()[-3:]]
        for _ in range(draw.choice([1, 1, 2, 3, 8])):
            lines.append(" ".join(draw.choices(WORDS, weights, k=draw.randint(3, 60))))
        lines += ["--", draw.choice(signatures)] if chance < 0.9 else []
        found.append("\n".join(lines))
    return found


def skewed(count, seed=6):
    """Templates, one document that is a third of all, and a few others."""
    found = templates(count // 3, seed) + [templates(1, seed)[0]] * (count // 3)
    found += documents(count - len(found), seed)
    random.Random(seed).shuffle(found)
    return found


def cut(rows, parts, seed):
    """A table in parts of unequal sizes, one of them empty, in any order."""
    draw = random.Random(seed)
    cuts = sorted(draw.choices(range(rows.num_rows + 1), k=parts - 1))
    found = [rows.slice(start, stop - start) for start, stop in zip([0, *cuts], [*cuts, rows.num_rows], strict=True)]
    found += [rows.slice(0, 0)] * (parts > 1)
    draw.shuffle(found)
    return found
