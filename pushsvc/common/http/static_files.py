"""Static files under names that hold their hash, so that browsers keep them for a year.

Pages name a file by `{% static %}`. The files come from the installed packages and are compressed
when they are first asked for, so a deployment has no build step (no collectstatic).
"""

import re
from functools import cache
from pathlib import Path
from typing import Final

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from typing_extensions import override
from whitenoise.media_types import MediaTypes
from whitenoise.middleware import WhiteNoiseMiddleware

from pushsvc.common.http.served_files import ServedFile, file_response

_HASHED: Final = re.compile(r"(?P<stem>.+)\.(?P<digest>[0-9a-f]{16})\.(?P<kind>\w+)")


class HashedNames(StaticFilesStorage):
    """For `{% static %}`: console/console.css becomes /static/console/console.<hash>.css."""

    @override
    def url(self, name: str | None) -> str:
        file = _file(name) if name else None
        if name is None or file is None:
            return super().url(name)
        stem, _, kind = name.rpartition(".")
        return super().url(f"{stem}.{file.digest}.{kind}")


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc] # it has no types
    """WhiteNoise serves the plain names. Names with a hash are served compressed.

    A hash of another version gets the file as it is now, for a short time: during an upgrade, the
    page and its files may come from different processes.
    """

    @override
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        file = self._hashed(request.path_info) if request.method in {"GET", "HEAD"} else None
        if file is not None:
            return file_response(request, file)
        response: HttpResponseBase = super().__call__(request)
        return response

    def _hashed(self, path: str) -> ServedFile | None:
        hashed = _HASHED.fullmatch(path)
        plain = f"{hashed['stem']}.{hashed['kind']}" if hashed else ""
        if hashed is None or plain not in self.files:
            return None
        name = plain.removeprefix(self.static_prefix)
        file = _file(name)
        is_other = file is not None and file.digest != hashed["digest"]
        return _file(name, is_immutable=False) if is_other else file


@cache
def _file(name: str, *, is_immutable: bool = True) -> ServedFile | None:
    """Kept with its compressed forms, as long as the process lives."""
    path = finders.find(name)
    if path is None:
        return None
    kind = MediaTypes().get_type(path)
    content_type = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    return ServedFile(Path(path).read_bytes(), content_type, is_immutable)
