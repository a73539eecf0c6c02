"""Static files with their hash in the name, so that browsers cache them for a year.

Pages name a file with `{% static %}`. The files come from the installed packages and are compressed
at the first request, so a deployment needs no build step (no collectstatic).

A page with many small files names a bundle of STATIC_BUNDLES instead, which is one request.
"""

import re
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings
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
    """Serves names with a hash, compressed. WhiteNoise serves plain names.

    A request with the hash of another version gets the current file, to be cached for a short time:
    during an upgrade, the page and its files may come from different processes.
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
        name = plain.removeprefix(self.static_prefix)
        if hashed is None or (plain not in self.files and not self._is_bundle(plain, name)):
            return None
        file = _file(name)
        is_other = file is not None and file.digest != hashed["digest"]
        return _file(name, is_immutable=False) if is_other else file

    def _is_bundle(self, plain: str, name: str) -> bool:
        return plain.startswith(self.static_prefix) and name in settings.STATIC_BUNDLES


@cache
def _file(name: str, *, is_immutable: bool = True) -> ServedFile | None:
    """The file with its compressed forms. Cached until the process ends."""
    parts = settings.STATIC_BUNDLES.get(name, (name,))
    paths = [path for part in parts if (path := finders.find(part)) is not None]
    if len(paths) < len(parts):
        return None
    kind = MediaTypes().get_type(name)
    content_type = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    content = b"".join(Path(path).read_bytes() for path in paths)
    return ServedFile(content, content_type, is_immutable)
