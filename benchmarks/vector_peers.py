"""The ways of FAISS to find pairs, and the settings of each that are worth a trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Settings = dict[str, Any]
BIG = 200_000
"""From here on FAISS's graphs are made once for trying settings, not several times."""


@dataclass(frozen=True)
class Contender:
    """A way to find pairs: the options of a run of likewise, or settings of FAISS to choose of."""

    name: str
    options: list[str] = field(default_factory=list)
    tried: list[Settings] = field(default_factory=list)

    @property
    def tool(self) -> str:
        """Whose way it is."""
        return "faiss" if self.tried else "likewise"


def peers_of_vectors(n: int, neighbours: bool) -> list[Contender]:
    """FAISS's indexes of numbers; with `neighbours`, its graph is also asked for the nearest ten."""
    graphs = [(16, 40)] if n > BIG else [(8, 40), (16, 20), (16, 40), (32, 40)]
    efforts = [{"efSearch": 2**power} for power in range(3, 13)]
    hnsw = [{"index": "hnsw", "M": m, "efConstruction": effort, "ladder": efforts} for m, effort in graphs]
    ivf = []
    for lists in dict.fromkeys((round(n**0.5), round(4 * n**0.5))):
        probes = [{"nprobe": 2**power} for power in range(lists.bit_length())]
        ivf.append({"index": "ivf", "nlist": lists, "ladder": probes})
    found = [
        Contender("FAISS flat", tried=[{"index": "flat", "ladder": [{}]}]),
        Contender("FAISS HNSW", tried=hnsw),
        Contender("FAISS IVF", tried=ivf),
    ]
    if neighbours:
        found.insert(2, Contender("FAISS HNSW, 10 nearest", tried=[{**one, "k": 11} for one in hnsw]))
    return found


TABLES: dict[tuple[int, int], list[tuple[int, int, int]]] = {
    (64, 3): [(4, 16, 0), (2, 32, 1), (2, 24, 1), (3, 21, 1)],
    (64, 10): [(4, 16, 2), (4, 14, 2), (3, 21, 3), (3, 20, 3), (3, 18, 3), (6, 10, 1)],
    (256, 3): [(2, 16, 0), (2, 18, 0), (3, 20, 0), (3, 24, 0), (4, 24, 0), (4, 32, 0)],
    (256, 10): [(7, 24, 0), (8, 24, 0), (8, 32, 0), (11, 20, 0), (11, 23, 0), (6, 32, 1)],
}
"""Tables, bits of each and flips of FAISS's multi-hash, by the bits of a code and of a distance. Each of them finds all
pairs, for (flips + 1) · tables > distance, or is expected to find 98 % or more."""

FLIPS: dict[tuple[int, int], list[tuple[int, int]]] = {
    (64, 3): [(20, 2), (20, 3), (24, 3)],
    (64, 10): [(20, 5), (20, 6)],
    (256, 3): [(16, 1), (20, 1), (24, 1), (24, 2)],
    (256, 10): [(16, 2), (20, 2), (20, 3), (24, 3)],
}
"""The bits and flips of FAISS's one hash."""


def peers_of_bits(n: int, width: int, within: float) -> list[Contender]:
    """FAISS's indexes of bits."""
    lists = round(n**0.5)
    probes = [{"nprobe": 2**power} for power in range(lists.bit_length())]
    many = [
        {"index": "multihash", "nhash": tables, "b": bits, "ladder": [{"nflip": flips}]}
        for tables, bits, flips in TABLES[width, int(within)]
    ]
    one = [{"index": "hash", "b": bits, "ladder": [{"nflip": flips}]} for bits, flips in FLIPS[width, int(within)]]
    return [
        Contender("FAISS flat", tried=[{"index": "flat", "ladder": [{}]}]),
        Contender("FAISS multi-hash", tried=many),
        Contender("FAISS hash", tried=one),
        Contender("FAISS IVF", tried=[{"index": "ivf", "nlist": lists, "ladder": probes}]),
    ]
