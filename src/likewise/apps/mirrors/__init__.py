"""Hosts that mirror each other, found by their URLs, confirmed by content; pages folded along links (MMDS §3.1.2).

addresses    URLs in canonical form, numbered
inputs       URLs, texts and links from files and objects
settings     when two hosts are mirrors, and when two texts are similar
hosts        hosts as sets of positional bigrams, candidate pairs, shared paths
content      comparison of the texts of pages with the same path
groups       pairs of hosts → clusters of mirrors, and the pages that are equal as a consequence
contraction  `contract`: fold pages, relabel links, compare outlinks, repeat
mirrors      `mirrors`: all of these steps
result       its tables
"""

from __future__ import annotations

from likewise.apps.mirrors.addresses import canonical
from likewise.apps.mirrors.contraction import Contraction, contract
from likewise.apps.mirrors.mirrors import mirrors
from likewise.apps.mirrors.result import Mirrors

__all__ = ["Contraction", "Mirrors", "canonical", "contract", "mirrors"]
