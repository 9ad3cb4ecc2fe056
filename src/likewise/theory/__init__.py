"""The theory behind minhashing and hashing: small, readable functions, every claim checked by counting.

universal     families of hash functions: weakly universal, pairwise independent
minwise       families of permutations: exactly and approximately min-wise independent, and why linear and cyclic ones
              fall short
directions    Gaussian numbers and random directions: the right way and a wrong one
axioms        the four axioms of a distance, tried on points
perfect       two-level perfect hashing of a static key set

No code that processes data imports this package.
"""

from likewise.theory.axioms import broken_axioms
from likewise.theory.directions import (
    box_muller,
    cap_share,
    gaussian_vectors,
    gaussians,
    latitude_longitude,
    polar_share,
    random_directions,
    same_side,
)
from likewise.theory.minwise import (
    Chances,
    WorstCase,
    agreement,
    chance,
    cyclic_family,
    enough_permutations,
    epsilon,
    extremes,
    halving_family,
    halving_permutation,
    halving_size,
    is_minwise,
    lcm_bound,
    linear_bound,
    linear_chance,
    linear_family,
    random_family,
    worst_case,
)
from likewise.theory.perfect import PerfectHash, Tries
from likewise.theory.universal import (
    Affine,
    CarterWegman,
    HashFamily,
    MultiplyAddShift,
    MultiplyShift,
    is_pairwise_independent,
    is_weakly_universal,
    worst_collision,
)

__all__ = [
    "Affine",
    "CarterWegman",
    "Chances",
    "HashFamily",
    "MultiplyAddShift",
    "MultiplyShift",
    "PerfectHash",
    "Tries",
    "WorstCase",
    "agreement",
    "box_muller",
    "broken_axioms",
    "cap_share",
    "chance",
    "cyclic_family",
    "enough_permutations",
    "epsilon",
    "extremes",
    "gaussian_vectors",
    "gaussians",
    "halving_family",
    "halving_permutation",
    "halving_size",
    "is_minwise",
    "is_pairwise_independent",
    "is_weakly_universal",
    "latitude_longitude",
    "lcm_bound",
    "linear_bound",
    "linear_chance",
    "linear_family",
    "polar_share",
    "random_directions",
    "random_family",
    "same_side",
    "worst_case",
    "worst_collision",
]
