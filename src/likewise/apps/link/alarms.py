"""What a result of `link` says about itself: the precision to be expected, and alarms where it cannot be right."""

from __future__ import annotations

import numpy as np

from likewise.apps.link.best_partners import FEW, MatchProbabilities
from likewise.apps.link.entities import MatchedPairs
from likewise.apps.link.fields import Floats
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.base.words import counted

HUGE, FAR_LARGER = 30, 10
"""Records of a cluster from which on it is looked at, and how many times larger than nearly all others it then is."""

NEARLY_ALL = 0.95
"""Part of the clusters that count as nearly all."""

DUBIOUS = 0.7
"""Mean probability of the matches below which many of them are wrong."""

MIDDLE = 0.1, 0.9
"""Probabilities between these are rough, and checked only where they can be estimated a second time."""

UNCHECKED = "only labels can check it here"
HELP = "choose the columns that identify a record with --field, or answer a few questions with --label"


def told(found: MatchProbabilities, log: RunLog) -> Floats:
    """Return the probabilities, and note why they are not known or doubtful, if they are.

    Where nothing checks them and FEW pairs or more have one in the MIDDLE, they are doubtful.
    """
    low, high = MIDDLE
    doubt = found.doubt
    if doubt is None and not found.checked and ((found.value >= low) & (found.value < high)).sum() >= FEW:
        doubt = UNCHECKED
    if doubt is not None:
        log.details["unreliable"] = doubt
        what = "not known" if np.isnan(found.value).any() else f"not reliable between {low} and {high}"
        log.notes.append(f"match_probability is {what}: {doubt}")
    return found.value


def judge(matched: MatchedPairs, labels: Ints | None, log: RunLog) -> None:
    """State the precision to be expected, and raise an alarm where a result cannot be right."""
    known = matched.probable[~np.isnan(matched.probable)]
    if len(known):
        precision = float(known.mean())
        log.details["expected_precision"] = round(precision, 4)
        if precision < DUBIOUS:
            log.notes.append(
                f"about {100 * (1 - precision):.0f} % of the matches are wrong, by their probabilities: {HELP}"
            )
    if labels is not None:
        sizes = np.bincount(labels)
        sizes = np.sort(sizes[sizes > 1])
        usual = float(np.quantile(sizes, NEARLY_ALL)) if len(sizes) else 0.0
        large = sizes[(sizes >= HUGE) & (sizes > FAR_LARGER * usual)]
        if len(large):
            log.notes.append(
                f"{counted(len(large), 'cluster')} of up to {large[-1]:,} records, where nearly all have at most "
                f"{usual:.0f}: look at them, and if they mix entities, {HELP}"
            )
