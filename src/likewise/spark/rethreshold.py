"""`rethreshold` of a run on Spark: the input is read again, and the pairs that the run stored decide anew."""

from __future__ import annotations

from dataclasses import replace

from likewise.base import checks
from likewise.errors import InputError
from likewise.io.seals import changed_files
from likewise.jobs.dedup import DedupRequest
from likewise.jobs.rethreshold import RethresholdRequest, check_rethreshold, details_at
from likewise.search.cluster import Keep
from likewise.search.prepare import NO_ROWS
from likewise.spark import corpus as corpora
from likewise.spark.copies import FirstRows, RowLinks
from likewise.spark.corpus import Corpus
from likewise.spark.dedup import Answer, tables_of
from likewise.spark.executor import Found
from likewise.spark.folder import folder_at, located
from likewise.spark.large_listing import LargeMatches
from likewise.spark.large_pairs import LargePairs
from likewise.spark.members import LargeMembers
from likewise.spark.result import SparkDedup
from likewise.spark.run import ClusterRun, begun
from likewise.spark.session import session_of, spark_errors
from likewise.spark.state import COPIES, GROUPS, PAIRS, SparkState
from likewise.spark.universe import Universe

OWNER = "rethreshold"


def rethreshold(request: RethresholdRequest) -> SparkDedup:
    """Do what was asked for on a cluster."""
    checks.threads(OWNER, request.threads)
    session = session_of(OWNER, [], request.master)
    directory = located(session, request.directory)
    with spark_errors():
        state = SparkState.load(folder_at(session, directory))
    parameters = state.run["parameters"]
    wanted, policy = check_rethreshold(directory, state.about, parameters, request.threshold, request.keep)
    reading = {name: parameters[name] for name in ("text", "id", "on_error", "encoding_errors", "html")}
    again = DedupRequest(
        owner=OWNER, source=state.about["given"], out=request.out or directory, threshold=wanted, keep=policy,
        estimate=parameters.get("estimate", False), threads=request.threads, master=request.master,
        progress=request.progress, **reading,
    )  # fmt: skip
    with begun(again, [state.run["details"]["state"]]) as run:
        for change in changed_files(state.about["inputs"], run.inputs[0].identity or {}):
            raise InputError(f"{change}, and the run in {directory} used the earlier version; run dedup again")
        log = run.log
        corpus = run.corpus()
        directed = parameters.get("measure", "jaccard") == "containment"  # its pairs were on the driver before
        corpus = replace(corpus, large=len(corpus) >= corpora.LARGE and not directed)
        for name in ("items", "bytes", "different", "groups", "candidates"):
            if name in state.run["counts"]:
                log.counts[name] = state.run["counts"][name]
        log.details |= details_at(wanted, state.run["details"])
        copied, grouped = state.links(COPIES, corpus), state.links(GROUPS, corpus)
        found = _found(run, corpus, copied, grouped, state, wanted, policy)
        if not isinstance(found, LargeMatches):
            found = found[0], replace(found[1], directed=directed)
        tables = tables_of(run, corpus, found, policy)
        changed = {
            **parameters, "threshold": wanted, "keep": str(policy), "first_threshold": state.about["threshold"],
        }  # fmt: skip
        return Answer(run, corpus, tables, changed, state.kept(), OWNER).write()


def _found(
    run: ClusterRun, corpus: Corpus, copied: RowLinks, grouped: RowLinks, state: SparkState, wanted: float, policy: Keep
) -> Found:
    """Return what a search would have found."""
    if corpus.large:
        pairs = LargePairs(state.frame(PAIRS)).reaching(wanted)
        run.log.counts["verified"] = pairs.count
        members = LargeMembers(corpus, policy, copied, grouped, pairs.rows, run.checkpoints)
        different, nothing = len(FirstRows(copied.rows)), (NO_ROWS, NO_ROWS)
        return LargeMatches(members, pairs, different, NO_ROWS, NO_ROWS, NO_ROWS, nothing)
    left, right, similarity = state.pairs(wanted, run.request.resources.budget.total)
    run.log.counts["verified"] = len(left)
    universe = Universe.of(copied.repeated, grouped.repeated, grouped.empty, left, right)
    return universe, universe.matches(universe.group(left), universe.group(right), similarity)
