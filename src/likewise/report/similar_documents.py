"""The page of dedup, rethreshold, pairs and articles: how pairs were found, and a browser of pairs and clusters."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.runlog import Progress
from likewise.base.words import counted, size
from likewise.families.banding import Banding
from likewise.jobs.explain.traces import CachedDocuments
from likewise.jobs.finished_run import FinishedRun, StoredTable, arrow_ids, numbers
from likewise.jobs.rows import Rows
from likewise.report import common, pictures
from likewise.report.common import LEAST_CLUSTERS, LEAST_PAIRS, MOST_ROWS, compared, cost, sample_note
from likewise.report.comparison import ComparedTexts, within
from likewise.report.documents import SampledTexts, Tally, by_folder, read_texts
from likewise.report.page import Alarm, Bar, Browser, Entry, PageTable, Picture, ReportPage, Section, Side, Tile
from likewise.report.samples import ClusterSizes, Ints, SampledCluster, SampledPairs, sampled_clusters, sampled_pairs
from likewise.report.words import EMPTY, is_blank, line, share, short

TEXT_BYTES = 2_600_000
"""Bytes of texts in the page, all together: with everything else it stays below 5 MB."""
LONGEST_TEXT = 6_000
"""Characters of a text that are shown."""
MOST_REMOVED = 5_000_000
"""Ids of removed documents that are held in memory, where rows do not tell which document is removed."""
EARLIER = 9
"""The side of documents that are not among the inputs: those of earlier runs."""

Name = tuple[int, str]


class SimilarDocuments:
    """What is read of a run of documents, and the page made from it."""

    item, limit, score = "document", "threshold", "similarity"
    """What is compared, and the parameter and the column that say how similar pairs are."""
    missing = "The texts are not available."

    def __init__(
        self, run: FinishedRun, by: str | None, progress: Progress | None = None, held: CachedDocuments | None = None
    ) -> None:
        self.run = run
        self.by = by
        self.noun = "page" if run.command == "articles" else self.item
        if run.parameters.get("sets"):
            self.noun = "set"
        if run.parameters.get("group"):
            self.noun = "group"
        self.nouns = f"{self.noun}s"
        self.threshold = float(run.parameters[self.limit])
        self.folders: dict[str, Tally] = {}
        self._flags: list[Any] = []
        self._tables = {} if held is None else held.tables
        table = self._table("pairs")
        self.column = self.score
        self.pairs: SampledPairs | None = None
        if table is not None and table.rows:
            self.column = next((one for one in table.columns if one.endswith(self.score)), self.score)
            self.pairs = sampled_pairs(table, self.column, self._ends)
        clusters = self._table("articles" if run.command == "articles" else "clusters")
        self.clusters: ClusterSizes | None = None
        if clusters is not None and clusters.rows:
            self.clusters = sampled_clusters(clusters, self._look)
        self.removed = self._removed()
        self.two = len({entry.get("collection", 1) for entry in run.stats["inputs"]}) > 1
        self.kept_for = self._kept_for()
        self.documents = self._read(progress, held)
        if by is not None and not self.documents.by and not self.documents.problem:
            self.documents.problem = f"Removals are not counted by {by}: there are too many to match them by their ids."
        if not self.documents.by and self.folders:
            self.documents.tallies, self.documents.by = by_folder(self.folders), "folder"

    @property
    def _ends(self) -> tuple[float, float]:
        """Where the histogram of pairs begins and ends."""
        return min(self.threshold, 1.0), 1.0

    def _read(self, progress: Progress | None, held: CachedDocuments | None) -> SampledTexts:
        """Read what the page shows of the documents."""
        return read_texts(self.run, self._wanted(), self.removed, self.by, progress, held)

    def _table(self, name: str) -> StoredTable | Rows | None:
        """Return a table of the run: as it is in memory, or else from its file."""
        return self._tables.get(name) or self.run.table(name)

    def _look(self, rows: Ints, batch: pa.RecordBatch) -> None:
        """Note which documents of a batch are removed, and in which folders they are."""
        removed = numbers(pc.not_equal(batch.column("keeper"), batch.column("id")))
        self._flags.append(removed)
        if pa.types.is_string(batch.column("id").type) and self._are_paths:
            for id, gone in zip(batch.column("id").to_pylist(), removed.tolist(), strict=True):
                tally = self.folders.setdefault(posixpath.dirname(id) + "/", Tally())
                tally.total += 1
                tally.removed += gone

    @property
    def _are_paths(self) -> bool:
        parameters, inputs = self.run.parameters, self.run.stats["inputs"]
        texts = inputs and all(entry.get("format", "text") == "text" for entry in inputs if "file" in entry)
        return bool(texts and parameters.get("id") is None and not parameters.get("lines"))

    def _removed(self) -> Any:
        """Return which documents are removed, by row; by id where rows do not tell."""
        if not self._flags:
            return None
        flags = np.concatenate(self._flags)
        expected = self.run.counts.get("removed", int(flags.sum()))
        if not self.run.on_spark and int(flags.sum()) == expected:
            return flags
        table = self._table("removed")
        if table is None or table.rows > MOST_REMOVED:
            return None
        return {str(id) for batch in table.batches(["id"]) for id in batch.column(0).to_pylist()}

    def _kept_for(self) -> dict[str, dict[str, Any]]:
        """Return the rows of removed.parquet about sampled members, by their id."""
        table, clusters = self._table("removed"), self.clusters
        if table is None or clusters is None or not table.rows:
            return {}
        ids = [row["id"] for one in clusters.clusters for row in one.members if row["id"] != row["keeper"]]
        wanted = arrow_ids(ids, table.type_of("id"))
        found: dict[str, dict[str, Any]] = {}
        for batch in table.batches(table.columns):
            some = batch.filter(pc.is_in(batch.column("id"), wanted))
            found |= {str(row["id"]): row for row in some.to_pylist()}
        return found

    def _pair_names(self, row: dict[str, Any]) -> tuple[Name, Name]:
        first = EARLIER if row.get("a_in") is not None else 0
        return (first, str(row["id_a"])), (1 if self.two else 0, str(row["id_b"]))

    def member_names(self, row: dict[str, Any]) -> tuple[Name, Name]:
        """Return the keeper of a member of a cluster, and the member."""
        told = self.kept_for.get(str(row["id"]), {})
        first = EARLIER if told.get("kept_in") is not None else 0
        return (first, str(row["keeper"])), (0, str(row["id"]))

    def _wanted(self) -> set[Name]:
        names: set[Name] = set()
        for row in self.pairs.pairs if self.pairs else []:
            names.update(self._pair_names(row))
        for cluster in self.clusters.clusters if self.clusters else []:
            for row in cluster.members:
                names.update(self.member_names(row))
        return {name for name in names if name[0] != EARLIER}

    def text(self, name: Name) -> str | None:
        """Return the text of a document, if it is known."""
        return self.documents.texts.get(name)

    def page(self, alarms: list[Alarm]) -> ReportPage:
        """Return the page."""
        head, tiles, story = (self._of_pairs if self.run.command == "pairs" else self._of_clusters)()
        found, groups = self._found(), self._groups()
        if len(found.pictures) == len(groups.pictures) == 1:  # side by side, rather than each beside nothing
            groups = replace(
                groups, title="Pairs and clusters", pictures=[*found.pictures, *groups.pictures],
                intro=f"{found.intro} {groups.intro}".strip(),
            )  # fmt: skip
            found = Section(found.id, found.title)
        sections = [found, groups, self._removals(), *self._browsers()]
        return common.made(self.run, head, tiles, story, alarms, sections, self.documents.problem)

    @property
    def _bytes(self) -> str:
        counts = self.run.counts
        return f"{size(counts['bytes'])} of text" if "bytes" in counts else ""

    def _of_clusters(self) -> tuple[str, list[Tile], list[str]]:
        counts, run = self.run.counts, self.run
        items = counts["items"]
        if run.command == "articles":
            head = f"{counted(items, 'page carries', 'pages carry')} {counted(counts['articles'], 'different article')}"
            tiles = [
                Tile.of(items, "page read", self._bytes, "pages read"),
                Tile.of(counts["articles"], "different article"),
                Tile.of(
                    counts["clusters"],
                    "article on two pages or more",
                    counted(counts["clustered"], "page"),
                    "articles on two pages or more",
                ),
            ]
            story = [
                f"{share(counts['clustered'], items)} of the pages carry an article that another page carries too, "
                "whatever surrounds it."
            ]
        else:
            removed, largest = counts["removed"], f"largest: {run.details.get('largest_cluster', 0):,}"
            none, one, many = "no duplicates", "is a duplicate", "are duplicates"
            if run.parameters.get("measure") == "containment":
                none, one, many = "none in another", "is in another", "are in others"
            are = f"{one} and was" if removed == 1 else f"{many} and were"
            head = f"{removed:,} of {counted(items, self.noun)} {are} removed"
            if not removed:
                head = f"{counted(items, self.noun)}, {none}"
            tiles = [
                Tile.of(items, f"{self.noun} in", self._bytes, f"{self.nouns} in"),
                Tile(f"{counts['kept']:,}", "kept", share(counts["kept"], items)),
                Tile(f"{removed:,}", "removed", f"{counts['identical']:,} identical, {counts['near']:,} near"),
                Tile.of(counts["clusters"], "cluster", largest),
            ]
            kept = "another" if run.parameters.get("keep") == "none" else "a kept one"
            story = [self._removed_for(kept), self._meaning(), self._policy()] if removed else []
            if counts.get("earlier"):
                known = counted(counts["earlier"], f"known {self.noun}")
                story.append(f"They were also compared with {known}, of earlier runs or an index.")
        return head, tiles, [*story, self._recall(), compared(run, items, self.nouns), cost(run)]

    def _removed_for(self, kept: str) -> str:
        """Say how similar every removed document is to another or to a kept one."""
        parameters, least = self.run.parameters, f"at least {share(self.threshold, 1)}"
        told = f"Every removed {self.noun} is {least} similar to {kept} (Jaccard similarity of"
        if parameters.get("measure") == "containment":
            told = f"Of every removed {self.noun} {least} is in {kept} (containment of"
        return f"{told} {parameters.get('shingle') or 'sets'})."

    def _of_pairs(self) -> tuple[str, list[Tile], list[str]]:
        counts, parameters = self.run.counts, self.run.parameters
        items = counts["items"]
        head = f"{counted(counts['pairs'], 'similar pair')} among {counted(items, self.noun)}"
        tiles = [
            Tile.of(items, f"{self.noun} read", self._bytes, f"{self.nouns} read"),
            Tile.of(counts["pairs"], "similar pair", f"{parameters.get('measure', 'jaccard')} ≥ {self.threshold:g}"),
            Tile.of(counts.get("different", items), f"different {self.noun}"),
        ]
        story = [self._meaning(), self._recall(), compared(self.run, items, self.nouns), cost(self.run)]
        return head, tiles, story

    def _meaning(self) -> str:
        """Say in plain words what the similarity is, where it is the usual one."""
        found = re.fullmatch(r"(words|chars):(\d+)", str(self.run.parameters.get("shingle")))
        if found is None or self.run.parameters.get("measure", "jaccard") != "jaccard":
            return ""
        runs = f"runs of {counted(int(found[2]), 'word' if found[1] == 'words' else 'character')}"
        return f"Similarity is the fraction of all {runs} found in either of two {self.nouns} that is found in both."

    def _policy(self) -> str:
        """Say which document of similar ones is kept."""
        keep = self.run.parameters.get("keep")
        if keep == "none":
            return f"No {self.noun} similar to another was kept (keep: none); beside each stands one it is similar to."
        return f"Of similar {self.nouns}, the one preferred by the keep rule was kept (keep: {keep})." if keep else ""

    def _recall(self) -> str:
        """Say how complete the result is."""
        details = self.run.details
        if "estimate" in details:
            return (
                f"Similarities are estimates, with a standard error of {details['estimate']['standard_error']:.3f} at "
                f"the threshold; {self.nouns} were not compared."
            )
        if "banding" not in details or "predicted_recall" not in details:  # rethreshold did not say it before 0.3
            known = details.get("predicted_recall") == 1.0
            return f"Every pair at {self.threshold:g} or more was found (exact method)." if known else ""
        return (
            f"A pair at the threshold is found with probability {details['predicted_recall']:.4f} "
            f"(requested: {self.run.parameters.get('recall', 0):g}), a more similar pair with a higher one."
            f"{self._measured()}"
        )

    def _measured(self) -> str:
        """Say what the certificate says, after a blank, if it says anything."""
        certificate = self.run.stats["certificate"]
        if not certificate or certificate["recall"] is None:
            return ""
        return (
            f" Measured on {counted(certificate['documents'], f'random {self.noun}')}: "
            f"{certificate['found_pairs']:,} of {certificate['true_pairs']:,} true pairs were found (95 % interval "
            f"{certificate['low']:.3f} to {certificate['high']:.3f})."
        )

    def _found(self) -> Section:
        run, details = self.run, self.run.details
        section = Section("found", "How pairs were found")
        if self.pairs is not None and self.pairs.counts.sum() >= LEAST_PAIRS:
            what = "similarity" if self.column == "similarity" else "estimated similarity"
            common.histogram(section, "Similarity of the pairs", self.pairs, what, self._listed(), self.threshold)
        if "banding" in details:
            banding = Banding(details["banding"]["bands"], details["banding"]["rows"])
            recall = run.parameters.get("recall")
            svg = pictures.s_curve(banding, self.threshold, recall, run.stats["certificate"])
            caption = (
                "The curve gives the probability that a pair of this similarity is compared. The band is the recall "
                "measured on a sample, with its 95 % interval."
            )
            section.pictures.append(Picture("S-curve of this run", svg, caption))
        elif run.stats["method"] and run.stats["method"].get("taken") == "exact":
            told = "The exact method skips only pairs that cannot reach the threshold: no pair is missed."
            section.intro = f"{told} {section.intro}".strip()
        return section

    def _listed(self) -> str:
        """Say what the pairs of the histogram are: more than were compared, if some documents have copies."""
        listed, verified = int(self.pairs.counts.sum()) if self.pairs else 0, self.run.counts.get("verified", 0)
        told = f"The {counted(listed, 'pair')} of the result"
        if not verified < listed:
            return f"{told}."
        return (
            f"{told}, copies included: {verified:,} of them are of different {self.nouns}, which were compared; in the "
            f"other {listed - verified:,} at least one {self.noun} is a copy."
        )

    def _groups(self) -> Section:
        section = Section("clusters", "Clusters")
        if self.clusters is not None and len(self.clusters.sizes):
            total = int((self.clusters.sizes * self.clusters.counts).sum())
            caption = f"{counted(int(self.clusters.counts.sum()), 'cluster')} with {counted(total, self.noun)}."
            common.size_histogram(section, self.clusters, self.noun, caption)
            largest = self.clusters.clusters[:LEAST_CLUSTERS]
            rows = [[f"{one.size:,}", short(one.name, 80), line(self.text_of(one) or "—", 100)] for one in largest]
            columns = ["size", f"first {self.noun}", "text of one that is kept"]
            if all(self.text_of(one) is None for one in largest):
                rows, columns = [row[:2] for row in rows], columns[:2]
            section.listings.append(PageTable("The largest clusters", columns, rows, frozenset({0})))
        if self.run.details.get("policies"):
            section.listings.append(self._policies(self.run.details["policies"]))
        return section

    def _policies(self, found: list[dict[str, Any]]) -> PageTable:
        """Return the table of what this rule keeps, and others would."""
        measured = "elements" if self.noun == "set" else "characters"
        rows = [
            [
                one["keep"] if "removed_here" in one else f"{one['keep']} (this run)",
                f"{one['kept']:,}",
                f"{one['length']:,}",
                f"{one['removed_here']:,}" if "removed_here" in one else "",
            ]
            for one in found
        ]
        columns = ["keep", f"{self.nouns} kept", f"{measured} kept", "of these, removed in this run"]
        note = "likewise rethreshold DIR --keep RULE applies another rule to this run, without a new search."
        return PageTable("What other rules would keep", columns, rows, frozenset({1, 2, 3}), note)

    def text_of(self, cluster: SampledCluster) -> str | None:
        """Return the text that a cluster is about: that of the keeper of its first members."""
        for row in cluster.members:
            keeper, member = self.member_names(row)
            found = self.text(keeper) if self.text(keeper) is not None else self.text(member)
            if found is not None:
                return found if not is_blank(found) else EMPTY
        return None

    def _removals(self) -> Section:
        section = Section("by", "Removals by source")
        tallies, by = self.documents.tallies, self.documents.by
        if len(tallies) < 2:
            return section
        ordered = sorted(tallies.items(), key=lambda one: (-one[1].removed, -one[1].total, one[0]))
        cut = _common_folder(list(tallies)) if by in ("folder", "file") else 0
        gone = "in the cluster of another" if self.run.command == "articles" else "removed"
        rows: list[list[Any]] = [
            [
                short(name[cut:] or "(no value)", 100),
                f"{tally.total:,}",
                f"{tally.removed:,}",
                Bar(tally.removed / tally.total, share(tally.removed, tally.total)),
            ]
            for name, tally in ordered[:MOST_ROWS]
        ]
        rest = f"{len(ordered) - MOST_ROWS:,} more are not listed." if len(ordered) > MOST_ROWS else ""
        title = f"{gone.capitalize()} by {by}"
        columns = [by, self.nouns, gone, "part"]
        section.listings.append(PageTable(title, columns, rows, frozenset({1, 2}), rest))
        return section

    def _browsers(self) -> list[Section]:
        """Return the browsers of clusters and of pairs; their texts share the room that there is."""
        found, rows = self.clusters.clusters if self.clusters else [], self.pairs.pairs if self.pairs else []
        removed = [[row for row in cluster.members if row["id"] != row["keeper"]] for cluster in found]
        members = [self.member_names(row) for several in removed for row in several]
        sides = iter(self._compared([*members, *map(self._pair_names, rows)]))
        clusters = [
            self._cluster_entry(cluster, tuple(replace(next(sides), value=self._like(row)) for row in several))
            for cluster, several in zip(found, removed, strict=True)
        ]
        pairs = sorted((self._pair_entry(row, next(sides)) for row in rows), key=lambda entry: entry.value)
        number = int(self.clusters.counts.sum()) if self.clusters and len(self.clusters.counts) else 0
        some = sample_note(number, len(clusters), ": the largest, and some of each size")
        few = sample_note(self.run.counts.get("pairs", len(pairs)), len(pairs))
        return [
            Section("cluster-browser", "Browse clusters", browser=Browser("c", "clusters", "Size", clusters, some)),
            Section("pair-browser", "Browse pairs", browser=Browser("p", "pairs", self.score.title(), pairs, few)),
        ]

    def _compared(self, pairs: list[tuple[Name, Name]]) -> list[Side]:
        """Return pairs of documents side by side, without their similarity, as far as their texts are known."""
        texts, cut = self.documents.texts, self.documents.cut
        known = [pair for pair in pairs if pair[0] in texts and pair[1] in texts]
        compared = [ComparedTexts(texts[a], texts[b], a in cut or b in cut) for a, b in known]
        shown = iter(within(compared, TEXT_BYTES, LONGEST_TEXT))
        sides = []
        for left, right in pairs:
            comparison = next(shown) if left in texts and right in texts else None
            earlier = EARLIER in (left[0], right[0])
            missing = "The other text is in an earlier run." if earlier else self.missing
            sides.append(Side(short(left[1]), short(right[1]), "", comparison, missing=missing))
        return sides

    def _like(self, row: dict[str, Any]) -> str:
        told = self.kept_for.get(str(row["id"])) or row
        known = (told.get(name) for name in ("similarity", "estimated_similarity", "distance"))
        return next((f"{value:.3f}" for value in known if value is not None), "")

    def _cluster_entry(self, cluster: SampledCluster, sides: tuple[Side, ...]) -> Entry:
        begins = self.text_of(cluster)
        title = line(begins, 90) if begins else short(cluster.name, 90)
        more = cluster.size - len(cluster.members)
        rest = f"And {counted(more, f'more {self.noun}')}." if more > 0 else ""
        name = short(cluster.name, 60) if begins else ""
        return Entry(cluster.size, counted(cluster.size, self.noun), title, name, sides, rest=rest)

    def _pair_entry(self, row: dict[str, Any], side: Side) -> Entry:
        left, right = self._pair_names(row)
        value, text = f"{row[self.column]:.3f}", self.text(right)
        note = "" if text is None else line(text, 70) or EMPTY
        title = f"{short(left[1], 60)} · {short(right[1], 60)}"
        return Entry(round(float(row[self.column]), 6), value, title, note, (replace(side, value=value),))


def _common_folder(paths: list[str]) -> int:
    """Return how many characters the folders of all paths have in common.

    >>> _common_folder(["/a/b/c", "/a/b/d"])
    5
    """
    common = posixpath.commonprefix(paths)
    return common.rfind("/") + 1
