"""`rethreshold`: a finished run at a higher threshold, or with other keepers, from the pairs it stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.memory import Budget
from likewise.base.runlog import Progress, RunLog
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.families.banding import Banding
from likewise.io.read import Files, ReadOptions, Source, open_source
from likewise.io.seals import changed_files
from likewise.io.workspace import Workspace
from likewise.jobs.result import Dedup
from likewise.jobs.state import State
from likewise.search.cluster import NONE, Keep, removals
from likewise.search.estimate import acceptance, described
from likewise.search.load import Collection, collect
from likewise.search.matches import VerifiedPairs

OWNER = "rethreshold"


@dataclass(frozen=True)
class RethresholdRequest:
    """What `rethreshold` is asked for; see there."""

    directory: str | Path
    threshold: float | None = None
    keep: str | Keep | None = None
    out: str | Path | None = None
    threads: int | None = None
    progress: Progress | None = None
    master: str | None = None


def rethreshold(request: RethresholdRequest) -> Dedup:
    """Do what was asked for in this process."""
    directory, out = request.directory, request.out
    count = checks.threads(OWNER, request.threads)
    state = State.load(directory, OWNER)
    parameters = state.run["parameters"]
    wanted, policy = check_rethreshold(directory, state.about, parameters, request.threshold, request.keep)
    lowest = state.about["threshold"]
    folder = Path(directory if out is None else out)
    log = RunLog.of(request.progress)
    for name in ("items", "bytes", "different", "groups", "candidates"):
        if name in state.run["counts"]:
            log.counts[name] = state.run["counts"][name]
    log.details |= details_at(wanted, state.run["details"])
    options = options_of_run(parameters, policy.columns, policy.lowest)
    with log.stage("read"):
        source = unchanged_source(state, options)
        ids = state.ids
        collection = Collection(len(ids), None, ids, (), source, None)
    Dedup.check_folder(folder, source.files)
    with log.stage("cluster"):
        groups, copies = state.groups, state.array("copies").astype(np.int64)
        similarity = state.array("similarity")
        high = similarity >= wanted
        left, right = (state.array(name).astype(np.int64)[high] for name in ("left", "right"))
        directed = parameters.get("measure", "jaccard") == "containment"
        matches = VerifiedPairs(groups, copies, left, right, similarity[high], directed=directed)
        log.counts["verified"] = len(left)
        lengths = np.zeros(len(ids), np.int64)
        scores: Sequence[Any] = ()
        if policy.rule not in ("first", "last", NONE):
            lengths, scores = _read_again(state, policy, options, count)
        empty = ~(state.array("units") != 0).any(axis=1)
        ranks, none = policy.ranks(lengths, scores), policy.rule == NONE
        removal = removals(groups, left, right, matches.similarity, ranks, copies, empty, none, directed)
    changed = {**parameters, "threshold": wanted, "keep": str(policy), "first_threshold": lowest}
    result = Dedup(collection, matches, removal, log, changed, about=state, command="rethreshold")
    result.save(folder)
    return result


def check_rethreshold(
    directory: str | Path,
    about: dict[str, Any],
    parameters: dict[str, Any],
    threshold: float | None,
    keep: str | Keep | None,
) -> tuple[float, Keep]:
    """Return the threshold and the policy to take a run to, by default its own; raise if it cannot be done."""
    lowest = about.get("threshold")
    if lowest is None:
        raise IncompatibleError(f"{directory}: a run made with --against cannot be re-thresholded; run it again")
    if not about["complete"]:
        raise IncompatibleError(
            f"{directory}: the run has crowds of similar documents and did not list all of their pairs;"
            " for another threshold run dedup again"
        )
    wanted = parameters["threshold"] if threshold is None else checks.threshold("rethreshold", threshold)
    if wanted < lowest:
        raise ParameterError(
            f"The 'threshold' parameter of rethreshold must be at least {lowest:g}, that of the run in {directory}:"
            f" pairs below it were not searched for. Got {wanted:g} instead; run dedup again."
        )
    return wanted, Keep.parse(parameters["keep"] if keep is None else keep, "rethreshold")


def details_at(threshold: float, details: dict[str, Any]) -> dict[str, Any]:
    """Return what the details of a run say about how its pairs were found, as it is at a higher threshold."""
    carried: dict[str, Any] = {
        name: details[name] for name in ("banding", "predicted_recall", "estimate") if name in details
    }
    slots = details["estimate"]["slots"] if "estimate" in details else None
    if slots is not None:
        carried["estimate"] = described(threshold, slots)
    if "banding" in details:
        banding = Banding(details["banding"]["bands"], details["banding"]["rows"])
        accepted = 1.0 if slots is None else acceptance(threshold, slots)
        carried["predicted_recall"] = banding.probability(threshold) * accepted
    return carried


def options_of_run(
    parameters: dict[str, Any], score: tuple[str, ...] = (), lowest: tuple[bool, ...] = ()
) -> ReadOptions:
    """Return how the input of a run was read, from the parameters in its run.json."""
    return ReadOptions(
        text=parameters["text"],
        id=parameters["id"],
        score=score,
        on_error=parameters["on_error"],
        encoding_errors=parameters["encoding_errors"],
        lines=parameters["lines"],
        sets=parameters.get("sets", False),
        html=parameters.get("html", False),
        plain=parameters.get("plain", False),
        hidden=parameters.get("hidden", False),
        group=parameters.get("group"),
        lowest=lowest,
    )


def unchanged_source(state: State, options: ReadOptions) -> Source:
    """Open the input of a run again; raise if it is not what it was."""
    source = open_source(Files(state.about["given"]), options)
    for change in changed_files(state.about["inputs"], source.identity() or {}):
        raise InputError(f"{change}, and the run in {state.directory} used the earlier version; run dedup again")
    source.restore(state.about["source"])
    return source


def _read_again(state: State, policy: Keep, options: ReadOptions, threads: int) -> tuple[Ints, Sequence[Any]]:
    """Read the lengths or the scores that another keep policy needs."""
    space, budget = Workspace.temporary(), Budget.of("rethreshold", None)
    collection = collect(Files(state.about["given"]), options, "words", RunLog(), threads, space, budget.texts)
    assert collection.items is not None
    lengths = collection.items.lengths if policy.by_length else np.zeros(collection.rows, np.int64)
    space.finish()
    return lengths, collection.scores
