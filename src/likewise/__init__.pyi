# The public names of likewise, one list: `__init__.py` imports each of them from here when it is first used.

from . import apps, exact, measures, theory
from .apps.link import Links, link
from .base.arrays import Sets
from .errors import (
    ColumnError,
    FormatError,
    IncompatibleError,
    InputError,
    LikewiseError,
    MissingInput,
    OutputError,
    ParameterError,
    TextError,
)
from .families.banding import Banding
from .families.fields import SameField
from .families.grids import GridTriples
from .families.minhash import MinHash
from .families.simhash import SimHash
from .families.stripes import Stripes
from .families.tuning import Similarities, tune
from .families.vectors import BitSampling, CauchyLines, Hyperplanes, RandomLines, SignSketch, UnaryCode
from .families.weighted import WeightedMinHash
from .jobs.dedup import dedup
from .jobs.nearest import nearest
from .jobs.pairs import pairs
from .jobs.plan import plan
from .jobs.result import Dedup, Nearest, Pairs
from .jobs.rethreshold import rethreshold
from .search.cluster import Keep
from .shingle import Chars, StopWords, Tokens, Urls, Words, choose_k

__version__: str

__all__ = [
    "Banding",
    "BitSampling",
    "CauchyLines",
    "Chars",
    "ColumnError",
    "Dedup",
    "FormatError",
    "GridTriples",
    "Hyperplanes",
    "IncompatibleError",
    "InputError",
    "Keep",
    "LikewiseError",
    "Links",
    "MinHash",
    "MissingInput",
    "Nearest",
    "OutputError",
    "Pairs",
    "ParameterError",
    "RandomLines",
    "SameField",
    "Sets",
    "SignSketch",
    "SimHash",
    "Similarities",
    "StopWords",
    "Stripes",
    "TextError",
    "Tokens",
    "UnaryCode",
    "Urls",
    "WeightedMinHash",
    "Words",
    "__version__",
    "apps",
    "choose_k",
    "dedup",
    "exact",
    "link",
    "measures",
    "nearest",
    "pairs",
    "plan",
    "rethreshold",
    "theory",
    "tune",
]
