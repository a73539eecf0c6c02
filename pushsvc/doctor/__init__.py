"""Examines an installation: what is wrong, and what to do about it."""

from collections.abc import Callable, Iterator

from pushsvc.doctor import credentials, database, deployment, public_url, servers, work
from pushsvc.doctor.finding import Finding, Tone, is_healthy

__all__ = ["Finding", "Tone", "examine", "is_healthy"]


def examine(*, url: str = "", call_providers: bool = False) -> Iterator[Finding]:
    """Everything that can be seen from this machine, in the order of what depends on what.

    Reads only. Without `call_providers` it takes about ten seconds at the most. With it, each
    stored credential is tried with a message that reaches nobody. `url` is the installation's
    public address, to be called from here.
    """
    yield from deployment.examine()
    is_reachable = True
    for finding in database.examine():
        is_reachable = is_reachable and finding.title != database.UNREACHABLE
        yield finding
    yield from servers.examine()
    yield from _with_database(is_reachable, call_providers)
    if url:
        yield from public_url.examine(url)


def _with_database(is_reachable: bool, call_providers: bool) -> Iterator[Finding]:
    if not is_reachable:
        return
    parts: list[Callable[[], Iterator[Finding]]] = [work.examine]
    if call_providers:
        parts.append(credentials.examine)
    for part in parts:
        yield from part()
