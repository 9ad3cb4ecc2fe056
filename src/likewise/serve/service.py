"""What a service does with its index, in threads: bytes of a request in, bytes of an answer out."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import IncompatibleError, InputError
from likewise.index import Index
from likewise.index.item_ids import as_ids, fitted_ids
from likewise.index.vector_scheme import VectorScheme
from likewise.index.view import IndexView
from likewise.serve.models import LONGEST_ID, AddBody, QueryBody, parsed
from likewise.serve.refusal import Refusal
from likewise.serve.settings import MOST_ANSWERS, OWNER, ServiceSettings, TokenRoles

EXAMPLES, EXAMPLE_LENGTH = 20, 600
"""Of so many items the one whose length is nearest to so many characters is the example of the page."""
_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Service:
    """An index, and what requests may ask of it. Every method may be called from any thread."""

    def __init__(self, index: Index, settings: ServiceSettings, tokens: TokenRoles | None = None) -> None:
        self.index = index
        self._vectors = index.scheme if isinstance(index.scheme, VectorScheme) else None
        self.settings = settings
        self.tokens = tokens or TokenRoles(settings.token, settings.token_file)

    def count(self) -> int:
        """Return the number of items."""
        return len(self.index)

    def info(self) -> bytes:
        """Return what a client needs to know of the index and the limits."""
        info, settings = self.index.info(), self.settings
        shingling = info.get("shingling")
        return _packed(
            {
                "items": info["count"],
                "kind": info["items"],
                "ids": info["ids"],
                "shingle": shingling["shingle"] if shingling else None,
                "measure": info["measure"],
                "threshold": info.get("threshold"),
                "within": info.get("within"),
                "dimension": info.get("dimension"),
                "recall": info["recall"],
                "containment": info.get("containment", False),
                "texts": info.get("texts", False),
                "writable": self.tokens.writable,
                "private": settings.private,
                "max_body": settings.body_limit,
                "max_batch": settings.max_batch,
            }
        )

    def query(self, body: bytes) -> bytes:
        """Answer a query."""
        asked = parsed(QueryBody, body, self.settings.values_limit)
        if (asked.text is None) == (asked.items is None):
            raise Refusal(422, "a query has either 'text', one document, or 'items', a list")
        items: list[Any] = [asked.text] if asked.items is None else asked.items
        self._check_batch(items)
        if len(items) * asked.k > MOST_ANSWERS:
            raise Refusal(422, f"{len(items):,} items with k = {asked.k:,} may have more than {MOST_ANSWERS:,} answers")
        if self._vectors is not None and asked.text is not None:
            raise Refusal(422, "this index holds vectors: give 'items', lists of numbers")
        given = self._given(items)
        asked_for = asked.k, asked.threshold, asked.measure, asked.within
        queries, ids, values = self.index.answers(given, *asked_for, None, IndexView.id_list)
        measured = self.index.scheme.measured
        answers: list[list[dict[str, Any]]] = [[] for _ in items]
        for query, id, value in zip(queries.tolist(), ids, values.tolist(), strict=True):
            answers[query].append({"id": id, measured: value})
        return _packed({"answers": answers})

    def add(self, body: bytes) -> bytes:
        """Add items."""
        asked = parsed(AddBody, body, self.settings.values_limit)
        self._check_batch(asked.items)
        if asked.ids is not None and len(asked.ids) != len(asked.items):
            raise Refusal(422, f"there are {len(asked.ids):,} ids and {len(asked.items):,} items")
        for id in asked.ids or ():
            if isinstance(id, str) and len(id.encode()) > LONGEST_ID:
                raise Refusal(422, f"an id has more than {LONGEST_ID:,} bytes")
        try:
            added = self.index.add(asked.ids, self._given(asked.items), replace=asked.replace)
        except InputError as error:
            known = [] if asked.replace else [id for id in asked.ids or () if id in self.index]
            if known:
                more = f" and {len(known) - 1:,} more" if len(known) > 1 else ""
                message = f"there is an item with the id {known[0]!r}{more} already, and 'replace' is false"
                raise Refusal(409, message) from error
            raise
        return _packed({"added": added, "items": len(self.index)})

    def get(self, path: str) -> bytes:
        """Return an item."""
        try:
            return self._item(self._known(path))
        except InputError as error:  # removed meanwhile
            raise _no_item(path) from error

    def _item(self, id: int | str) -> bytes:
        answer: dict[str, Any] = {"id": id, "text": None}
        scheme = self.index.scheme
        if scheme.texts:
            answer["text"] = self.index.get([id])[0]
        elif isinstance(scheme, VectorScheme) and scheme.measure != "hamming":
            answer["vector"] = self.index.get([id])[0].tolist()
        return _packed(answer)

    def example(self) -> bytes:
        """Return an item to try a query with: one of the first, and of a length to read."""
        with self.index.snapshot() as view:
            ids = view.first_ids(EXAMPLES).to_pylist()
        if not ids:
            raise Refusal(404, "the index is empty: there is nothing to try")
        if self.index.scheme.texts:
            lengths = [abs(len(text) - EXAMPLE_LENGTH) for text in self.index.get(ids)]
            ids = [ids[lengths.index(min(lengths))]]
        return self._item(ids[0])

    def remove(self, path: str) -> bytes:
        """Remove an item."""
        removed = self.index.remove([self._known(path)], missing="skip")
        if not removed:
            raise _no_item(path)
        return _packed({"removed": removed, "items": len(self.index)})

    def _known(self, path: str) -> int | str:
        """Return the id that a path names, as the index has it: a number if its ids are numbers."""
        kind = self.index.info()["ids"]
        try:
            ids = fitted_ids(as_ids([path], OWNER), kind) if kind else None
        except (InputError, IncompatibleError) as error:
            raise _no_item(path) from error
        id = None if ids is None else ids[0].as_py()
        if id is None or id not in self.index:
            raise _no_item(path)
        found: int | str = id
        return found

    def _given(self, items: list[Any]) -> Any:
        """Return items as the index takes them: lists of numbers as an array, if it holds vectors."""
        scheme = self._vectors
        if scheme is None or not items:
            return items
        for number, item in enumerate(items):
            if not isinstance(item, list) or not item or any(isinstance(one, str) for one in item):
                raise Refusal(422, f"items.{number}: this index holds vectors: a list of numbers is needed")
            if len(item) != len(items[0]):
                raise Refusal(422, f"items.{number}: {len(item):,} numbers, and {len(items[0]):,} in items.0")
        if scheme.measure != "hamming":
            return [[float(one) for one in item] for item in items]
        if any(one not in (0, 1) for item in items for one in item):
            raise Refusal(422, "items: this index holds bits: lists of 0 and 1 are needed")
        return np.array(items, bool)

    def _check_batch(self, items: list[Any]) -> None:
        if len(items) > self.settings.max_batch:
            raise Refusal(422, f"{len(items):,} items in one request; the most is {self.settings.max_batch:,}")

    def warm(self) -> None:
        """Add to a small index like this one and query it, so that the first request waits for no compilation."""
        scheme = self.index.scheme
        if isinstance(scheme, VectorScheme):
            self._warm_vectors(scheme.measure)
            return
        texts = ["one of two items that are much alike", "two of two items that are much alike"]
        items: list[Any] = texts if scheme.shingler is not None else [text.split() for text in texts]
        with tempfile.TemporaryDirectory(prefix="likewise-") as folder:
            like: dict[str, Any] = {
                "shingle": scheme.shingler,
                "sketch": scheme.minhash.method,
                "containment": scheme.containment,
            }
            with Index.create(Path(folder) / "warm", threshold=0.1, threads=1, **like) as index:
                index.add(["a", "b"], items)
                for measure in ("jaccard", "containment") if scheme.containment else ("jaccard",):
                    index.query(items, 1, measure=measure)
                index.query(items[:1], 1)
                index.remove(["a"])
                if scheme.texts:
                    index.get(["b"])

    def _warm_vectors(self, measure: str) -> None:
        kind = str(self.index.info()["dtype"] or "float64")
        table = np.eye(2, 64, dtype=bool) if measure == "hamming" else np.eye(2, 64, dtype=kind)
        with (
            tempfile.TemporaryDirectory(prefix="likewise-") as folder,
            Index.create(Path(folder) / "warm", measure=measure, threads=1) as index,
        ):
            index.add(["a", "b"], table)
            index.query(table, 1)
            index.remove(["a"])


def _no_item(path: str) -> Refusal:
    return Refusal(404, f"there is no item with the id {path[:100]!r}")


def _packed(value: dict[str, Any]) -> bytes:
    return _json(value).encode()
