"""Write docs/benchmarks.md: every result in benchmarks/results, with machine and date as far as they are recorded.

    python tools/benchmark_page.py           writes the page
    python tools/benchmark_page.py --dates   first notes, from git, when each result was committed

Nothing on the page is typed by hand but what each script measures. What a result does not say is "not recorded".
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DATES = RESULTS / "committed.tsv"
PAGE = ROOT / "docs" / "benchmarks.md"
MOST_COLUMNS, MOST_ROWS, MOST_NESTED = 12, 100, 6
"""A wider table is unreadable, a longer one belongs in the file, and a longer mapping is no part of a row."""

UNIMPORTANT = {"phases", "stages", "checksum", "skipped"}

ABOUT = {
    "articles": ("articles.py", "pages grouped by the article they carry"),
    "certificates": ("certificates.py", "how often the 95 % interval contains the true recall"),
    "command": ("command.py", "dedup until the prompt is back, beside PyArrow rewriting the file"),
    "datatrove": ("datatrove.py", "likewise and datatrove on a million documents"),
    "exact": ("exact.py", "exact joins of random sets, beside SetSimilaritySearch and py_stringsimjoin"),
    "exact-names": ("exact.py", "exact joins of 3-grams of names"),
    "exact-retail": ("exact.py", "exact joins of shopping baskets"),
    "fingerprints": ("fingerprints.py", "real and made prints"),
    "forecast": ("forecast.py", "forecasts and what the runs took"),
    "growth": ("growth.py", "template and identical documents, up to a million"),
    "index": ("index.py", "the persistent index beside datasketch, in memory and on Redis, gaoya and rensa"),
    "index-growth": ("index.py", "the persistent index alone, up to ten million items"),
    "index-turns": ("index_turns.py", "rates of queries of the index and its peers, asked in turns"),
    "index-vectors": ("index_vectors.py", "nearest vectors in the index, beside FAISS HNSW and hnswlib"),
    "likewise": ("text.py", "500 MB of text, likewise alone, a later run"),
    "link": ("link.py", "record linkage beside splink and recordlinkage"),
    "link-constants": ("link_constants.py", "constants of record linkage, each chosen without one collection in turn"),
    "link-peers": ("link_peers.py", "record linkage, no tool configured"),
    "link-added": ("link_added.py", "records added to an earlier result of record linkage"),
    "link-robustness": ("link_robustness.py", "record linkage with columns added, values missing, few partners"),
    "link_labels": ("link_labels.py", "record linkage after 10, 30 and 100 answers"),
    "contained": (
        "contained.py",
        "parts planted among 100,000 and 1,000,000 documents, beside Jaccard",
    ),
    "decontaminate": (
        "decontaminate.py",
        "planted items of tests found in documents, beside datatrove's n-gram filter",
    ),
    "methods": ("methods.py", "exact join or hashing: what was taken, what it would have cost the other way"),
    "mirrors": ("mirrors.py", "mirror hosts, and graphs folded along their links"),
    "nearest": ("nearest.py", "nearest neighbours at several recalls"),
    "newsgroups": ("text.py", "20,000 posts"),
    "recommend": ("recommend.py", "recommendations for held-out items, similar customers, growth"),
    "remote": ("remote.py", "dedup from S3 and over HTTP, beside the same files here"),
    "scale": ("scale.py", "up to ten million documents in 4 GiB"),
    "serve": ("serve.py", "the service under load on loopback"),
    "serve-hostile": ("serve_hostile.py", "malformed requests to the service"),
    "skew": ("skew.py", "sixteen hostile corpora, up to a million documents"),
    "spark": ("spark.py", "a million documents by the local engine and on Spark"),
    "streams": ("streams.py", "a gigabyte from streams and from files, in 1 GiB of memory"),
    "units": ("units.py", "planted lines and paragraphs cut out of documents, beside datatrove"),
    "text": ("text.py", "500 MB of text beside its peers"),
    "vectors-dedup": ("vectors_dedup.py", "planted near-duplicates among vectors, beside semhash"),
    "vectors": ("vectors.py", "joins of vectors and codes beside FAISS"),
}
OPENING = """# All results

Every file of `benchmarks/results`, as the scripts of `benchmarks/` wrote it. This page is made from those files (`python tools/benchmark_page.py`);
[measurements](measurements.md) explains the main ones. Times depend on the machine and on what else it did; ratios are within one run.

"Committed" is the day on which a result entered the repository, which is a few hours or days after it was measured. Results that note neither machine nor
date say "not recorded".
"""  # noqa: E501


def find(known: Any, names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values of these keys, wherever they are outside of tables."""
    if isinstance(known, dict):
        for name, value in known.items():
            if name in names:
                yield value
            else:
                yield from find(value, names)


def machine(result: Any) -> str:
    """Say on what it was measured."""
    for one in find(result, ("machine",)):
        if isinstance(one, dict):
            cores = f"{one['cores']} cores, " if "cores" in one else ""
            python = f", Python {one['python']}" if "python" in one else ""
            return f"{cores}{one.get('architecture', one.get('processor', 'processor not recorded'))}{python}"
        cores = next((f"{count} cores, " for count in find(result, ("cores",))), "")
        return f"{cores}{one}"
    return "not recorded"


def version(result: Any) -> str:
    """Say which version of likewise was measured."""
    return next((one for one in find(result, ("likewise",)) if isinstance(one, str)), "not recorded")


def dates() -> dict[str, str]:
    """Return when each result was committed."""
    return dict(line.split("\t") for line in DATES.read_text(encoding="utf-8").splitlines())


def date(result: Any, name: str) -> str:
    """Say when it was measured, or else when it was committed."""
    measured = next((one for one in find(result, ("date",)) if isinstance(one, str)), None)
    return measured or (f"committed {dates()[name]}" if name in dates() else "not recorded")


def tables(known: Any, path: str = "") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the lists of records in a result, each with where it is."""
    if isinstance(known, list) and known and all(isinstance(row, dict) for row in known):
        yield path, known
    elif isinstance(known, dict):
        for name, value in known.items():
            yield from tables(value, f"{path}, {name}" if path else name)


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return the plain values of a record, those of a small mapping in it by two names."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name in UNIMPORTANT:
            continue
        if not isinstance(value, dict | list):
            found[name] = value
        elif isinstance(value, dict) and 0 < len(value) <= MOST_NESTED:
            found |= {f"{name} {more}": one for more, one in value.items() if not isinstance(one, dict | list)}
    return found


def written(value: Any) -> str:
    """Write a value for a table.

    >>> written(1234567), written(0.99823456), written(None), written(True), written(123.456)
    ('1,234,567', '0.9982', '', 'yes', '123.5')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return str(value).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def table(rows: list[dict[str, Any]]) -> str:
    """Write records as a table, without columns that have no values."""
    plain = [flat(row) for row in rows[:MOST_ROWS]]
    names = list(dict.fromkeys(name for row in plain for name in row))
    names = [name for name in names if any(row.get(name) is not None for row in plain)][:MOST_COLUMNS]
    right = [all(isinstance(row.get(name), int | float | None) for row in plain) for name in names]
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |"]
    lines.append("|" + "|".join("---:" if one else "---" for one in right) + "|")
    lines += ["| " + " | ".join(written(row.get(name)) for name in names) + " |" for row in plain]
    return "\n".join(lines)


def page() -> str:
    """Return the page."""
    results = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))}
    parts = [OPENING.strip()]
    lines = ["| result | script | measures | machine | likewise | date |", "|---|---|---|---|---|---|"]
    for name, result in results.items():
        script, about = ABOUT.get(name, ("", "not described"))
        facts = [f"[{name}](#{name})", f"`{script}`", about, machine(result), version(result), date(result, name)]
        lines.append("| " + " | ".join(facts) + " |")
    parts.append("\n".join(lines))
    for name, result in results.items():
        parts.append(f"## {name}")
        script, about = ABOUT.get(name, ("", "not described"))
        parts.append(
            f"{about[0].upper()}{about[1:]}: `benchmarks/{script}`, {date(result, name)}; machine: {machine(result)}."
        )
        for where, rows in tables(result):
            title = f"{where or 'table'}, {len(rows)} row{'s' * (len(rows) > 1)}"
            parts.append(f'<details markdown="1">\n<summary>{title}</summary>\n\n{table(rows)}\n\n</details>')
    return "\n\n".join(parts) + "\n"


def note_dates() -> None:
    """Ask git when each result was last committed."""
    lines = []
    for path in sorted(RESULTS.glob("*.json")):
        command = ["git", "log", "-1", "--format=%as", "--", str(path)]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        if found:
            lines.append(f"{path.stem}\t{found}\n")
    DATES.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Write the page."""
    if sys.argv[1:] == ["--dates"]:
        note_dates()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
