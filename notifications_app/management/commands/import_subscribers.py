"""`manage.py import_subscribers`: imports subscribers from a file."""

import gzip
import json
import random
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO, cast

from django.core.management.base import CommandError
from typing_extensions import override

from channels_app.management.output import (
    UNAVAILABLE,
    DatabaseCommand,
    add_json_option,
    channel_argument,
    said_by_database,
)
from channels_app.models import Channel
from notifications_app.delivery.types import Accepted
from notifications_app.pipeline.destinations import CredentialsMissing, CredentialsUnreadable
from notifications_app.pipeline.token_checks import tokens_check
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import SecretUnreadable
from subscriptions_app.importing.files import FileUnreadable
from subscriptions_app.importing.formats import Format, Read, Reading, rows_read
from subscriptions_app.importing.running import Judged, Summary, imported
from subscriptions_app.importing.values import MAX_TAKEOVER_DAYS, Options, Outcome, Row

_REPORTED_EVERY: Final = 10_000  # rows
_ASKED_ABOUT: Final = 10  # tokens, in a dry run


class Command(DatabaseCommand):
    help = (
        "Imports subscribers from a file. Importing a file again changes nothing, so an import that"
        " ended early can be repeated. See docs/migrating.md."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("channel_id")
        parser.add_argument("file", help="the file, also .gz; - for standard input")
        parser.add_argument("--format", required=True, choices=[each.value for each in Format])
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="THEIRS=OURS",
            help="the name of a column of a CSV file; nothing after = ignores it",
        )
        parser.add_argument("--attributes", help="attributes to take, separated by commas")
        parser.add_argument("--tags-from", default="", help="attribute whose words become tags")
        parser.add_argument("--vapid-public-key", help="of browsers whose row names no key")
        parser.add_argument(
            "--platform",
            choices=[each.value for each in Platform],
            help="of rows of tokens_csv that name none",
        )
        parser.add_argument(
            "--takeover-days",
            type=int,
            default=0,
            help="days for which the first phone that registers an imported token with its own"
            f" `auth` keeps what the row says, at most {MAX_TAKEOVER_DAYS} (default: 0)",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help=f"store nothing, and ask Google whether it knows {_ASKED_ABOUT} of the tokens",
        )
        parser.add_argument("--resume", type=int, default=1, metavar="LINE", help="begin there")
        parser.add_argument("--refused", help="write refused rows to this file, as JSON lines")
        add_json_option(parser)

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        channel = channel_argument(options["channel_id"])
        reading, how = _reading(options), _options(options)
        summary, dropped, position = Summary(), Counter[str](), options["resume"]
        with ExitStack() as stack:
            stream = stack.enter_context(_opened(options["file"]))
            refused = stack.enter_context(_written(options))
            reads = rows_read(stream, reading, dropped, sql.now())
            sample = _Sample(_from(reads, position))
            steps = imported(channel=channel, reads=sample, options=how)
            try:
                for judged in steps:
                    _write_refused(refused, judged)
                    summary.add(judged)
                    position = judged[-1].line + 1
                    self._report(summary, position, is_dry=how.dry_run)
            except FileUnreadable as error:
                self._write(summary, dropped, options)
                detail = f"{error.detail} The rows before it were read. Correct the file, then add"
                raise CommandError(f"{detail} --resume {position}") from error
            except UNAVAILABLE as error:
                self._write(summary, dropped, options)
                reason = said_by_database(error)
                raise CommandError(f"{reason} Go on with --resume {position}") from error
            except KeyboardInterrupt:
                self._write(summary, dropped, options)
                raise CommandError(f"Interrupted. Go on with --resume {position}") from None
        asked = _asked(channel, sample.tokens) if how.dry_run and sample.tokens else None
        self._write(summary, dropped, options, asked)

    def _report(self, summary: Summary, position: int, *, is_dry: bool) -> None:
        rows = summary.outcomes.total()
        if rows % _REPORTED_EVERY == 0:
            word = "judged" if is_dry else "imported"
            self.stderr.write(f"{rows} rows {word}; to go on from here: --resume {position}")

    def _write(
        self,
        summary: Summary,
        dropped: Mapping[str, int],
        options: Any,
        asked: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        """`asked`: how many tokens got each code and words of FCM."""
        if options["json"]:
            result: dict[str, Any] = {
                **summary.outcomes,
                "refused_by_code": summary.codes,
                "attributes_dropped": dropped,
            }
            if asked is not None:
                result["fcm"] = [
                    {"code": code, "detail": detail, "tokens": count}
                    for (code, detail), count in asked.items()
                ]
            self.stdout.write(json.dumps(result))
            return
        if options["dry_run"]:
            self.stdout.write("Nothing was stored.")
        for outcome in Outcome:
            self.stdout.write(f"{outcome:<9}  {summary.outcomes[outcome]}")
        for code, count in summary.codes.most_common():
            self.stdout.write(f"  {code}  {count}")
        if dropped:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(dropped.items()))
            self.stdout.write(f"Attributes that were not taken: {names}. Name them in --attributes")
        if asked:
            self.stdout.write("What FCM says about some of the tokens:")
            for (code, detail), count in asked.items():
                self.stdout.write(f"  {count}  {code}  {detail}".rstrip())


class _Sample:
    """Some of the tokens of Android that are read, each with the same chance."""

    def __init__(self, reads: Iterator[Read]) -> None:
        self._reads = reads
        self.tokens: list[str] = []

    def __iter__(self) -> Iterator[Read]:
        seen = 0
        for each in self._reads:
            row = each.row
            if isinstance(row, Row) and row.address.platform == Platform.ANDROID:
                seen += 1
                self._keep(row.address.text, seen)
            yield each

    def _keep(self, token: str, seen: int) -> None:
        if len(self.tokens) < _ASKED_ABOUT:
            self.tokens.append(token)
        elif (place := random.randrange(seen)) < _ASKED_ABOUT:  # noqa: S311 - no secret
            self.tokens[place] = token


def _asked(channel: Channel, tokens: Sequence[str]) -> Mapping[tuple[str, str], int]:
    """How many of the tokens FCM answers with a code, and its words."""
    try:
        outcomes = tokens_check(channel_id=channel.pk, addresses=tokens)
    except CredentialsMissing:
        return {("credentials_missing", "The channel has no credentials of Firebase."): len(tokens)}
    except (CredentialsUnreadable, SecretUnreadable):
        return {("key_unreadable", "The stored credentials cannot be read."): len(tokens)}
    answers = Counter(
        ("accepted", "") if isinstance(each, Accepted) else (each.code, each.detail)
        for each in outcomes
    )
    return dict(answers.most_common())


def _reading(options: Mapping[str, Any]) -> Reading:
    columns = {}
    for each in options["map"]:
        theirs, separator, ours = each.rpartition("=")
        if not separator or not theirs:
            raise CommandError(f"--map {each!r}: write the file's name, = and ours.")
        columns[theirs] = ours.strip()
    attributes = options["attributes"]
    return Reading(
        Format(options["format"]),
        columns,
        None if attributes is None else [each.strip() for each in attributes.split(",") if each],
        options["tags_from"],
        options["vapid_public_key"],
        Platform(options["platform"]) if options["platform"] else None,
    )


def _options(options: Mapping[str, Any]) -> Options:
    days = options["takeover_days"]
    if not 0 <= days <= MAX_TAKEOVER_DAYS:
        raise CommandError(f"--takeover-days must be 0 to {MAX_TAKEOVER_DAYS}.")
    return Options(takeover_days=days, dry_run=options["dry_run"])


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        if name.endswith(".gz"):
            return cast("AbstractContextManager[BinaryIO]", gzip.open(name))
        return Path(name).open("rb")
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error


def _written(options: Mapping[str, Any]) -> AbstractContextManager[TextIO | None]:
    """The file for refused rows. An import that goes on adds to it."""
    name, source = options["refused"], options["file"]
    if name is None:
        return nullcontext()
    try:
        if source != "-" and Path(name).exists() and Path(name).samefile(source):
            raise CommandError("--refused would replace the file that is imported.")
        return Path(name).open("a" if options["resume"] > 1 else "w", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error


def _from(reads: Iterator[Read], line: int) -> Iterator[Read]:
    return (each for each in reads if each.line >= line)


def _write_refused(file: TextIO | None, judged: Sequence[Judged]) -> None:
    if file is None:
        return
    for each in judged:
        if each.result.outcome == Outcome.REFUSED:
            file.write(json.dumps(each.as_refusal()) + "\n")
    file.flush()
