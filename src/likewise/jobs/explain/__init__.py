"""Why two items are a pair or not: the one type of explanation, what remains of a run for it, and finished runs."""
