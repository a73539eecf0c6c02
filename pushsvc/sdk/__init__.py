"""The SDK for browsers: the lines that sites paste, and the files that these load."""

from pushsvc.sdk.snippets import snippet, worker_snippet

__all__ = ["snippet", "worker_snippet"]
