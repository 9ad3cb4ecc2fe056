"""Company names that never meet: which pairs of the patentees other ways of blocking would make candidates.

    python benchmarks/link_company_names.py --data FOLDER

Records of the same name are one, with their number: all pairs of them meet. For the pairs of different names: those
that share a word, one that at most so many names have, or of which one has the initials of the other as a word.
"completeness" is of all true pairs, "pairs" are those of different names that would be compared.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

from record_sets import texts

MOST = (10, 30, 100)


def main() -> None:
    """Count, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, help="a folder with patentees.csv and patentees.clusters.csv"
    )
    asked = parser.parse_args()
    table, truth = (texts(asked.data / f"patentees{end}.csv") for end in ("", ".clusters"))
    entity = dict(zip(truth["id"].to_pylist(), truth["cluster"].to_pylist(), strict=True))
    members: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for record, name in zip(table["person_id"].to_pylist(), table["Name"].to_pylist(), strict=True):
        members[entity[record]][tuple(re.findall(r"\w+", (name or "").lower()))] += 1
    names = sorted({name for some in members.values() for name in some})
    known: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for name in names:
        for word in name:
            known[word].add(name)
    same = sum(count * (count - 1) // 2 for some in members.values() for count in some.values())
    apart: Counter[tuple[tuple[str, ...], ...]] = Counter()
    for some in members.values():
        for pair in combinations(sorted(some), 2):
            apart[pair] += some[pair[0]] * some[pair[1]]
    whole = same + apart.total()
    largest = max(members.values(), key=Counter.total)
    print(
        f"{len(names)} names, {whole:,} true pairs; the largest has {largest.total()} records of {len(largest)} names"
    )

    def show(way: str, pairs: set[tuple[tuple[str, ...], ...]]) -> None:
        found = same + sum(apart[pair] for pair in pairs)
        print(f"{way}: completeness {found / whole:.3f}, {len(pairs):,} pairs")

    show("the same name", set())
    for most in (*MOST, len(names)):
        few = (sorted(some) for some in known.values() if len(some) <= most)
        show(f"a word of at most {most} names", {pair for some in few for pair in combinations(some, 2)})
    initials = ((name, other) for name in names for other in known.get("".join(word[0] for word in name), ()))
    show("initials", {(min(pair), max(pair)) for pair in initials if pair[0] != pair[1] and len(pair[0]) > 1})


if __name__ == "__main__":
    main()
