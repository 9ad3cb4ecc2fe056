"""`relink`: decide again which pairs of a finished run are matches, from the scores that it stored."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from likewise.apps.link.alarms import judge
from likewise.apps.link.decision import Decision, MatchRules
from likewise.apps.link.entities import chosen_pairs
from likewise.apps.link.pair_reason import LinkageTrace
from likewise.apps.link.result import Links, count_scores, result_tables
from likewise.apps.link.scored_records import ScoredRecords
from likewise.apps.link.stored_scores import SCORED, StoredScores
from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import LikewiseError
from likewise.io.upload import to_store
from likewise.jobs.finished_run import FinishedRun

COUNTS = ("records", "records_a", "records_b", "candidates")
DETAILS = ("id", "fields", "columns", "candidates_by", "points", "prior", "em_rounds", "emphasised", "related",
           "abridged", "single")  # fmt: skip
"""What remains true of a run at another threshold."""

NOT_READ = "the tables were not read"
GIVEN = "the threshold was given"
ABSENT = "pairs that the earlier run did not compare count as unlikely in the clusters"
NO_VALUES = "this result is decided from scores, without the values of records; explain pairs with the earlier run"


@to_store("out")
def relink(
    run: str | os.PathLike[str],
    threshold: float,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Links:
    """Decide again which records match, with another threshold, from the scores of a run of `link`; no table is read.

    Two tables: the rule of the run stays, such as one to one, and what was labelled stays. With the threshold of the
    run, the matches are those of the run. One table: clusters by average linkage, in which pairs that the run did not
    compare count as unlikely, and the keeper is the first record of a cluster.

    run: the folder of a run of `link` with scored=True. threshold: the least score of a match.
    out: a folder for the result, another than that of the run. progress: called with (stage, done, total).
    """
    cut = checks.number("relink", "threshold", threshold)
    folder = None if out is None else checks.path("relink", "out", out)
    earlier, log = FinishedRun.load(run, "relink"), RunLog.of(progress)
    if folder is not None:
        Links.check_folder(folder, [earlier.folder / SCORED])
    with log.stage("read"):
        stored = StoredScores.load(earlier)
    _carry_over(earlier, log)
    with log.stage("decide"):
        rules = _rules(earlier, stored)
        decision, groups = _decide(earlier, stored, rules, cut)
    log.details |= {"rule": decision.rule, "threshold": round(cut, 4)}
    linked = _result(earlier, stored, rules, decision, groups, cut, log)
    if folder is not None:
        linked.write(folder)
    return linked


def _carry_over(earlier: FinishedRun, log: RunLog) -> None:
    """Take over what remains true of the run."""
    log.method = earlier.stats["method"]
    log.counts |= {name: earlier.counts[name] for name in COUNTS if name in earlier.counts}
    log.details |= {name: earlier.details[name] for name in DETAILS if name in earlier.details}
    log.details |= {"completeness": {"unknown": NOT_READ}, "expected_f1_unknown": GIVEN}
    log.details["earlier"] = {"run": str(earlier.folder), "threshold": earlier.details["threshold"]}


def _rules(earlier: FinishedRun, stored: StoredScores) -> MatchRules:
    """Return the rules of the run: one to one or not, as it was asked for or found out."""
    single = earlier.details.get("single")
    scorer = _StoredScorer((earlier.stats["method"] or {}).get("taken") == "likeness")
    one_to_one, compared = earlier.parameters["one_to_one"], stored.copies.without(stored.records)
    return MatchRules(compared, stored.pairs, scorer, one_to_one, single and (single[0], single[1]), further=False)


def _decide(
    earlier: FinishedRun, stored: StoredScores, rules: MatchRules, threshold: float
) -> tuple[Decision, Ints | None]:
    """Return the matches and, for one table, the clusters.

    Without a threshold, the run also counted how far pairs lead their rivals: at its own, its decision is taken over.
    """
    cut, single = threshold / stored.scored.unit, earlier.details.get("single")
    if single is None:
        return rules.decide(stored.scored, cut, stored.known)
    rule = earlier.details["rule"]
    if threshold in (earlier.details["threshold"], earlier.parameters["threshold"]):
        return Decision(np.flatnonzero(stored.match), cut, None, rule, (single[0], single[1])), None
    return replace(rules.decide(stored.scored, cut, stored.known)[0], rule=rule), None


def _result(
    earlier: FinishedRun,
    stored: StoredScores,
    rules: MatchRules,
    decision: Decision,
    groups: Ints | None,
    threshold: float,
    log: RunLog,
) -> Links:
    """Return the tables of matches and clusters, and run.json, which names the earlier run."""
    records, copies, scored = stored.records, stored.copies, stored.scored
    with log.stage("tables"):
        matched = chosen_pairs(stored.pairs, scored, stored.probable, decision.chosen)
        matched = copies.matches(matched, *decision.single)
        labels = None if groups is None else copies.clusters(groups)
        matches, clusters = result_tables(records, matched, labels, scored.unit, log)
    if labels is not None:
        log.notes.append(ABSENT)
    trace = LinkageTrace(
        records, copies, rules, scored, decision, stored.probable, groups, matched.pairs, stored.known, []
    )
    count_scores(log, scored.value * scored.unit, matched.scores * scored.unit)
    judge(matched, labels, log)
    changed = {"threshold": threshold, "true": None, "scored": False, "earlier": str(earlier.folder)}
    stats = run_json("link", {**earlier.parameters, **changed}, [records], log)
    return Links(matches, clusters, None, None, stats, trace)


class _StoredScorer:
    """Stands for the scorer of the run; it compares nothing, as the values of records are not known."""

    usual: float | None = None
    lowest = -np.inf

    def __init__(self, alike: bool) -> None:
        self.alike = alike

    def first(self, *pairs: Any) -> ScoredRecords:
        """Refuse to score candidates."""
        raise LikewiseError(NO_VALUES)

    def others(self, *pairs: Any) -> ScoredRecords:
        """Refuse to score further pairs."""
        raise LikewiseError(NO_VALUES)
