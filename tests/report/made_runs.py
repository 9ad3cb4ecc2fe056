"""Runs for the tests of the report: small ones of every command, and a large one that is made, not run."""

import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = [f"word{i}" for i in range(400)]
SCRIPT = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2"><svg onload="window.hacked = 3">'
HOSTILE = [
    SCRIPT,
    "</script></style></title><!-- ]]>",
    "{{ 7 * 7 }} {% raw %}",
    "\u202eevil\u202c שלום עולם \u2066isolated\u2069",
    "".join(map(chr, range(1, 32))) + "\x7f\x85\u200f\ufeff\u2028 \U0001f600",
    "& &lt; &amp; 'quoted' \"doubly\"",
]
"""Beginnings of documents that would like to be more than text."""


def texts(count, seed=1):
    """Texts of which some are copies, some nearly so, and the others random."""
    chance = random.Random(seed)
    made = [" ".join(chance.choices(WORDS, k=60)) for _ in range(count)]
    for place in range(count // 5):
        words = made[place].split()
        if place % 3:
            words[chance.randrange(60)] = "changed"
        made.append(" ".join(words))
    return made


def documents(folder, count=100, name="docs.parquet"):
    """Write documents with an id and a source; the copies are all of source b."""
    made = texts(count)
    sources = ["a"] * count + ["b"] * (len(made) - count)
    path = folder / name
    pq.write_table(pa.table({"id": [f"d{i}" for i in range(len(made))], "source": sources, "text": made}), path)
    return path, made, sources


def large_run(folder, clusters=6_000, length=6_000):
    """Write the folder of a run of ten million that was never made: large tables, long texts, much to escape."""
    folder.mkdir()
    source = folder / "large.parquet"
    sizes = np.concatenate([np.full(clusters, 2), [5_000, 900, 70]])
    names = np.repeat(np.arange(len(sizes)), sizes)
    ids = np.arange(len(names))
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    keepers = first[names]
    some = [("&<" * 30 + f" {kind} ") * (length // 63) for kind in range(7)]
    pq.write_table(pa.table({"text": pa.array(some).take(pa.array(ids % 7))}), source, row_group_size=1 << 10)
    run = folder / "run"
    run.mkdir()
    size = sizes[names]
    table = pa.table({"id": ids, "cluster": first[names], "size": size, "keeper": keepers})
    pq.write_table(table, run / "clusters.parquet")
    gone = ids != keepers
    similarity = 0.8 + 0.2 * np.random.default_rng(1).random(int(gone.sum()))
    removed = {"id": ids[gone], "kept_id": keepers[gone], "similarity": similarity}
    pq.write_table(pa.table({**removed, "kind": ["near"] * len(similarity)}), run / "removed.parquet")
    pairs = {"id_a": keepers[gone], "id_b": ids[gone], "similarity": similarity}
    pq.write_table(pa.table(pairs), run / "pairs.parquet")
    stats = {
        "likewise": "0", "schema": 1, "command": "dedup",
        "parameters": {"threshold": 0.8, "recall": 0.99, "text": "text", "id": None, "shingle": "words:5"},
        "inputs": [{"file": str(source), "format": "parquet", "bytes": source.stat().st_size}],
        "counts": {"items": len(ids), "bytes": 1, "candidates": 5, "pairs": len(similarity), "identical": 0,
                   "near": int(gone.sum()), "removed": int(gone.sum()), "kept": int((~gone).sum()),
                   "clusters": len(sizes), "set_aside": 0},
        "method": {"asked": "auto", "taken": "lsh", "why": ""},
        "certificate": {"recall": 0.5, "low": 0.3, "high": 0.7, "documents": 9, "true_pairs": 4, "found_pairs": 2},
        "details": {"banding": {"bands": 20, "rows": 5, "slots": 100}, "predicted_recall": 0.99,
                    "largest_cluster": 5_000},
        "notes": ["a note " * 20], "set_aside": [], "seconds": {"read": 1.0}, "total_seconds": 2.0,
        "peak_memory_bytes": None,
    }  # fmt: skip
    (run / "run.json").write_text(json.dumps(stats))
    return run
