"""likewise finds similar items without comparing all pairs: verified, with the recall you ask for, and explained."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise import exact as exact
    from likewise import measures as measures
    from likewise import theory as theory
    from likewise.answer import Dedup as Dedup
    from likewise.arrays import Sets as Sets
    from likewise.cluster import Keep as Keep
    from likewise.errors import ColumnError as ColumnError
    from likewise.errors import FormatError as FormatError
    from likewise.errors import IncompatibleError as IncompatibleError
    from likewise.errors import InputError as InputError
    from likewise.errors import LikewiseError as LikewiseError
    from likewise.errors import MissingInput as MissingInput
    from likewise.errors import OutputError as OutputError
    from likewise.errors import ParameterError as ParameterError
    from likewise.errors import TextError as TextError
    from likewise.families.banding import Banding as Banding
    from likewise.families.fields import SameField as SameField
    from likewise.families.grids import GridTriples as GridTriples
    from likewise.families.minhash import MinHash as MinHash
    from likewise.families.stripes import Stripes as Stripes
    from likewise.families.terms import SimHash as SimHash
    from likewise.families.tuning import Similarities as Similarities
    from likewise.families.tuning import tune as tune
    from likewise.families.vectors import BitSampling as BitSampling
    from likewise.families.vectors import CauchyLines as CauchyLines
    from likewise.families.vectors import Hyperplanes as Hyperplanes
    from likewise.families.vectors import RandomLines as RandomLines
    from likewise.families.vectors import SignSketch as SignSketch
    from likewise.families.vectors import UnaryCode as UnaryCode
    from likewise.families.weighted import WeightedMinHash as WeightedMinHash
    from likewise.forecast import plan as plan
    from likewise.pipeline import dedup as dedup
    from likewise.pipeline import pairs as pairs
    from likewise.rethresholding import rethreshold as rethreshold
    from likewise.shingle import Chars as Chars
    from likewise.shingle import StopWords as StopWords
    from likewise.shingle import Tokens as Tokens
    from likewise.shingle import Words as Words
    from likewise.shingle import choose_k as choose_k
    from likewise.urls import Urls as Urls
    from likewise.vectors.neighbours import nearest as nearest

    __version__: str

_HOME = {
    "Banding": "likewise.families.banding",
    "Chars": "likewise.shingle",
    "Dedup": "likewise.answer",
    "Keep": "likewise.cluster",
    "MinHash": "likewise.families.minhash",
    "BitSampling": "likewise.families.vectors",
    "CauchyLines": "likewise.families.vectors",
    "GridTriples": "likewise.families.grids",
    "Hyperplanes": "likewise.families.vectors",
    "RandomLines": "likewise.families.vectors",
    "SameField": "likewise.families.fields",
    "SignSketch": "likewise.families.vectors",
    "SimHash": "likewise.families.terms",
    "Stripes": "likewise.families.stripes",
    "UnaryCode": "likewise.families.vectors",
    "Urls": "likewise.urls",
    "WeightedMinHash": "likewise.families.weighted",
    "Sets": "likewise.arrays",
    "Similarities": "likewise.families.tuning",
    "StopWords": "likewise.shingle",
    "Tokens": "likewise.shingle",
    "Words": "likewise.shingle",
    "choose_k": "likewise.shingle",
    "dedup": "likewise.pipeline",
    "nearest": "likewise.vectors.neighbours",
    "pairs": "likewise.pipeline",
    "plan": "likewise.forecast",
    "rethreshold": "likewise.rethresholding",
    "tune": "likewise.families.tuning",
    "ColumnError": "likewise.errors",
    "FormatError": "likewise.errors",
    "IncompatibleError": "likewise.errors",
    "InputError": "likewise.errors",
    "LikewiseError": "likewise.errors",
    "MissingInput": "likewise.errors",
    "OutputError": "likewise.errors",
    "ParameterError": "likewise.errors",
    "TextError": "likewise.errors",
}
_MODULES = ("exact", "measures", "theory")

__all__ = [*_HOME, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import likewise` and `likewise --help` are quick."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"likewise.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("likewise")
    else:
        raise AttributeError(f"module 'likewise' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
