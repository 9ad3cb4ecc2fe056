"""How the vectors of an index are compared: the settings, fixed when it is made, and arrays to checked vectors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Hashes
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.index.manifest import VECTOR_FORMAT, Manifest
from likewise.search.vectors.load import Vectors, space_of, vectors
from likewise.search.vectors.spaces import FARTHEST, SPACES, Bits, Space

NO_ROOM_LIMIT = 1 << 62
"""Vectors that are added or asked for are in memory already."""
TYPES = ("float32", "float64")
CREATED = ("measure", "within", "recall", "seed")
"""Settings that the header has under their own names."""


@dataclass(frozen=True)
class VectorScheme:
    """The settings of an index of vectors. within: the largest distance of an answer, None if there is none."""

    measure: str
    within: float | None
    recall: float
    seed: int

    shingler = None
    texts = False
    containment = False

    @classmethod
    def of(
        cls, owner: str, measure: str, within: float | None, recall: float, seed: int, dimension: int | None
    ) -> VectorScheme:
        """Check what the user gave."""
        if within is not None:
            within = check_distance(owner, measure, within, dimension)
        return cls(measure, within, checks.recall(owner, recall), checks.seed(owner, seed))

    @property
    def common(self) -> Hashes:
        """Nothing is left out of a vector."""
        return np.zeros(0, np.uint64)

    @property
    def kind(self) -> str:
        """What the index holds, in a word or two."""
        return "vectors"

    @property
    def aim(self) -> str:
        """What a query finds, for a person."""
        return self.measure if self.within is None else f"{self.measure} ≤ {self.within:g}"

    def header(self) -> dict[str, Any]:
        """Return all that a later process needs to know."""
        return {
            "format": VECTOR_FORMAT,
            "likewise": version("likewise"),
            "items": "vectors",
            "measure": self.measure,
            "family": "cells",
            "seed": self.seed,
            "within": self.within,
            "recall": self.recall,
        }

    @classmethod
    def restored(cls, header: Mapping[str, Any]) -> VectorScheme:
        """Return the scheme of a header."""
        return cls(header["measure"], header["within"], header["recall"], header["seed"])

    def check_same(self, where: str, given: Mapping[str, Any], owner: str) -> None:
        """Raise if a setting that the user expects is another one here."""
        mine = self.header()
        for name, value in given.items():
            if value is None:
                continue
            if name not in CREATED:
                raise IncompatibleError(f"{where} was made for vectors, which have no {name}")
            if mine[name] != value:
                raise IncompatibleError(f"{where} was made with {name} {mine[name]!r}, not {value!r}")

    def space(self, items: Any, manifest: Manifest, owner: str, threads: int, adding: bool) -> Space:
        """Return given vectors, checked; raise if those of the index have another dimension, or are of another type."""
        given, listed = _given(items, self.measure, owner)
        try:
            space = space_of(self.measure, [given], NO_ROOM_LIMIT, None)
        except ParameterError as error:
            raise ParameterError(f"{owner}: {error}") from error
        space.titles = (f"{owner}: vector {{}}", "")
        width, known = space.dimensions, manifest.dimension
        if len(space) and known is not None and width != known:
            what = "bits" if self.measure == "hamming" else "components"
            raise IncompatibleError(f"{owner}: the vectors of this index have {known:,} {what}, and these {width:,}")
        if not isinstance(space, Bits):
            table = space.part(slice(None))
            if adding and manifest.dtype is not None and len(space) and str(table.dtype) != manifest.dtype:
                if manifest.dtype == "float32" and not listed:
                    raise IncompatibleError(
                        f"{owner}: the vectors of this index are float32, and these {table.dtype}, which would be "
                        "rounded; convert them with astype('float32')"
                    )
                table = table.astype(manifest.dtype)
            titles, space = space.titles, SPACES[self.measure](table)
            space.titles = titles
        space.look(threads)
        return space

    def asked_within(self, owner: str, within: float | None, best: int, manifest: Manifest, where: str) -> float | None:
        """Return the largest distance of an answer to a query, None if there is none."""
        if within is None:
            if not best and self.within is None:
                raise ParameterError(f"{owner} needs 'k' or 'within': {where} was made without a largest distance.")
            return self.within
        within = check_distance(owner, self.measure, within, manifest.dimension)
        if self.within is not None and within > self.within:
            raise ParameterError.of(owner, "within", f"at most {self.within:g}, that of the index", within)
        return within

    def admitted(self, manifest: Manifest, dimension: int, dtype: str, owner: str) -> Manifest:
        """Return the manifest of an index with such vectors; raise if it has others, which somebody has just added."""
        if manifest.dimension not in (None, dimension) or manifest.dtype not in (None, dtype):
            raise IncompatibleError(
                f"{owner}: the vectors of this index have {manifest.dimension:,} components of type {manifest.dtype}, "
                f"and these {dimension:,} of type {dtype}"
            )
        return manifest.with_vectors(dimension, dtype)


def dtype_of(space: Space) -> str:
    """Return the name of the type of vectors, as the manifest has it."""
    return "bits" if isinstance(space, Bits) else str(space.table.dtype)


def empty_manifest(owner: str, measure: str, dimension: int | None, dtype: str | None) -> Manifest:
    """Return the manifest of a new index of vectors; what is None will be that of the first vectors."""
    if dimension is not None:
        dimension = checks.whole(owner, "dimension", dimension)
    if measure == "hamming":
        checks.unused(owner, {"dtype": (dtype, None)}, "for measure='hamming'")
        dtype = "bits"
    elif dtype is not None:
        dtype = checks.choice(owner, "dtype", dtype, TYPES)
    return Manifest().with_vectors(dimension, dtype)


def check_distance(owner: str, measure: str, within: object, dimension: int | None) -> float:
    """Return a distance from 0 to the largest possible one."""
    far = {"angle": 180.0, "hamming": float(dimension or FARTHEST)}.get(measure, FARTHEST)
    rule = f"a number from 0 to {far:g}".replace("e+", "e") + f" ({measure})"
    return checks.number(owner, "within", within, 0, far, rule=rule)


def _given(items: Any, measure: str, owner: str) -> tuple[Vectors, bool]:
    """Return vectors as a table; also whether their type says nothing, as that of a list of numbers."""
    if isinstance(items, str | bytes | os.PathLike):
        raise ParameterError(f"{owner}: this index was made for vectors, not for documents or files")
    listed = isinstance(items, list | tuple)
    if listed and items and all(isinstance(one, int | float) and not isinstance(one, bool) for one in items):
        items = [items]
    elif listed and items and isinstance(items[0], str):
        raise ParameterError(f"{owner}: this index was made for vectors, not for documents")
    elif listed and items and all(isinstance(one, np.ndarray) for one in items):
        items, listed = _stacked(items, owner), False
    elif isinstance(items, np.ndarray) and items.ndim == 1 and not (measure == "hamming" and items.dtype.kind == "u"):
        items = items[None, :]
    elif isinstance(items, pa.Array | pa.ChunkedArray):
        items = pa.table({"vector": items})
    elif not isinstance(items, np.ndarray) and not listed and hasattr(items, "tolist") and hasattr(items, "__array__"):
        items = np.asarray(items)
    try:
        return vectors(items, "vector", None, NO_ROOM_LIMIT, None, owner), listed
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(owner) else f"{owner}: {error}") from error


def _stacked(items: Any, owner: str) -> NDArray[Any]:
    shapes = [one.shape for one in items]
    odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is not None:
        raise InputError(f"{owner}: vector {odd} (counted from 0) has shape {shapes[odd]}, not {shapes[0]}")
    return np.stack(items)
