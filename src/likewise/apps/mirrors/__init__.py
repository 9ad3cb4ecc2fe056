"""Mirror hosts by their URLs, confirmed by content, and pages folded along their links (A3; Section 3.1.2).

addresses    URLs in one form, and their numbers
reading      URLs and links out of files
settings     when two hosts are mirrors
hosts        hosts as sets of positional bigrams, candidates, the paths that two hosts share
confirming   do pages with the same path have similar texts
grouping     pairs of hosts to groups, and the pages that are one by that
contracting  `contract`: fold, relabel the links, compare the outlinks, repeat
finding      `find`: all of it
answer       its tables and its folder
"""

from __future__ import annotations

from likewise.apps.mirrors.addresses import canonical
from likewise.apps.mirrors.answer import Mirrors
from likewise.apps.mirrors.contracting import Contraction, contract
from likewise.apps.mirrors.finding import find

__all__ = ["Contraction", "Mirrors", "canonical", "contract", "find"]
