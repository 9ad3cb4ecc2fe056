# The public names of likewise, in one list; `__init__.py` imports each of them when it is first used.

from . import apps, exact, measures, theory
from .apps.articles import Articles, articles
from .apps.decontaminate import Decontamination
from .apps.fingerprints import Fingerprints, fingerprints
from .apps.link import Links, link, relink
from .apps.mirrors import Mirrors, mirrors
from .apps.passages import Explanation, Passages, explain, passages
from .apps.recommend import Recommendations, recommend
from .apps.units import DedupUnits
from .base.arrays import Sets
from .engines import decontaminate, dedup, pairs, rethreshold
from .errors import (
    ColumnError,
    DamagedError,
    FormatError,
    IncompatibleError,
    InputError,
    LikewiseError,
    MissingExtra,
    MissingInput,
    OutputError,
    ParameterError,
    TextError,
)
from .families.banding import Banding
from .families.fields import SameField
from .families.grids import GridTriples
from .families.minhash import MinHash
from .families.running import candidates
from .families.signatures import BitSignatures, Signatures
from .families.stripes import Stripes
from .families.tuning import Similarities, tune
from .families.vectors import BitSampling, CauchyLines, Hyperplanes, RandomLines, SignSketch, UnaryCode
from .families.weighted import SimHash, WeightedMinHash
from .index import Index
from .jobs.plan import Forecast, plan
from .jobs.result import Dedup, Nearest, Pairs
from .jobs.vector_dedup import DedupVectors
from .jobs.vectors import nearest
from .report import write_report
from .search.cluster import Keep
from .search.exact.identical import identical
from .shingle import Chars, StopWords, Tokens, Urls, Words, choose_k

__version__: str

__all__ = [
    "Articles",
    "Banding",
    "BitSampling",
    "BitSignatures",
    "CauchyLines",
    "Chars",
    "ColumnError",
    "DamagedError",
    "Decontamination",
    "Dedup",
    "DedupUnits",
    "DedupVectors",
    "Explanation",
    "Fingerprints",
    "Forecast",
    "FormatError",
    "GridTriples",
    "Hyperplanes",
    "IncompatibleError",
    "Index",
    "InputError",
    "Keep",
    "LikewiseError",
    "Links",
    "MinHash",
    "Mirrors",
    "MissingExtra",
    "MissingInput",
    "Nearest",
    "OutputError",
    "Pairs",
    "ParameterError",
    "Passages",
    "RandomLines",
    "Recommendations",
    "SameField",
    "Sets",
    "SignSketch",
    "Signatures",
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
    "articles",
    "candidates",
    "choose_k",
    "decontaminate",
    "dedup",
    "exact",
    "explain",
    "fingerprints",
    "identical",
    "link",
    "measures",
    "mirrors",
    "nearest",
    "pairs",
    "passages",
    "plan",
    "recommend",
    "relink",
    "rethreshold",
    "theory",
    "tune",
    "write_report",
]
