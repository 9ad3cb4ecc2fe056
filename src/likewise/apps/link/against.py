"""`link` of new records with the entities of an earlier run: they join these, found their own, or show two to be one.

What the earlier run learned is taken over: its fields, its model and its threshold. Only pairs with a new record are
compared. Entities of the earlier run are never taken apart, and keep their ids: the id of their first record.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from likewise.apps.link.alarms import judge, told
from likewise.apps.link.blocking import TERMS, RecordPairs, block
from likewise.apps.link.decision import NOTHING_KNOWN, MatchRules
from likewise.apps.link.entities import pairs_within
from likewise.apps.link.fields import as_strings, values_of
from likewise.apps.link.further_copies import FurtherCopies
from likewise.apps.link.learned_rules import AGAIN, MODEL, LearnedRules
from likewise.apps.link.pair_reason import LinkageTrace
from likewise.apps.link.records import RecordTable, ids_of, plain_column, read_table
from likewise.apps.link.request import LinkRequest
from likewise.apps.link.result import Links, count_scores, result_tables, weights_table
from likewise.apps.link.scoring import ModelScorer, PointScorer, ScoringTask, scored_candidates
from likewise.apps.link.synonyms import chosen_synonyms
from likewise.base.arrays import Ints
from likewise.base.parallel import all_at_once
from likewise.base.runlog import RunLog, run_json
from likewise.errors import ColumnError, DamagedError, IncompatibleError, InputError, MissingInput
from likewise.io.read.find import notes_on
from likewise.io.workspace import Workspace
from likewise.jobs.finished_run import FinishedRun, InputsGone, input_files
from likewise.kernels.graph import components

NOT_ASKED = "only pairs with a new record were compared"
RULE = "clusters by average linkage, around the entities of the earlier run"
ONE_TABLE = "links two tables; records can be added to a run of one table, which has entities"


@dataclass(frozen=True)
class EarlierLinkage:
    """An earlier run of one table: its records, their entities, and what it decided by; `where` names it."""

    where: str
    parameters: dict[str, Any]
    method: dict[str, Any]
    id: str | None
    tables: list[pa.Table]
    inputs: list[dict[str, Any]]
    clusters: pa.Table
    rules: LearnedRules

    @classmethod
    def of(cls, source: Any) -> EarlierLinkage:
        """Take over a result, or read it from its folder, and its tables from their files."""
        return cls._of_result(source) if isinstance(source, Links) else cls._of_folder(source)

    @classmethod
    def _of_result(cls, links: Links) -> EarlierLinkage:
        where, stats = "the earlier result", links.stats
        if links.clusters is None:
            raise IncompatibleError(f"{where} {ONE_TABLE}")
        if links.rules is None:
            raise IncompatibleError(f"{where} was decided from scores, without records; give the run it came from")
        tables = [_kept_columns(table, stats, links.rules) for table in links.tables]
        method, id = stats["method"], stats["details"]["id"]
        return cls(where, stats["parameters"], method, id, tables, stats["inputs"], links.clusters, links.rules)

    @classmethod
    def _of_folder(cls, folder: Any) -> EarlierLinkage:
        run = FinishedRun.load(folder, "link")
        run.must_be("link")
        if run.details.get("single") is not None:
            raise IncompatibleError(f"{run.folder}: this run {ONE_TABLE}")
        if not (run.folder / MODEL).is_file():
            raise MissingInput(f"{run.folder}: there is no {MODEL} with what was learned; {AGAIN}")
        rules = LearnedRules.load(run.folder / MODEL)
        try:
            files = [file for some in input_files(run) for file in some]
        except InputsGone as why:
            raise InputError(f"{run.folder}: its records cannot be read again: {why}") from why
        tables = [read_table(file, "against")[0] for file in files]
        for table, entry in zip(tables, run.stats["inputs"], strict=True):
            if table.num_rows != entry["rows"]:
                raise InputError(f"{run.folder}: {entry['file']} has changed since the run; {AGAIN}")
        path = run.folder / "clusters.parquet"
        try:
            clusters = pq.read_table(path, columns=["id", "cluster"], partitioning=None)
        except (pa.ArrowException, OSError) as error:
            raise DamagedError(f"{path}: cannot be read ({error}); {AGAIN}") from error
        tables = [_kept_columns(table, run.stats, rules) for table in tables]
        id = run.details["id"]
        return cls(
            str(run.folder), run.parameters, run.stats["method"], id, tables, run.stats["inputs"], clusters, rules
        )


def _kept_columns(table: pa.Table, stats: dict[str, Any], rules: LearnedRules) -> pa.Table:
    """Return the ids and the columns that are compared."""
    return table.select([name for name in (stats["details"]["id"], *rules.fields) if name is not None])


def add_records(request: LinkRequest, space: Workspace, log: RunLog) -> Links:
    """Read the earlier result and the new records, compare, and decide."""
    with log.stage("read"):
        earlier = EarlierLinkage.of(request.against)
        records, since = _all_records(earlier, request, log)
        entities = _entities(earlier, records, since)
        words = chosen_synonyms("link", earlier.parameters["nicknames"])
    log.method = earlier.method
    log.counts |= {"records": records.count, "records_earlier": since, "records_new": records.count - since}
    log.details |= records.details
    is_new = (np.arange(records.count) >= since).astype(np.int64)
    copies = FurtherCopies.of(records, [is_new])
    compared, first = copies.without(records), int(np.count_nonzero(copies.kept < since))
    resources = request.resources
    with log.stage("block", 2 * compared.count) as tick:
        most = sys.maxsize if earlier.rules.all_text else TERMS
        find = partial(block, compared.fields, 0, request.seed, resources.threads, most)
        candidates, terms = find(budget=resources.budget, tick=tick, space=space, since=first)
    log.notes += candidates.notes
    log.counts["candidates"] = len(candidates)
    log.details["candidates_by"] = candidates.ways
    known = _first_of(entities[copies.kept])
    task = ScoringTask(
        compared,
        terms,
        earlier.rules.weights,
        nicknames=words,
        threads=resources.threads,
        budget=resources.budget,
        seed=request.seed,
        learned=earlier.rules.learned,
    )
    few = replace(task, records=_met(compared, candidates, known))
    scorer, scored = scored_candidates(few, candidates.left, candidates.right, log)
    log.method = earlier.method
    with log.stage("decide"):
        rules = MatchRules(few.records, candidates, scorer, None, entities=known)
        decision, groups = rules.decide(scored, earlier.rules.threshold)
    assert groups is not None
    scored.describe(log)
    log.details |= {"rule": RULE, "threshold": round(float(decision.threshold * scored.unit), 4)}
    log.details |= {"completeness": {"unknown": NOT_ASKED}, "expected_f1_unknown": NOT_ASKED}
    with log.stage("tables"):
        probable = told(rules.probabilities(scored, decision, NOTHING_KNOWN), log)
        matched = copies.matches(pairs_within(candidates, scored, probable, scorer, groups, first), False, False)
        labels = _all_labels(entities, copies, groups)
        matches, clusters = result_tables(records, matched, labels, scored.unit, log)
        added, merged = _added(records, labels, since), _merged(records, entities, labels, since)
    joined = int((labels[since:] < since).sum())
    log.counts |= {"joined": joined, "founded": len(np.unique(labels[since:][labels[since:] >= since]))}
    log.counts["merged"] = merged.num_rows
    anywhere = replace(rules, records=compared, scorer=ModelScorer(task) if task.learned else PointScorer(task, None))
    trace = LinkageTrace(
        records, copies, anywhere, scored.slim, decision, probable, groups, matched.pairs, NOTHING_KNOWN, []
    )
    count_scores(log, scored.value * scored.unit, matched.scores * scored.unit)
    judge(matched, labels, log)
    parameters = {**earlier.parameters, "against": request.decisive["against"], "scored": False}
    parameters |= {"threads": resources.threads, "memory": resources.budget.total, "seed": request.seed}
    stats = run_json("link", parameters, [records], log)
    weights = weights_table(scored, decision.chosen, request.seed)
    return Links(matches, clusters, None, weights, stats, trace, added, merged)


def _all_records(earlier: EarlierLinkage, request: LinkRequest, log: RunLog) -> tuple[RecordTable, int]:
    """Return the earlier records and then the new ones, as one table, and the number of the first new one."""
    new, where, inputs = read_table(request.a, "a")
    rules, since = earlier.rules, sum(table.num_rows for table in earlier.tables)
    names = [name for name in (earlier.id, *rules.fields) if name is not None]
    for name in names:
        if name not in new.column_names:
            raise ColumnError.of(where, name, new.column_names)
    tables = [*earlier.tables, new]
    table = pa.table({name: _joined([plain_column(one.column(name)) for one in tables]) for name in names})
    log.notes += notes_on(request.a)
    ids = ids_of(new, earlier.id, where)
    if earlier.id is None:
        ids = pa.chunked_array([pa.array(np.arange(table.num_rows))])
    else:
        ids = _all_ids([*(plain_column(one.column(earlier.id)) for one in earlier.tables), ids], where, earlier.where)
    missing = earlier.parameters["missing"] or ()
    tasks = [partial(rule.made, name, table.column(name), missing) for name, rule in rules.fields.items()]
    fields = all_at_once(tasks, request.resources.threads)
    told = [*earlier.inputs, *inputs]
    records = RecordTable([table], [where], 0, table.num_rows, earlier.id, [ids], fields, [], told)
    records.placeholders.update({name: rule.placeholders for name, rule in rules.fields.items() if rule.placeholders})
    return records, since


def _met(records: RecordTable, candidates: RecordPairs, entities: Ints) -> RecordTable:
    """Return the records with only the values that are compared: of candidates, and of the entities that they are in.

    A table of a million records is not prepared for ten thousand new ones.
    """
    met = np.zeros(records.count, bool)
    met[entities[candidates.left]] = met[entities[candidates.right]] = True
    rows = np.flatnonzero(met[entities])
    return replace(records, fields=[values_of(one, rows) for one in records.fields])


def _joined(parts: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return columns one after the other, as text if their types differ."""
    if len({part.type for part in parts}) > 1:
        parts = [as_strings(part) for part in parts]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _all_ids(parts: list[pa.ChunkedArray], where: str, earlier: str) -> pa.ChunkedArray:
    """Return the ids of all records, of which the last part is new; raise if an earlier record has one of these."""
    ids, since = _joined(parts), sum(map(len, parts[:-1]))
    ids = pc.utf8_trim_whitespace(ids) if pa.types.is_string(ids.type) else ids
    again = pc.index(pc.is_in(ids.slice(since), value_set=ids.slice(0, since).combine_chunks()), True).as_py()
    if again >= 0:
        raise InputError(
            f"{where}: row {again} has the id {ids[since + again].as_py()!r}, which a record of {earlier} has; "
            f"give new records ids of their own, or {AGAIN}"
        )
    return ids


def _entities(earlier: EarlierLinkage, records: RecordTable, since: int) -> Ints:
    """Return the entity of each record, as the number of its first record; each new record is one by itself."""
    ids = records.ids[0].slice(0, since).combine_chunks()
    places = []
    for name in ("id", "cluster"):
        asked = earlier.clusters[name].combine_chunks()
        found = pc.index_in(asked if asked.type == ids.type else asked.cast(ids.type), ids)
        if found.null_count:
            lost = asked[pc.index(pc.is_null(found), True).as_py()].as_py()
            raise InputError(f"{earlier.where}: no record has the id {lost!r} of its clusters; {AGAIN}")
        places.append(found.to_numpy().astype(np.int64))
    entities: Ints = components(records.count, places[0], places[1])
    return entities


def _first_of(entities: Ints) -> Ints:
    """Return for each record the place of the first one with the same number.

    >>> _first_of(np.array([7, 3, 7, 3])).tolist()
    [0, 1, 0, 1]
    """
    first = np.empty(int(entities.max(initial=-1)) + 1, np.int64)
    first[entities[::-1]] = np.arange(len(entities))[::-1]
    return first[entities]


def _all_labels(entities: Ints, copies: FurtherCopies, groups: Ints) -> Ints:
    """Return the entity of every record, copies that were not compared among them."""
    rest, labels = copies.rest, copies.clusters(groups)
    left = np.concatenate([np.arange(len(entities)), copies.kept, rest])
    right = np.concatenate([entities, copies.kept[groups], labels[rest]])
    found: Ints = components(len(entities), left, right)
    return found


def _added(records: RecordTable, labels: Ints, since: int) -> pa.Table:
    """Return the new records: id, cluster, and whether an earlier record is in it."""
    rows = np.arange(since, records.count)
    columns = {"id": records.names(rows), "cluster": records.names(labels[rows])}
    return pa.table({**columns, "joined": pa.array(labels[rows] < since)})


def _merged(records: RecordTable, entities: Ints, labels: Ints, since: int) -> pa.Table:
    """Return the earlier entities that are one with another: cluster, and the cluster that it is now part of."""
    rows = np.arange(since)
    gone = rows[(entities[:since] == rows) & (labels[:since] != rows)]
    return pa.table({"cluster": records.names(gone), "into": records.names(labels[gone])})
