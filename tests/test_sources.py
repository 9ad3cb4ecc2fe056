"""docs/sources.md leaves nothing out: every item of the sources has a row, and what the rows name exists.

The sources themselves are not in the repository; what they contain is listed here, by number or by title.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import likewise

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
WORKED = (ROOT / "docs" / "worked-examples.md").read_text(encoding="utf-8")

SUBSECTIONS = {1: 4, 2: 5, 3: 6, 4: 4, 5: 7, 6: 4, 7: 6, 8: 7, 9: 7, 10: 0, 11: 0}
EXERCISES = {1: 3, 2: 3, 3: 7, 4: 4, 5: 10, 6: 4, 7: 5, 8: 5, 9: 6}
EXAMPLES, FIGURES = 29, 15
BOXES = ["Non-Euclidean Spaces", "When Are Record Matches Good Enough?", "A Better Ordering for Symbols"]
BOTH = """
General Problem|Similarity and Distance|Documents and Set Similarity|Jaccard similarity/distance
Steps for Finding Similar Documents|Shingling|Shingling in Practice|Representing Sets of Documents as a Matrix
Why Min-Hashing?|Min-Hashing for Jaccard similarity|Min-Hashing|Min-Hash Property|Min-Hash in Practice|Objectives
LSH for Min-Hashing|Tuning b and r|S-curve for LSH|Example|Using the S-curve|Putting it All Together|To Go Further
"""
SLIDES = {
    "000": BOTH,
    "001": BOTH + "Running example|Implementation|Idea behind LSH for Min-Hashing\n"
    "Outline of the steps for similar items|Acknowledgments|References",
    "003": """
New thread: High dim. data|The Big Picture|LSH: The Bigfoot of CS|Some Applications|Similar Documents
Three Essential Techniques for Similar Documents|Scene Completion Problem|A Common Metaphor
Problem for Today's Lecture|Relation to Previous Lecture|Finding Similar Items|Distance Measures
Task: Finding Similar Documents|3 Essential Steps for Similar Docs|Shingling|Documents as High-Dim Data|Define: Shingles
Shingles and Similarity|Compression Option|Compressing Shingles|Similarity Metric for Shingles|Working Assumption
Motivation for Minhash/LSH|MinHashing|Encoding Sets as Bit Vectors|From Sets to Boolean Matrices
Example: Column Similarity|Outline: Finding Similar Columns|Hashing Columns (Signatures)|Min-Hashing|Min-Hashing Example
Example: Minhashing|A Subtle Point|The Min-Hash Property|Four Types of Rows|Similarity for Signatures
Min-Hash Signatures
Implementation Trick|Implementation of Minhashing|Implementation – (2)|Implementation – (3)|Example
Locality Sensitive Hashing|LSH: First Cut|Candidates from Min-Hash|LSH for Min-Hash|Partition M into b Bands
Partition M into Bands|Hashing Bands|Simplifying Assumption|Example of Bands|C1, C2 are 80% Similar
C1, C2 are 30% Similar|LSH Involves a Tradeoff|Analysis of LSH – What We Want|What 1 Band of 1 Row Gives You
b bands, r rows/band|What b Bands of r Rows Gives You|Example: b = 20; r = 5|Picking r and b: The S-curve|LSH Summary
Summary: 3 Steps
""",
    "004": """
Similarity search|Hash functions (1)|Hash functions (2)|Perfect hashing (1)|Perfect hashing (2)
Locality sensitive hash functions|“Find similar”|Min-hash|Min-hash analysis (1)|Min-hash analysis (2)
Sample many permutations|First-cut pseudocode|Avoiding random permutations|Min-wise independent hash functions
Lower bounding ∣F∣|Upper bounding ∣F∣|Approximate min-wise independent families|Min hash summary|Shingling
Detecting locally similar Web subgraphs|Graph contraction|Shingling URLs (1)|Shingling URLs (2)|Cosine similarity (1)
Cosine similarity (2)|Random vector on unit sphere|Multivariate Gaussian|Generating random Gaussians (1)
Generating random Gaussians (2)|Generating random Gaussians (3)|LSH for cosine: implementation details
Hamming distance and bit sampling|LSH and range queries for Hamming distance|Data structure and preprocessing|Probe step
Analysis: Few far points collide (1)|Analysis: Few far points collide (2)|Analysis: Near points tend to collide
From Hamming to L1 distance|LSH for L2 distance|Analysis|LSH summary
""",
}


def required() -> set[str]:
    """All that must have a row."""
    items = {f"§3.{section}" for section in SUBSECTIONS}
    items |= {f"§3.{section}.{part}" for section, parts in SUBSECTIONS.items() for part in range(1, parts + 1)}
    items |= {f"Exercise 3.{section}.{part}" for section, parts in EXERCISES.items() for part in range(1, parts + 1)}
    items |= {f"Example 3.{number}" for number in range(1, EXAMPLES + 1)}
    items |= {f"Figure 3.{number}" for number in range(1, FIGURES + 1)}
    items |= {f"Box: {title}" for title in BOXES}
    for lecture, titles in SLIDES.items():
        items |= {f"{lecture}: {title}" for title in re.split(r"\||\n", titles) if title.strip()}
    return items


def rows(page: str) -> list[list[str]]:
    """The cells of all rows of the tables but those on errors, without the lines that begin a table."""
    tables = page.partition("## Where the sources err")[0]
    found = [line.strip().strip("|").split(" | ") for line in tables.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in found if row[-1].strip() != "test"]


def items_of(cell: str) -> list[str]:
    """ "000, 001: Title" stands for a slide of each."""
    lectures, colon, title = cell.partition(": ")
    if colon and all(one.isdecimal() for one in lectures.split(", ")):
        return [f"{one}: {title}" for one in lectures.split(", ")]
    return [cell]


ROWS = rows(PAGE)
CALLS = sorted({call for row in ROWS for call in re.findall(r"`([^`]+)`", row[2])})
LINES = [line for line in PAGE.splitlines() if line.startswith("| ")]
TESTS = sorted({test for line in LINES for test in re.findall(r"`([^` ]+\.py(?:::\w+)?)`", line)})


def named(dotted: str) -> Any:
    """What a dotted name below likewise stands for."""
    found: Any = likewise
    path = "likewise"
    for part in dotted.split("."):
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(path)
    return found


def test_every_item_of_the_sources_has_one_row() -> None:
    there = [item for row in ROWS for item in items_of(row[0])]
    assert sorted(set(there)) == sorted(required())
    assert len(there) == len(set(there))


def test_there_are_as_many_as_in_the_sources() -> None:
    """47 exercises, 29 examples, 15 figures, 61 sections."""
    kinds = [item.split(" ")[0].rstrip("0123456789.") for item in required()]
    counts = [kinds.count(kind) for kind in ("Exercise", "Example", "Figure", "§")]
    assert counts == [47, 29, 15, 61]


def test_a_row_has_a_call_or_a_reason() -> None:
    for item, about, calls, *tests in ROWS:
        if calls.startswith("— "):
            assert len(calls) > 10, item
            assert not tests or not tests[0], item
        else:
            assert about, item
            assert re.fullmatch(r"(`[\w.]+(\(\w+=\))?` ?)+", calls), item


def test_every_call_exists() -> None:
    assert len(CALLS) > 100
    for call in CALLS:
        name, _, parameter = call.partition("(")
        found = named(name)
        assert callable(found) or isinstance(found, property) or hasattr(found, "__get__"), call
        if parameter:
            assert parameter.removesuffix("=)") in inspect.signature(found).parameters, call


def test_every_test_exists() -> None:
    assert len(TESTS) > 100
    for test in TESTS:
        path, _, name = test.partition("::")
        text = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert f"def {name}(" in text if name else "def test_" in text, test


def answered() -> set[str]:
    """The examples and exercises that the page of worked examples names in bold type just before a block of code.

    Ranges such as "Examples 3.12 to 3.16" count as all they span; sections and figures have numbers of their own.
    """
    found: set[str] = set()
    named_last: set[str] = set()
    for number, part in enumerate(WORKED.split("```")):
        if number % 2:
            found |= named_last
            continue
        for paragraph in part.split("\n\n"):
            bold = " ".join(re.findall(r"\*\*([^*]+)\*\*", paragraph))
            bold = re.sub(r"(§+|Figures? )3[\d.]*\d(( and|,| to) 3[\d.]*\d)*", "", bold)
            items = set(re.findall(r"3\.\d+(?:\.\d+)?", bold))
            for first, last in re.findall(r"(3\.[\d.]*\d) to (3\.[\d.]*\d)", bold):
                stem, begin = first.rsplit(".", 1)
                items |= {f"{stem}.{one}" for one in range(int(begin), int(last.rsplit(".", 1)[1]) + 1)}
            if items or paragraph.strip().startswith("#"):
                named_last = items
    return found


def test_every_example_and_exercise_has_its_answer_and_a_call_on_the_page_of_worked_examples() -> None:
    without = {row[0] for row in ROWS if row[2].startswith("— ")}
    wanted = {item for item in required() - without if item.split(" ")[0] in ("Example", "Exercise")}
    assert {item for item in wanted if item.split(" ")[1] not in answered()} == set()


def test_the_page_of_worked_examples_begins_with_a_link_to_the_table() -> None:
    assert "](sources.md)" in WORKED.partition("```")[0]
