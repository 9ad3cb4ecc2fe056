"""Files in and out: reading collections and tables, spilling to disk, the workspace of a run, and writing results."""
