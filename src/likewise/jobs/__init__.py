"""What a user runs: dedup, pairs, nearest, rethreshold and plan, each with its settings and its result."""
