"""Items in, verified pairs out: prepare, sketch, candidates, verify, cluster."""
