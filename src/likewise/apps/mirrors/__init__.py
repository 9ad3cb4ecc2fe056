"""Hosts that mirror each other, found by their URLs, confirmed by content; pages folded along links (MMDS §3.1.2).

addresses    URLs in canonical form, numbered; URLs, texts and links from files and objects
hosts        hosts as sets of positional bigrams, candidate pairs, shared paths, clusters of mirrors
contraction  `contract`: fold pages, relabel links, compare outlinks, repeat
mirrors      `mirrors`: all of these steps, with suspects of earlier crawls and texts of pages
"""

from __future__ import annotations

from likewise.apps.mirrors.addresses import canonical
from likewise.apps.mirrors.contraction import Contraction, contract
from likewise.apps.mirrors.mirrors import Mirrors, mirrors

__all__ = ["Contraction", "Mirrors", "canonical", "contract", "mirrors"]
