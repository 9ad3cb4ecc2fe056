"""The jobs a user runs: dedup, pairs, nearest, rethreshold and plan, with their settings and results."""
