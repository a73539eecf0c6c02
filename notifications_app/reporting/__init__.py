"""Read-only views of results: figures, progress, activity, attention."""
