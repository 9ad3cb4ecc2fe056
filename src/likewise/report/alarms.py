"""What deserves a look in a run of documents: giant clusters, templates, empty documents, a recall below its target."""

from __future__ import annotations

from likewise.base.words import counted
from likewise.report.page import Alarm
from likewise.report.similar_documents import SimilarDocuments
from likewise.report.words import EMPTY, share, short

GIANT = 0.01
"""A cluster with more than this part of all documents is worth a look; and with at least GIANT_AT_LEAST of them."""
GIANT_AT_LEAST = 50
MOSTLY = 0.9
"""A source of which this part is removed is worth a look; and with at least MOSTLY_AT_LEAST documents."""
MOSTLY_AT_LEAST = 20
EXCERPT = 600
"""Characters of an offending text that are shown."""


def document_alarms(seen: SimilarDocuments) -> list[Alarm]:
    """Return the alarms of a run of documents."""
    return [*_empty(seen), *_giants(seen), *_templates(seen), *_sources(seen), *_completeness(seen)]


def _empty(seen: SimilarDocuments) -> list[Alarm]:
    """Empty documents are copies of each other: all but one are removed."""
    known = seen.run.counts.get("empty")
    if known:
        return [
            Alarm(
                f"{counted(known, seen.noun)} without words",
                "They are identical only because they are empty.",
                urgent=False,
            )
        ]
    for cluster in seen.clusters.clusters if seen.clusters else []:
        if seen.text_of(cluster) == EMPTY:
            told = "They have no words, so they count as identical: one is kept, the others are removed."
            return [Alarm(f"{counted(cluster.size, seen.noun)} are empty", told)]
    return []


def _giants(seen: SimilarDocuments) -> list[Alarm]:
    items = seen.run.counts.get("items", 0)
    alarms: list[Alarm] = []
    for cluster in seen.clusters.clusters if seen.clusters else []:
        text = seen.text_of(cluster)
        if cluster.size < max(GIANT_AT_LEAST, GIANT * items) or text == EMPTY or len(alarms) == 3:
            continue
        part = share(cluster.size, items)
        title = f"One cluster has {cluster.size:,} {seen.nouns}, {part} of all"
        told = (
            "Is it a template, a form letter, an error page? If the text below should not count, see --ignore-common."
        )
        alarms.append(Alarm(title, told, () if text is None else (short(text, EXCERPT),)))
    return alarms


def _templates(seen: SimilarDocuments) -> list[Alarm]:
    details = seen.run.details
    alarms = []
    crowds = details.get("crowds")
    if crowds:
        listed = [
            f"in {shingle['documents']:,} of {crowd['documents']:,}: {short(shingle['shingle'], 200)}"
            for crowd in crowds["largest"][:5]
            for shingle in crowd["shingles"][:2]
        ]
        crowd = f"{counted(crowds['crowds'], 'crowd')} of {counted(crowds['documents'], seen.noun)}"
        title = f"{crowd} that have much text in common"
        told = "Not all of their pairs were compared one by one; the shared text is a template or boilerplate."
        if crowds["unchecked"]:
            kept = counted(crowds["unchecked"], seen.noun)
            told += f" {kept} kept without being compared with all other kept documents."
        if not crowds["complete"]:
            told += " There are too many pairs to list them all."
        alarms.append(Alarm(title, told, ("\n".join(listed),) if listed else (), urgent=bool(crowds["unchecked"])))
    ignored = details.get("ignored")
    if ignored and ignored["shingles"]:
        listed = [
            f"in {one['documents']:,} of {ignored['of_documents']:,}: {short(one['shingle'], 200)}"
            for one in ignored["most_common"][:5]
        ]
        title = f"{counted(ignored['shingles'], 'common shingle')} ignored"
        alarms.append(Alarm(title, "They were ignored in comparisons.", ("\n".join(listed),), urgent=False))
    return alarms


def _sources(seen: SimilarDocuments) -> list[Alarm]:
    if seen.run.command not in ("dedup", "rethreshold"):
        return []
    tallies, by = seen.documents.tallies, seen.documents.by
    worst = [
        (name, one)
        for name, one in tallies.items()
        if one.total >= MOSTLY_AT_LEAST and one.removed >= MOSTLY * one.total and len(tallies) > 1
    ]
    worst.sort(key=lambda entry: -entry[1].removed)
    return [
        Alarm(f"{share(one.removed, one.total)} of {by} {short(name or '(no value)', 80)} is removed",
              f"{one.removed:,} of {one.total:,} {seen.nouns}.")
        for name, one in worst[:3]
    ]  # fmt: skip


def _completeness(seen: SimilarDocuments) -> list[Alarm]:
    certificate, recall = seen.run.stats["certificate"], seen.run.parameters.get("recall")
    if certificate and certificate["recall"] is not None and recall is not None and certificate["high"] < recall:
        between = f"between {certificate['low']:.3f} and {certificate['high']:.3f}"
        told = f"It is {between} with 95 % confidence; {recall:g} was requested."
        return [Alarm("The measured recall is below the requested recall", told)]
    return []
