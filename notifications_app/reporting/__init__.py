"""Read-only views of results: statistics, progress, activity, attention."""
