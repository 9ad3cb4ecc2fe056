"""Every public function with hostile arguments: the answer is a value without NaN, or one of our own errors.

Each entry of CALLS is a call that works. One argument after the other is replaced by each of the values that users pass
by mistake; a traceback of Python or NumPy, a warning, a NaN in the answer, or a call that takes for ever is a failure.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import signal
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import likewise
from likewise import exact, measures, theory
from likewise.apps.mirrors import contraction
from likewise.errors import LikewiseError
from likewise.families import signatures
from likewise.measures import batch
from likewise.theory import universal

SECONDS = 60
"""No call takes longer, even if it is compiled first."""

HOSTILE = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "minus one": -1,
    "zero": 0,
    "fraction": 1.5,
    "True": True,
    "None": None,
    "empty text": "",
    "text": "x",
    "empty list": [],
    "empty bytes": b"",
    "bytes": b"x",
    "dict": {"a": 1},
    "object": object(),
    "2**64": 2**64,
    "-2**63-1": -(2**63) - 1,
    "10**400": 10**400,
    "complex": 1j,
    "Decimal": Decimal("0.5"),
    "Fraction": Fraction(1, 2),
    "list of nan": [float("nan")],
    "list of None": [None],
    "list of text": ["x"],
    "nested nan": [[float("nan")]],
    "nested empty": [[]],
    "ragged": [[1], [1, 2]],
    "nan array": np.array([np.nan]),
    "empty array": np.zeros((0, 3)),
    "0-d array": np.array(1),
    "3-d array": np.zeros((1, 1, 1)),
    "objects": np.array([None, "a"], object),
    "huge in a list": [10**400],
    "function": len,
    "type": int,
}

SETS = [["a", "b"], ["b", "c"]]
POINTS = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.5]])
FAMILY = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]


def of_sets(module):
    names = ("jaccard", "jaccard_distance", "containment", "dice", "cosine", "overlap")
    a, b = (SETS, SETS) if module is batch else ("ab", "bc")
    return {f"{module.__name__}.{name}": (getattr(module, name), {"a": a, "b": b}) for name in names}


def families():
    """Constructors, and what users call on a family."""
    made = {
        "MinHash": (likewise.MinHash, {"seed": 1, "method": "fast"}, SETS),
        "WeightedMinHash": (likewise.WeightedMinHash, {"seed": 1}, [{"a": 1.5}, {"b": 2}]),
        "SimHash": (likewise.SimHash, {"seed": 1, "normals": "signs"}, ["to be", "or not"]),
        "Hyperplanes": (likewise.Hyperplanes, {"seed": 1}, POINTS),
        "SignSketch": (likewise.SignSketch, {"seed": 1}, POINTS),
        "RandomLines": (likewise.RandomLines, {"a": 1.0, "seed": 1}, POINTS),
        "CauchyLines": (likewise.CauchyLines, {"a": 1.0, "seed": 1}, POINTS),
        "Stripes": (likewise.Stripes, {"a": 1.0, "unit": "L2", "seed": 1}, POINTS),
        "BitSampling": (likewise.BitSampling, {"dimensions": 2, "seed": 1}, [[0, 1], [1, 1]]),
        "UnaryCode": (likewise.UnaryCode, {"dimensions": 2, "largest": 5, "seed": 1}, [[0, 1], [1, 5]]),
        "GridTriples": (
            likewise.GridTriples,
            {"squares": 9, "density": 0.2, "seed": 1, "together": 2},
            [[0, 1], [1, 5]],
        ),
        "SameField": (likewise.SameField, {"fields": ["a"], "seed": 1, "normalize": True}, [{"a": 1}, {"a": "x"}]),
    }
    calls = {}
    for name, (kind, options, items) in made.items():
        family = kind(**options)
        calls[name] = kind, options
        calls[f"{name}.hashes"] = family.hashes, {"items": items, "n": 4}
        calls[f"{name}.probability"] = family.probability, {"d": 0.5 if name != "BitSampling" else 1}
        calls[f"{name}.sensitivity"] = family.sensitivity, {"d1": 0.1, "d2": 0.9}
        calls[f"{name}.all_of"] = family.all_of, {"r": 2}
        calls[f"{name}.any_of"] = family.any_of, {"b": 2}
        calls[f"{name}.curve"] = family.curve, {"p": 0.5}
        calls[f"{name}.slope"] = family.slope, {"p": 0.5}
        calls[f"{name}.candidates"] = family.all_of(2).candidates, {"items": items, "most": 100, "sample": 10}
        calls[f"{name}.index"] = family.all_of(2).index, {"items": items}
        calls[f"{name}.query"] = family.all_of(2).index(items).query, {"item": items[0], "most": 100}
    minhash = likewise.MinHash()
    parts, signature = minhash.parts(SETS, 4), minhash.signatures(SETS, 4)
    weighted = likewise.WeightedMinHash().signatures([{"a": 1}], 4)
    return calls | {
        "MinHash.signatures": (minhash.signatures, {"sets": SETS, "n": 4}),
        "MinHash.parts": (minhash.parts, {"sets": SETS, "n": 4}),
        "MinHash.bbit": (minhash.bbit, {"sets": SETS, "n": 4, "b": 2}),
        "MinHash.finish": (minhash.finish, {"parts": parts}),
        "MinHash.merge": (lambda a, b: minhash.merge(a, b), {"a": parts, "b": parts}),
        "MinHash.skip": (likewise.MinHash(method="classic").skip, {"k": 3}),
        "MinHash.estimate": (minhash.estimate, {"a": signature[0], "b": signature[1]}),
        "MinHash.pair_estimates": (minhash.pair_estimates, {"signatures": signature, "least": 0.5, "most": 100}),
        "Hyperplanes.estimate": (likewise.Hyperplanes.estimate, {"a": [1, 0], "b": [1, 1]}),
        "Hyperplanes.from_directions": (likewise.Hyperplanes.from_directions, {"directions": POINTS}),
        "SignSketch.from_directions": (likewise.SignSketch.from_directions, {"directions": [[1, -1]]}),
        "RandomLines.from_directions": (
            likewise.RandomLines.from_directions,
            {"directions": POINTS, "a": 1.0, "offsets": 0.5},
        ),
        "WeightedMinHash.estimate": (likewise.WeightedMinHash.estimate, {"a": weighted[0], "b": weighted[0]}),
        "MinHash.from_permutations": (minhash.from_permutations, {"permutations": ["ab"], "universe": "ab"}),
        "MinHash.from_functions": (minhash.from_functions, {"functions": [lambda x: 1], "rows": 2}),
        "merge": (lambda a, b: signatures.merge(a, b), {"a": parts, "b": parts}),
        "bbit": (signatures.bbit, {"signatures": signature, "b": 2}),
        "estimate_bbit": (
            signatures.estimate_bbit,
            {"a": signatures.bbit(signature, 2), "b": signatures.bbit(signature, 2)},
        ),
        "standard_error": (signatures.standard_error, {"similarity": 0.5, "n": 10, "b": 2}),
        "Banding": (likewise.Banding, {"b": 2, "r": 3}),
        "Banding.probability": (likewise.Banding(2, 3).probability, {"s": 0.5}),
        "Banding.false_negative_area": (likewise.Banding(2, 3).false_negative_area, {"threshold": 0.5}),
        "Banding.false_positive_area": (likewise.Banding(2, 3).false_positive_area, {"threshold": 0.5}),
        "tune": (likewise.tune, {"threshold": 0.8, "recall": 0.9, "max_slots": 100, "items": 10, "similarities": None}),
        "Similarities.typical": (likewise.Similarities.typical, {"items": 10, "mean": 0.02}),
        "Signatures.load": (likewise.Signatures.load, {"path": "nothing"}),
        "BitSignatures.load": (likewise.BitSignatures.load, {"path": "nothing"}),
    }


def theories():
    square, table = theory.Affine(5), theory.Affine(5).table()
    return {
        "Affine": (theory.Affine, {"p": 5, "zero": True}),
        "CarterWegman": (theory.CarterWegman, {"p": 5, "m": 3, "zero": False}),
        "MultiplyShift": (theory.MultiplyShift, {"bits": 4, "out": 2}),
        "MultiplyAddShift": (theory.MultiplyAddShift, {"bits": 4, "out": 2}),
        "HashFamily.draw": (square.draw, {"source": random.Random(1)}),
        "PerfectHash": (theory.PerfectHash, {"keys": ["a", "b"], "seed": 1, "alpha": 2, "beta": 4}),
        "PerfectHash.get": (lambda key: theory.PerfectHash(["a"]).get(key), {"key": "a"}),
        "agreement": (theory.agreement, {"family": FAMILY, "a": [0], "b": [0, 1]}),
        "box_muller": (theory.box_muller, {"u": [0.5], "v": [0.5]}),
        "broken_axioms": (lambda tolerance: theory.broken_axioms(max, [1, 2], None, tolerance), {"tolerance": 0.1}),
        "cap_share": (theory.cap_share, {"degrees": 30}),
        "chance": (theory.chance, {"family": FAMILY, "subset": [0, 1], "element": 0}),
        "cyclic_family": (theory.cyclic_family, {"n": 4}),
        "enough_permutations": (theory.enough_permutations, {"n": 4, "epsilon": 0.1, "failure": 0.5}),
        "epsilon": (theory.epsilon, {"family": FAMILY, "largest": 2}),
        "extremes": (theory.extremes, {"family": FAMILY}),
        "gaussian_vectors": (
            theory.gaussian_vectors,
            {"count": 4, "mean": [0.0, 1.0], "covariance": [[1.0, 0.0], [0.0, 1.0]], "seed": 1},
        ),
        "gaussians": (theory.gaussians, {"count": 4, "seed": 1}),
        "halving_family": (theory.halving_family, {"n": 2}),
        "halving_permutation": (theory.halving_permutation, {"n": 4, "source": random.Random(1)}),
        "halving_size": (theory.halving_size, {"n": 4}),
        "is_minwise": (theory.is_minwise, {"family": FAMILY, "largest": 2}),
        "is_pairwise_independent": (theory.is_pairwise_independent, {"table": table, "m": 5}),
        "is_weakly_universal": (theory.is_weakly_universal, {"table": table, "m": 5}),
        "latitude_longitude": (theory.latitude_longitude, {"count": 4, "seed": 1}),
        "lcm_bound": (theory.lcm_bound, {"n": 4}),
        "linear_bound": (theory.linear_bound, {"k": 4}),
        "linear_chance": (theory.linear_chance, {"p": 5, "subset": [0, 1], "element": 0}),
        "linear_family": (theory.linear_family, {"p": 5}),
        "polar_share": (theory.polar_share, {"points": [[0.0, 0.0, 1.0]], "degrees": 30}),
        "random_directions": (theory.random_directions, {"count": 4, "dimensions": 3, "seed": 1}),
        "random_family": (theory.random_family, {"n": 4, "size": 2, "seed": 1}),
        "same_side": (theory.same_side, {"normals": [[1.0, 0.0]], "x": [1.0, 0.0], "y": [0.0, 1.0]}),
        "worst_case": (theory.worst_case, {"family": FAMILY, "largest": 2}),
        "worst_collision": (theory.worst_collision, {"table": table}),
    }


def exacts():
    index, bounds = exact.Index(SETS, 0.5), exact.Bounds("jaccard", 0.5)
    options = {"threshold": 0.5, "measure": "jaccard", "bag": False, "threads": 1}
    return {
        "exact.pairs": (exact.pairs, {"sets": SETS, "index": "auto", "other": SETS, "memory": None, **options}),
        "exact.identical": (exact.identical, {"items": ["ab", "ab"], "positions": 2, "seed": 1, "threads": 1}),
        "exact.explain": (exact.explain, {"sets": SETS, "other": SETS, "memory": None, **options}),
        "exact.strings": (exact.strings, {"sets": SETS, "order": None}),
        "exact.compared": (
            exact.compared,
            {"a": 3, "b": 3, "universe": 9, "threshold": 0.5, "index": "prefix", "measure": "jaccard"},
        ),
        "exact.Index": (exact.Index, {"sets": SETS, **options}),
        "exact.Index.add": (index.add, {"sets": []}),
        "exact.Index.query": (index.query, {"tokens": ["a"], "k": 1}),
        "exact.Index.query_many": (index.query_many, {"sets": SETS, "k": 1}),
        "exact.Bounds": (exact.Bounds, {"measure": "jaccard", "threshold": 0.5}),
        "exact.Bounds.least": (bounds.least, {"a": 3, "b": 4}),
        "exact.Bounds.shortest": (bounds.shortest, {"length": 3}),
        "exact.Bounds.longest": (bounds.longest, {"length": 3, "limit": 10}),
        "exact.Bounds.prefix": (bounds.prefix, {"length": 3}),
        "exact.Bounds.positions": (bounds.positions, {"length": 3, "i": 1}),
    }


def shinglers():
    form = {"casefold": True, "normalize": None, "bits": 64, "bag": False}
    made = {
        "Chars": (likewise.Chars, {"k": 3, **form, "whitespace": "collapse"}),
        "Words": (likewise.Words, {"k": 3, **form}),
        "Tokens": (likewise.Tokens, {"k": 1, "bits": 64, "bag": False, "separator": None, "counts": False}),
        "StopWords": (likewise.StopWords, {"languages": "en", "words": ["x"], "letters": 0, "rule": None, "bits": 64}),
        "Urls": (likewise.Urls, {"stop": ["html"], "host": True, "position": "start", "bits": 64, "bag": False}),
    }
    calls = dict(made)
    for name, (kind, options) in made.items():
        shingler = kind(**options)
        calls[f"{name}.sets"] = shingler.sets, {"urls" if name == "Urls" else "texts": ["to be or not to be"]}
        calls[f"{name}.shingles"] = shingler.shingles, {"url" if name == "Urls" else "text": "to be or not"}
    lists = {"lists": SETS, "bag": False, "threads": 1}
    signed = {"signatures": np.zeros((3, 4), np.int64), "banding": likewise.Banding(2, 2), "most": 10}
    return calls | {
        "candidates": (likewise.candidates, signed),
        "tune by slots": (likewise.tune, {"threshold": 0.5, "slots": 12, "prefer": "recall"}),
        "tune by weights": (likewise.tune, {"threshold": 0.5, "weights": (1, 2), "max_slots": 20}),
        "Sets.from_lists": (likewise.Sets.from_lists, lists),
        "choose_k": (likewise.choose_k, {"lengths": [100], "alphabet": 20, "rarity": 0.01}),
        "Keep": (likewise.Keep, {"rule": "first", "column": None}),
        "Keep.parse": (likewise.Keep.parse, {"policy": "first"}),
        "explain": (likewise.explain, {"a": "to be", "b": "to be", "length": 2, "gap": 1, "shingle": "chars:5"}),
    }


CALLS = {
    **of_sets(measures),
    **of_sets(batch),
    "bag_jaccard": (measures.bag_jaccard, {"a": "ab", "b": "b", "union": "max"}),
    "lr": (measures.lr, {"x": [1, 2], "y": [2, 3], "r": 2}),
    "angle": (measures.angle, {"x": [1, 2], "y": [2, 3]}),
    "hamming": (measures.hamming, {"x": [1, 2], "y": [2, 3]}),
    "edit": (measures.edit, {"x": "ab", "y": "bc", "mutations": True, "transpositions": False}),
    "edit with swaps": (measures.edit, {"x": "ab", "y": "bc", "mutations": False, "transpositions": True}),
    "batch.bag_jaccard": (batch.bag_jaccard, {"a": SETS, "b": SETS, "union": "sum"}),
    "batch.lr": (batch.lr, {"x": POINTS, "y": POINTS, "r": 2}),
    "batch.angle": (batch.angle, {"x": POINTS, "y": POINTS}),
    "batch.hamming": (batch.hamming, {"x": POINTS, "y": POINTS, "packed": False}),
    "batch.edit": (batch.edit, {"x": ["a"], "y": ["b"], "mutations": True, "transpositions": False, "threads": 1}),
    **families(),
    **theories(),
    **exacts(),
    **shinglers(),
}
CASES = [(name, parameter) for name, (_, options) in CALLS.items() for parameter in options]


TEXTS = ["to be or not to be that is the question", "to be or not to be that is the riddle", "nothing else"]
URLS = ["http://a.org/one/two", "http://b.org/one/two", "http://a.org/three"]
PEOPLE = {"id": [1, 2, 3], "name": ["Ann Lee", "Bo Diaz", "Ann Leigh"], "born": ["1990", "1985", "1990"]}
BOUGHT = [("ann", "rum"), ("ann", "tea"), ("bob", "rum"), ("bob", "tea"), ("cy", "tea")]
RUN = {"threads": 1, "seed": 1, "memory": None, "progress": None}
SEARCH = {
    "text": "text", "id": None, "shingle": "words:2", "threshold": 0.5, "recall": 0.9, "method": "auto", **RUN,
    "spill": None, "sketch": "fast", "bands": None, "rows": None, "max_slots": 100, "ignore_common": None,
    "estimate": False, "certify": None, "on_error": "stop", "encoding_errors": "strict", "lines": False, "html": False,
    "batch_rows": None,
}  # fmt: skip
VECTORS = {"vector": "vector", "id": None, "recall": 0.9, "method": "auto", **RUN, "spill": None}
JOBS = {
    "dedup": (likewise.dedup, {"source": TEXTS, "keep": "first", **SEARCH}),
    "pairs": (likewise.pairs, {"source": TEXTS, "other": TEXTS, "measure": "jaccard", "below": 0.9, "k": 1, **SEARCH}),
    "pairs of vectors": (
        likewise.pairs,
        {"source": POINTS, "measure": "l2", "within": 1.0, "beyond": 0.1, "k": 1, **VECTORS},
    ),
    "nearest": (likewise.nearest, {"source": POINTS, "other": POINTS, "k": 1, "measure": "angle", **VECTORS}),
    "passages": (likewise.passages, {"suspects": TEXTS, "sources": TEXTS, "length": 3, "gap": 1, "threads": 1}),
    "dedup of vectors": (
        likewise.dedup,
        {"source": POINTS, "measure": "l2", "within": 1.0, "keep": "first", "certify": 5, **VECTORS},
    ),
    "dedup of lines": (
        likewise.dedup,
        {
            "source": TEXTS, "unit": "lines", "min_words": 5, "more_than": 1, "min_left": 1, "keep": "first",
            "threads": 1,
        },
    ),
    "decontaminate": (
        likewise.decontaminate,
        {
            "corpus": TEXTS, "tests": TEXTS, "action": "drop", "length": 8, "share": 0.5, "common": None, "rare": 3,
            "test_lines": False, "threads": 1,
        },
    ),
    "link": (
        likewise.link,
        {
            "a": PEOPLE, "b": PEOPLE, "id": "id", "fields": ["name", "born"], "weights": None, "threshold": None,
            "one_to_one": None, "window": {"born": (0, 9)}, "validate": None, "true": None, "truth": [(1, 1)],
            "training": None, "nicknames": None,
            "threads": 1, "seed": 1, "progress": None,
        },
    ),
    "mirrors": (
        likewise.mirrors,
        {"urls": URLS, "threshold": 0.5, "recall": 0.9, "stop": ["html"], "position": "start", "least": 1, "seed": 1,
         "suspects": None},
    ),
    "articles": (likewise.articles, {"pages": TEXTS, "threshold": 0.5, "recall": 0.9, "shingle": "stopwords:en"}),
    "recommend": (
        likewise.recommend,
        {
            "source": BOUGHT, "users": ["ann"], "by": "customers", "count": 1, "neighbours": 1, "threshold": 0.2,
            "k": 1, "view": "auto", "like": None, "hate": None, "union": "max", "groups": 0.5, "method": "auto",
            "recall": 0.9, "seed": 1, "threads": 1, "memory": None, "twice": "last", "on_error": "stop",
        },
    ),
    "contract": (
        contraction.contract,
        {
            "source": [0, 0, 1], "target": [1, 2, 2], "nodes": 3, "same": [1, 1, 2], "host": [0, 0, 1], "similar": 0.9,
            "least": 1, "template": 0.5, "common": 10,
        },
    ),
}  # fmt: skip
JOB_CASES = [(name, parameter) for name, (_, options) in JOBS.items() for parameter in options]


@contextlib.contextmanager
def at_most(seconds):
    """Raise in a call that takes longer."""

    def stop(*_):
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def has_nan(value):
    """Tell whether there is a NaN in an answer."""
    if isinstance(value, float | np.floating):
        return value != value
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, dict):
        return any(map(has_nan, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_nan, value))
    if dataclasses.is_dataclass(value):
        return any(has_nan(getattr(value, field.name)) for field in dataclasses.fields(value))
    if hasattr(value, "to_pylist"):
        return has_nan(value.to_pylist())
    return False


def outcome(function, options):
    """Return what is wrong with a call; None if it returns a value or raises one of our errors."""
    with warnings.catch_warnings(), at_most(SECONDS):
        warnings.simplefilter("error")
        try:
            found = function(**options)
        except (LikewiseError, MemoryError):
            return None
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:120]}"
    return "NaN in the answer" if has_nan(found) else None


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_themselves_work(name):
    function, options = CALLS[name]
    if name.endswith(".load"):
        return
    assert outcome(function, options) is None
    with contextlib.suppress(StopIteration):
        function(**options)


@pytest.mark.parametrize(("name", "parameter"), CASES, ids=[f"{name}-{parameter}" for name, parameter in CASES])
def test_hostile_arguments(name, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, options = CALLS[name]
    wrong = {kind: outcome(function, {**options, parameter: value}) for kind, value in HOSTILE.items()}
    assert {kind: told for kind, told in wrong.items() if told is not None} == {}


@pytest.mark.parametrize("name", JOBS)
def test_the_jobs_themselves_work(name):
    function, options = JOBS[name]
    function(**options)


@pytest.mark.parametrize(("name", "parameter"), JOB_CASES, ids=[f"{name}-{parameter}" for name, parameter in JOB_CASES])
def test_hostile_arguments_of_jobs(name, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, options = JOBS[name]
    values = {kind: value for kind, value in HOSTILE.items() if parameter != "progress" or not callable(value)}
    wrong = {kind: outcome(function, {**options, parameter: value}) for kind, value in values.items()}
    assert {kind: told for kind, told in wrong.items() if told is not None} == {}


def test_every_public_function_of_measures_theory_and_exact_is_called():
    called = {name.rpartition(".")[2] for name in CALLS}
    public = {*measures.__all__, *theory.__all__, *exact.__all__}
    results = {"Chances", "Tries", "WorstCase", "HashFamily"}
    assert public - results - called == set()
    assert universal.HashFamily is theory.HashFamily
