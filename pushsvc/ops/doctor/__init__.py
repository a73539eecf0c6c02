"""Examines an installation: what is wrong, and how to correct it."""

from collections.abc import Generator, Iterator

import django.db
from django.core import checks

from pushsvc.common.findings import Finding, Kind, Severity, good
from pushsvc.ops.doctor import credentials, database, mail, processes, public_url, servers, work
from pushsvc.ops.doctor.statements import Silent, first_line


def examine(*, url: str = "", call_providers: bool = False) -> Iterator[Finding]:
    """Yields all findings that can be seen from this machine, in the order of dependencies.

    Without `call_providers` it only reads, and takes a few seconds; a server that does not respond
    adds up to six. With it, all stored credentials are checked with a message to a device that does
    not exist, and the results are stored. `url`: the installation's public address, which is called
    from here.
    """
    has_addresses = yield from _settings()
    is_readable = yield from database.examine()
    if not has_addresses:
        return  # everything else needs Redis and the broker
    of_servers = list(servers.examine())
    yield from of_servers
    yield from processes.examine()
    yield from mail.examine()
    if is_readable:
        known = {finding.code for finding in of_servers}
        found = _work(call_providers=call_providers)
        yield from (each for each in found if each.code not in known)  # Redis, with its reason
    if url:
        yield from public_url.examine(url)


def _settings() -> Generator[Finding, None, bool]:
    """The findings of `manage.py check --deploy`. Returns whether Redis and the broker have
    addresses."""
    messages = checks.run_checks(include_deployment_checks=True)
    found = [each for each in messages if not each.is_silenced()]
    for each in found:
        yield Kind.SETTING.found(
            severity=Severity.ERROR if each.is_serious() else Severity.WARNING,
            message=each.msg.rstrip("."),
            id=each.id,
            hint=each.hint or "See docs/configuration.md.",
        )
    if not found:
        yield good("settings", "The settings are accepted")
    return not {"pushsvc.E005", "pushsvc.E006"} & {each.id for each in found}


def _work(*, call_providers: bool) -> Iterator[Finding]:
    try:
        yield from work.examine()
        if call_providers:
            yield from credentials.examine()
    except Silent:
        yield Kind.DATABASE_SILENT.found()
    except django.db.Error as error:  # such as a schema that is not migrated
        yield Kind.UNEXAMINED.found(what="The stored credentials", error=first_line(error))
