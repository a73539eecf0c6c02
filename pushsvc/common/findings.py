"""Everything that can be found wrong with an installation: code, severity, text and remedy.

The doctor, the dashboard and /metrics report these findings. The runbook lists them, and each leads
to one of its sections.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from string import Formatter
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as noop
from typing_extensions import override

from pushsvc.common.texts import localized


class Severity(StrEnum):
    """`error`: something does not work, or data can be lost. `warning`: it works, and should be
    changed. `info`: good to know. `ok`: examined, and nothing is wrong."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    OK = "ok"


@dataclass(frozen=True)
class Finding:
    """`title`: what is wrong, without a full stop. `remedy`: what it means and what to do. `quote`:
    the text of a push service. `since`: when it began, if known. `tries`: of a paused platform.
    The channel and the platform are empty if they do not matter. `subject`: which of several
    platforms, push services, keys or webhooks of the channel."""

    code: str
    severity: Severity
    title: str
    remedy: str = ""
    section: str = ""
    quote: str = ""
    since: datetime | None = None
    channel_id: UUID | None = None
    channel_name: str = ""
    platform: str = ""
    tries: Any = None
    subject: str = ""


def good(code: str, title: str) -> Finding:
    return Finding(code, Severity.OK, title)


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    severities = list(Severity)
    return sorted(found, key=lambda finding: severities.index(finding.severity))


class _Figures(Formatter):
    @override
    def format_field(self, value: Any, format_spec: str) -> str:
        shown: str = super().format_field(value, format_spec)
        return localized(shown) if format_spec else shown


def _filled(text: str, words: Mapping[str, Any]) -> str:
    return _Figures().vformat(gettext(text), (), words)


_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_AWAY: Final = "the-service-does-not-respond"
_STANDS_STILL: Final = "requests-hang-or-ticks-do-not-end"
_UNAVAILABLE: Final = "503-database_unavailable"
_REDIS: Final = "redis-is-unavailable"
_PENDING: Final = "notifications-stay-pending-past-their-time"
_PROCESSING: Final = "notifications-stay-processing"
_SLOW: Final = "everything-is-slow"
_SERVICE: Final = "a-push-service-fails"
_LEASES: Final = "workers-lose-leases"
_PARKED: Final = "batches-are-parked"
_BOUNCES: Final = "many-recipients-bounce"
_DIFFER: Final = "processes-differ"
_WEBHOOKS: Final = "webhooks-do-not-arrive"


class Kind(Enum):
    """The severity, the title and the remedy of each finding, and the section of docs/runbook.md
    that says more. What the console's pages show is marked for translation."""

    SETTING = (_ERROR, "{message} ({id})", "{hint}", "a-process-does-not-start")

    DATABASE_UNAVAILABLE = (
        _ERROR,
        "PostgreSQL cannot be reached",
        "{error} {advice}",
        _UNAVAILABLE,
    )
    DATABASE_SILENT = (
        _ERROR,
        "PostgreSQL accepts connections and does not respond",
        "Requests and batches wait as well. Check whether its processes are stopped (SIGSTOP, a "
        "frozen container or machine) or wait for their disk, and whether a pooler or a firewall "
        "drops packets. Restart it, or fail over to a standby.",
        _STANDS_STILL,
    )
    DATABASE_STANDBY = (
        _ERROR,
        "DATABASE_URL leads to a standby",
        "Nothing can be stored or sent. Name the primary in DATABASE_URL, or both servers with "
        "?target_session_attrs=read-write. If the primary is lost, run SELECT pg_promote().",
        _STANDS_STILL,
    )
    DATABASE_READ_ONLY = (
        _ERROR,
        "The database accepts no writes",
        "Nothing can be stored or sent. Hosting providers make a server read-only when its disk is "
        "full: free space first. Then set default_transaction_read_only to off for the server "
        "(ALTER SYSTEM), the database or the role, wherever it is on.",
        _STANDS_STILL,
    )
    DISK_FULL = (
        _ERROR,
        "PostgreSQL's disk is full",
        "{error} Most requests get 503, and outcomes cannot be written. Free space on PostgreSQL's "
        "disk; nothing else is needed.",
        _UNAVAILABLE,
    )
    STANDBY_MISSING = (
        _ERROR,
        "Commits that wait for a standby: {number:,}, the first for {age}",
        "No standby in synchronous_standby_names confirms them, so nothing can be stored. Start "
        "it, or continue without it: ALTER SYSTEM SET synchronous_standby_names = '', and reload.",
        _STANDS_STILL,
    )
    LOCK_HELD = (
        _ERROR,
        "Statements that {holder} blocks: {number:,}, the first for {age}",
        "They wait for a lock that it holds, so requests, ticks or batches stand still. Find its "
        "program, or run {end}. A migration or VACUUM FULL may need this time.",
        _STANDS_STILL,
    )
    CONNECTIONS_SCARCE = (
        _WARNING,
        "{used} of {most} connections are in use, {number} of them by {role}",
        "When none is left, requests get 503. Raise max_connections, or put PgBouncer in front.",
        _UNAVAILABLE,
    )
    DATABASE_VERSION = (_ERROR, "PostgreSQL {version} is not supported", "Use PostgreSQL 15 to 18.")
    DATABASE_SETTING = (_ERROR, "The setting {name} is {value}", "{harm} {advice}")
    DATABASE_ENCODING = (
        _ERROR,
        "The database's encoding is {encoding}",
        "Non-ASCII text fails. Create another database with ENCODING 'UTF8' and TEMPLATE "
        "template0, and restore a pg_dump into it.",
    )
    RIGHTS_MISSING = (
        _ERROR,
        "Tables on which the role {role} lacks rights: {number}",
        "Requests and batches that need them fail: {tables}. As {owner}, the owner, run GRANT "
        "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}. Migrations "
        "also need ALTER TABLE … OWNER TO {role} for each table. Alternatively restore the dump "
        "again, with pg_restore --no-owner --role={role}.",
        _AWAY,
    )
    TABLES_HIDDEN = (
        _ERROR,
        "The tables are in the schema {schema}, which the role {role} does not see",
        "Its search_path is {path}. Run GRANT USAGE ON SCHEMA {schema} TO {role} and ALTER ROLE "
        "{role} SET search_path = {schema}, and restart all processes. Do not migrate before: that "
        "would create a second, empty set of tables.",
        _AWAY,
    )
    MIGRATIONS_MISSING = (
        _ERROR,
        "Migrations that are not applied: {number}",
        "The first is {first}. Run manage.py migrate --no-input.",
        _AWAY,
    )
    MIGRATIONS_NEWER = (
        _INFO,
        "Applied migrations that this code does not have: {number}",
        "The last is {last}. This is expected during an upgrade and after going back by one "
        "version; “While two versions run” in docs/upgrade.md lists what not to use. Otherwise "
        "install the newer version here.",
    )
    INDEX_INVALID = (
        _ERROR,
        "The index {name} is invalid",
        "Its build was interrupted. Writes update it, and no query uses it. Run {statement}.",
    )
    INDEX_MISSING = (_ERROR, "The index {name} is missing", "{harm} Run {statement}.")
    CLOCKS_DIFFER = (
        _ERROR,
        "The clocks of {one} and {other} differ by {seconds:.0f} s",
        "Run NTP on both: Google and Apple check the time.",
        _PARKED,
    )

    REDIS_UNAVAILABLE = (
        _ERROR,
        noop("Redis is unavailable, or accepts no writes"),
        noop(
            "Sends are stored, rate limits allow everything, and it is unknown which workers are "
            "running. If the broker is the same Redis, nothing is sent until it is back. {reason}"
        ),
        _REDIS,
    )
    BROKER_UNAVAILABLE = (
        _ERROR,
        "The broker {name} is unavailable, or accepts no writes",
        "Sends are stored, and go out when it is back. {reason}",
        _REDIS,
    )
    REDIS_MEMORY = (
        _WARNING,
        "Redis uses 90 % of its memory",
        "When it is full, writes fail. Raise maxmemory, or find out who else uses it.",
        _REDIS,
    )
    REDIS_VERSION = (_ERROR, "Redis {version} is not supported", "Use Redis 6.2 or newer.")
    REDIS_EVICTION = (
        _ERROR,
        "maxmemory-policy is {policy}",
        "Redis can drop wakeups and limits. Set maxmemory-policy to noeviction.",
    )
    REDIS_PRESENCE = (
        _WARNING,
        "Redis detects lost workers late",
        "What the worker held continues after two minutes instead of 30 s. {advice}",
        _LEASES,
    )
    QUEUE_LONG = (
        _WARNING,
        "The queue {queue} holds {number:,} messages",
        "pushsvc puts only a few into it. Either no worker takes them, or another program adds "
        "them: give each installation its own broker, or its own database of Redis.",
        _PENDING,
    )

    PLANNER_MISSING = (
        _ERROR,
        noop("The planner is not running"),
        noop(
            "No process plans notifications, so new and scheduled ones wait. Nothing is lost. "
            "Start worker-plan. If it is running, its REDIS_URL names another Redis than this "
            "process's."
        ),
        _PENDING,
    )
    BEAT_MISSING = (
        _ERROR,
        noop("No tick ended in the last 15 seconds"),
        noop(
            "Schedules and retries are late. Nothing is lost. Start beat. If it is running, the "
            "processes of worker-plan hang, or ticks wait for the database or the broker; the "
            "doctor reports the cause."
        ),
        _PENDING,
    )
    WORKERS_MISSING = (
        _ERROR,
        noop("No worker for {name} is running"),
        noop(
            "Recipients on {name} wait, and bounce when their time to live ends. Start "
            "worker-{queue}. If it is running, its REDIS_URL names another Redis than this "
            "process's."
        ),
        _PROCESSING,
    )
    WEB_MISSING = (
        _ERROR,
        "No web process is running",
        "Clients and staff cannot reach the service; workers continue. Start web. If it is "
        "running, its REDIS_URL names another Redis than this process's.",
        _AWAY,
    )
    WORKERS_FROZEN = (
        _WARNING,
        "Worker processes on {host} that do not report: {number}",
        "They are stopped (SIGSTOP, a debugger), or wait for a disk or for memory; their parents "
        "are running. Look for the states T and D in ps -eo pid,ppid,stat,etime,args there. Resume "
        "them (SIGCONT), or kill them with SIGKILL: the parent starts others, and nothing is lost.",
        _SLOW,
    )
    SETTINGS_DIFFER = (
        _ERROR,
        "{kind} processes on {host} have another {setting} ({number})",
        "{harm} Give all processes the same settings, and restart them. If they belong to another "
        "installation, give it its own database of Redis. A process that has ended counts for 15 "
        "seconds.",
        _DIFFER,
    )
    CODE_DIFFERS = (
        _WARNING,
        "{kind} processes on {host} run another version ({number})",
        "This is expected during an upgrade and for 15 seconds after it. Otherwise install the "
        "same version there, and restart them.",
        _DIFFER,
    )

    START_LATE = (
        _ERROR,
        noop("Notifications that are late to start: {number:,}"),
        noop(
            "The oldest was due {age} ago. The planner or beat is not running, or is overloaded. "
            "Start them, or start more worker-plan processes."
        ),
        _PENDING,
    )
    QUEUE_LATE = (
        _WARNING,
        noop("{recipients:,} recipients wait on {name}"),
        noop(
            "{batches:,} batches are due and not yet claimed, the oldest for {age}. If this "
            "continues, start more worker-{queue} processes, or check whether they hang, or the "
            "push service is slow."
        ),
        _SLOW,
    )
    SERVICE_FAILING = (
        _WARNING,
        noop("The push service {service} is failing"),
        noop(
            "Most of the recent calls failed there, so batches wait for up to two minutes before "
            "the next attempt: those of the channel that is named, otherwise all. Others are not "
            "delayed."
        ),
        _SERVICE,
    )
    CALLS_FAIL = (
        _WARNING,
        noop("Calls for {recipients:,} recipients on {name} fail"),
        noop(
            "No recipient of these {batches:,} batches was reached, the oldest for {age}. Either "
            "the push service fails, or the workers cannot reach it: check their DNS, firewall, "
            "proxy and clocks. Recipients bounce an hour after their first attempt."
        ),
        _SERVICE,
    )
    WORKERS_BREAK = (
        _WARNING,
        noop("Workers fail on “{text}”"),
        noop(
            "{recipients:,} of its recipients are called one by one; others are not delayed. "
            "Either worker processes die while they send it: look for out-of-memory kills. Or the "
            "database refuses a recipient's row: look for outcome.refused in the log."
        ),
        _LEASES,
    )
    LIMITED = (
        _WARNING,
        noop("{service} limits this channel to about {per_minute:,} messages a minute"),
        noop("{effect} No message is lost before its deadline. {help}"),
        _PROCESSING,
    )
    BOUNCES_MANY = (
        _WARNING,
        noop("{name}: {lately:.0%} of recipients bounce"),
        noop(
            "{bounced:,} bounced in the last 24 hours, {lately:.1%}; {compared}. The pages of the "
            "latest notifications show the reasons."
        ),
        _BOUNCES,
    )
    WEB_UNSHOWN = (
        _WARNING,
        noop("Web: {lately:.0%} of the delivered messages are shown"),
        noop(
            "In a week, browsers received {delivered:,} messages and reported {received:,} as "
            "shown. In the four weeks before it was {before:.0%}. Usually another service worker "
            "of the site has replaced the one that shows them, or its file has lost the "
            "importScripts line. Add the line to the worker, and load push.js on every page."
        ),
        "messages-are-delivered-and-not-shown",
    )
    CHANNEL_FULL = (
        _WARNING,
        noop("The channel holds {stored:,} of at most {most:,} subscriptions"),
        noop(
            "When it is full, a new subscription replaces the oldest one that no push service ever "
            "accepted a message for. If there is none, the new one is refused. Raise the limit in "
            "the channel's settings, or find out who subscribes."
        ),
        "a-channel-is-full",
    )
    HOOKS_MISSING = (
        _ERROR,
        noop("The worker of webhooks is not running"),
        noop(
            "Messages of webhooks wait; nothing is lost for 14 days. Start worker-hooks. If it is "
            "running, its REDIS_URL names another Redis than this process's."
        ),
        _WEBHOOKS,
    )
    FACTS_UNREADABLE = (
        _ERROR,
        noop("Facts for webhooks that cannot be read: {number:,}"),
        noop(
            "They are in no message, and are kept for 14 days. Usually a newer version has written "
            "them. The log has webhook.facts_unreadable with the kind and the error."
        ),
        _WEBHOOKS,
    )
    SCHEDULE_DISABLED = (
        _ERROR,
        noop("The schedule “{schedule}” was disabled: {code}"),
        noop(
            "Its last occurrence was refused, so it sends nothing more. Open the schedule, correct "
            "what it sends, and save it."
        ),
        "a-schedule-was-disabled",
    )
    AUTOMATION_DISABLED = (
        _ERROR,
        noop("The automation “{automation}” was disabled: {code}"),
        noop(
            "Its notification was refused, so it sends nothing more. Correct what it sends. Who "
            "waits is sent to afterwards, for a day."
        ),
        "an-automation-was-disabled",
    )
    NEWSFEED_DISABLED = (
        _ERROR,
        noop("The newsfeed “{newsfeed}” was disabled: {code}"),
        noop("It sends nothing more. Correct its address or what it sends, and enable it."),
        "a-newsfeed-fails",
    )
    NEWSFEED_FAILING = (
        _WARNING,
        noop("The newsfeed “{newsfeed}” cannot be read"),
        noop("Its last checks failed: {error} It is disabled after five days without a success."),
        "a-newsfeed-fails",
    )
    WEBHOOK_DISABLED = (
        _ERROR,
        noop("The webhook {webhook} was disabled"),
        noop(
            "{reason} Its messages are kept for 14 days. Correct the receiver, enable the webhook, "
            "and send the failed messages again."
        ),
        _WEBHOOKS,
    )
    WEBHOOK_FAILING = (
        _WARNING,
        noop("Calls of the webhook {webhook} fail"),
        noop(
            "No call has succeeded for over an hour. Messages are tried again for three days; "
            "after five days without a success the webhook is disabled."
        ),
        _WEBHOOKS,
    )
    API_KEY_ENDS = (
        _WARNING,
        noop("The API key “{key}” expires {when}"),
        noop("It is in use. Issue another key and give it to the programs that use this one."),
    )
    PLATFORM_PAUSED = (
        _ERROR,
        noop("{name} is paused: {provider} refused the credentials"),
        noop(
            "{meaning} Recipients wait for up to an hour, then bounce. Correct it at {provider}, "
            "or store other credentials. The platform is tried again by itself and resumes when "
            "{provider} accepts; a check of the credentials tries it at once."
        ),
        _PARKED,
    )
    CREDENTIALS_MISSING = (
        _ERROR,
        noop("{name} has no credentials"),
        noop(
            "The platform is enabled, but no credentials for {provider} are stored. Its recipients "
            "wait for up to an hour, then bounce."
        ),
        "phones-receive-nothing",
    )
    CREDENTIALS_OLD = (
        _INFO,
        noop("Google's key has been in use for {days} days"),
        noop(
            "Google recommends replacing the key of a service account every {most} days, because a "
            "leaked key works until it is replaced."
        ),
    )

    CREDENTIALS_REFUSED = (
        _ERROR,
        "The {name} {result}",
        "Correct them at the provider, or store others. If there was no response, check that this "
        "machine reaches the provider.",
        _PARKED,
    )
    SECRETS_UNREADABLE = (
        _ERROR,
        "{what} cannot be decrypted",
        "A key is missing from CREDENTIAL_KEYS. Put it back, or store them again.",
        _DIFFER,
    )
    VAPID_SUBJECT_EXAMPLE = (
        _WARNING,
        "The VAPID subject of {channels} is the example",
        "Push services write to it before they block a sender. Change it in the channel's settings "
        "to a mailto: or https: address where they reach you.",
        _BOUNCES,
    )
    MAIL_FAILING = (
        _ERROR,
        "The mail server {address} cannot be used",
        "{error}. Nobody gets an invitation or a link to set a password by mail. Check the "
        "address, the user and the password in EMAIL_URL, which requires {protection}, and that "
        "this machine reaches the server.",
    )
    PUBLIC_URL_FAILING = (_ERROR, "{url}: {error}", "{advice}", _AWAY)
    PROXY_SCHEME = (
        _WARNING,
        "The proxy of {host} does not report that requests arrive over https",
        "So the service takes them for http, and does not make browsers keep to https. Let the "
        "proxy set X-Forwarded-Proto, and X-Forwarded-For, by which limits tell visitors apart.",
        "429-for-all-visitors-of-a-site",
    )
    CERTIFICATE_ENDS = (
        _WARNING,
        "The certificate of {host} expires in {days:.0f} days",
        "Renew it.",
        _AWAY,
    )
    UNEXAMINED = (
        _WARNING,
        "{what} could not be examined",
        "{error} Correct what other findings name, and run the doctor again.",
        _STANDS_STILL,
    )

    def __init__(
        self, severity: Severity, title: str, remedy: str, section: str = "findings"
    ) -> None:
        self.severity, self.section = severity, section
        self.title, self.remedy = title, remedy

    @property
    def code(self) -> str:
        return self.name.lower()

    def titled(self, **words: Any) -> str:
        """The title with these words in its gaps, in the language that is active."""
        return _filled(self.title, words)

    def found(
        self,
        *,
        severity: Severity | None = None,
        quote: str = "",
        since: datetime | None = None,
        channel: tuple[UUID, str] | None = None,
        platform: str = "",
        tries: Any = None,
        subject: object = "",
        **words: Any,
    ) -> Finding:
        """The finding in the language that is active. `severity`: if it is not the usual one.
        `words`: fill the gaps of title and remedy."""
        channel_id, channel_name = channel or (None, "")
        return Finding(
            self.code,
            severity or self.severity,
            self.titled(**words),
            _filled(self.remedy, words),
            self.section,
            quote,
            since,
            channel_id,
            channel_name,
            platform,
            tries,
            str(subject),
        )
