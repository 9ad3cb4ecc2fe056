"""Small sites with mirrors, made of words."""

import itertools

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"]
WORDS += ["xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon"]


def site(host, count=12, first=0, top=""):
    """URLs of `count` pages; another `first` gives a site with other pages."""
    pairs = list(itertools.permutations(WORDS, 2))[first * 20 : first * 20 + count]
    return [f"http://{host}{top}/{a}/{b}.html" for a, b in pairs]
