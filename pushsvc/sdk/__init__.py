"""What sites paste to use push in browsers, and the files that it leads to."""

from pushsvc.sdk.snippets import snippet, worker_snippet

__all__ = ["snippet", "worker_snippet"]
