"""`likewise warmup`."""

from __future__ import annotations

import time

import click


@click.command()
def warmup() -> None:
    """Compile all kernels now and keep the machine code, so that the first run is as quick as the others."""
    from likewise.kernels import cache_directory

    begun = time.perf_counter()
    compile_all()
    where = cache_directory()
    kept = f"kept in {where}" if where else "not kept: no folder for a cache is writable (set NUMBA_CACHE_DIR)"
    click.echo(f"compiled in {time.perf_counter() - begun:.1f} s, {kept}")


def link_some() -> None:
    """Link a few records, and block them as many are blocked."""
    from likewise.apps.link import link
    from likewise.apps.link.blocking import block
    from likewise.apps.link.records import records_of

    names = [f"{one}{other} Lee" for one in ("Ann", "Bo", "Zoë") for other in "abcdef"]
    dates = [f"19{50 + i}-01-02" for i in range(len(names))]
    few = {"name": names, "first": [name[:3] for name in names], "born": dates, "phone": dates}
    link(few, few)
    link({name: [*column, *column] for name, column in few.items()})
    block(records_of(few, None, None, None).fields, 0, most=0)


def compile_all() -> None:
    """Run every kernel once on a few small items."""
    import numpy as np
    import pyarrow as pa

    import likewise
    from likewise.apps.fingerprints import fingerprints
    from likewise.apps.mirrors import mirrors
    from likewise.apps.passages import passages
    from likewise.apps.recommend import recommend
    from likewise.measures import batch

    words = [f"word{i}" for i in range(60)]
    texts = [" ".join(words), " ".join(words[1:]), " ".join(words) + " naïve 中文", "", ""]
    likewise.dedup(texts, keep="longest", method="lsh", ignore_common=0.9)
    likewise.dedup(texts, shingle=likewise.Chars(4, bag=True), sketch="classic", method="lsh")
    likewise.dedup(texts, shingle="stopwords:auto", method="lsh")
    likewise.pairs(texts, texts[:2], k=1, method="lsh")
    sets = likewise.Sets.from_lists([words, words[1:], [1, 2], []])
    likewise.dedup(sets, method="lsh")
    alike = likewise.Sets.from_lists([[*range(90), *range(100 + 8 * i, 108 + 8 * i)] for i in range(5000)])
    likewise.dedup(alike, method="lsh")  # so many that are alike are compared as a crowd
    likewise.dedup(texts, method="exact")
    likewise.pairs(["a b c", "a b"], shingle="tokens", threshold=0.5, method="exact")
    for index in ("auto", "prefix"):
        likewise.exact.pairs([words, words[2:], words], 0.5, index, other=[words])
    likewise.exact.Index([words], 0.5).query_and_add([words[1:]])
    likewise.MinHash().signatures(likewise.Sets.from_lists([words, words], bag=True), 8)
    for kind in (np.float32, np.float64):
        table = np.arange(24, dtype=kind).reshape(8, 3) + 1
        for measure in ("angle", "l2", "l1"):
            likewise.pairs(table, measure=measure, within=1, method="lsh")
            likewise.nearest(table, 1, measure=measure)
    for method in ("lsh", "exact"):
        likewise.pairs(np.arange(8, dtype=np.uint64), measure="hamming", within=1, method=method)
    batch.jaccard(sets, sets)
    passages(texts, texts)
    link_some()
    spots = {"x": [0, 30, 60, 5], "y": [0, 40, 10, 70], "angle": [10, 100, 200, 300]}
    fingerprints({"print": ["a"] * 4 + ["b"] * 4, **{name: values * 2 for name, values in spots.items()}})
    urls = [f"http://{host}/docs/{word}.html" for host in ("a.org/x", "b.net") for word in words[:9]]
    ends = pa.table({"source": urls, "target": urls[::-1], "url": urls, "text": urls})
    mirrors(urls, links=ends, pages=ends, least_links=1, similar_links=0.5)
    for k in (None, 1):
        recommend({"a": words, "b": words[1:], "c": words[:3]}, k=k)
