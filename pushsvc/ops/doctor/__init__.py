"""Examines an installation: what is wrong, and how to correct it."""

from collections.abc import Callable, Iterator

import django.db

from pushsvc.ops.doctor import (
    credentials,
    database,
    deployment,
    mail,
    processes,
    public_url,
    servers,
    work,
)
from pushsvc.ops.doctor.finding import Finding, Tone, is_healthy
from pushsvc.ops.doctor.statements import Silent, first_line

__all__ = ["Finding", "Tone", "examine", "is_healthy"]


def examine(*, url: str = "", call_providers: bool = False) -> Iterator[Finding]:
    """Yields all findings that can be seen from this machine, in the order of dependencies.

    Without `call_providers` it only reads, and takes a few seconds; a server that does not answer
    adds up to six. With it, all stored credentials are checked with a message to a device that does
    not exist, and the results are stored. `url`: the installation's public address, which is called
    from here.
    """
    yield from deployment.examine()
    is_readable = yield from database.examine()
    yield from servers.examine()
    yield from processes.examine()
    yield from mail.examine()
    yield from _with_database(is_readable, call_providers)
    if url:
        yield from public_url.examine(url)


def _with_database(is_readable: bool, call_providers: bool) -> Iterator[Finding]:
    if not is_readable:
        return
    parts = [credentials.secrets, credentials.subjects]
    if call_providers:
        parts.append(credentials.examine)
    try:
        yield from work.examine()
        for part in parts:
            yield from _guarded(part)
    except Silent:
        yield database.silence()


def _guarded(part: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Continues the report after errors of the database, such as a schema that is not migrated."""
    try:
        yield from part()
    except django.db.Error as error:
        title = "The stored credentials could not be read"
        yield Finding("credentials", Tone.WARN, title, first_line(error))
