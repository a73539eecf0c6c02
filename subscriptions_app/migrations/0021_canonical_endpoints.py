"""Gives web subscriptions the canonical form of their endpoint as address (`canonical_endpoint` in
pushsvc/common/endpoints.py), and merges those that turn out to have one endpoint.

The result is as if every call had named the canonical form: an active row stays before an expired
one, and a newer one before an older one. Rows with the same `auth` are one device: the row that stays
gets the newest attributes and choices, and the person and tags if it has none. Of other devices' rows
the oldest is set aside.

`merge` may run again at any time, beside all other processes. It takes locks in their order, and a
transaction for each subscription.
"""

import re
from collections import Counter
from hashlib import sha256
from ipaddress import IPv6Address
from typing import NamedTuple
from urllib.parse import urlsplit

from django.db import migrations, transaction

PAGE = 10_000
MOST_DEVICES = 100  # of a person
# Most endpoints have this form, which is canonical.
PLAIN = r'^https://[a-z0-9._-]+/[^%]*$'
_PORTS = {'http': 80, 'https': 443}
_ESCAPE = re.compile(r'%[0-9a-fA-F]{2}')
_NO_ESCAPE = re.compile(r'%(?![0-9a-fA-F]{2})')
_UNRESERVED = re.compile(r'[A-Za-z0-9._~-]')


def canonical(url):
    """None if the text is not an endpoint."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ''
        if '[' in parts.netloc:
            host = f'[{IPv6Address(host).compressed}]'
        elif not host.isascii():
            host = host.encode('idna').decode('ascii').lower()
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not host or '@' in parts.netloc or '#' in url:
        return None
    rest = url[url.index('//') + 2 + len(parts.netloc):]
    rest = rest if rest.startswith('/') else f'/{rest}'
    if not _NO_ESCAPE.search(rest):
        rest = _ESCAPE.sub(_escaped, rest)
    shown = '' if port in (None, _PORTS[parts.scheme]) else f':{port}'
    return f'{parts.scheme}://{host}{shown}{rest}'


def _escaped(escape):
    character = chr(int(escape[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else escape[0].lower()


def merge(connection):
    """Returns how many subscriptions got another address, and how many were merged into others."""
    changed, merged, after = 0, 0, '00000000-0000-0000-0000-000000000000'
    while True:
        page = _rows(connection, _PAGE, {'after': after, 'most': PAGE, 'plain': PLAIN})
        if not page:
            return changed, merged
        *found, (after, _) = page
        for subscription_id, address in found:
            if canonical(address) not in (None, address):
                with transaction.atomic(using=connection.alias):
                    merged += _Merge(connection, subscription_id).run()
                changed += 1


class _Row(NamedTuple):
    id: object
    is_elsewhere: bool
    is_set_aside: bool
    auth: str
    person: object
    is_active: bool
    registered_at: object
    expired_at: object
    expired_code: str
    created_at: object
    has_attributes: bool
    has_choices: bool


class _Merge:
    def __init__(self, connection, subscription_id):
        self._connection = connection
        self._id = subscription_id

    def run(self):
        """Returns how many rows were deleted."""
        found = self._rows(_FIND, id=self._id)
        if not found or canonical(found[0][1]) in (None, found[0][1]):
            return 0  # it changed meanwhile
        self._channel, given = found[0]
        self._address = canonical(given)
        self._digest = sha256(self._address.encode()).digest()
        digests = sorted([self._digest, sha256(given.encode()).digest()])
        for digest in digests:
            self._rows(_LOCK, name=f'{self._channel} web {digest.hex()}')
        rows = [_Row(*row) for row in self._rows(
            _READ, channel=self._channel, digests=digests, digest=self._digest)]
        return self._unite(rows) if any(row.is_elsewhere for row in rows) else 0

    def _unite(self, rows):
        kept = max(rows, key=lambda row: (row.is_active, not row.is_set_aside, row.registered_at))
        others = [row for row in rows if row is not kept]
        same = [row for row in others if row.auth == kept.auth]
        same.sort(key=lambda row: row.registered_at, reverse=True)
        foreign = sorted((row for row in others if row not in same), key=lambda row: row.created_at)
        aside, deleted = foreign[:1], [row.id for row in same + foreign[1:]]
        person = self._inherit(kept, same) if same else kept.person
        self._do(_DELETE, ids=deleted)
        place = {'address': self._address, 'digest': self._digest}
        for row in aside:
            self._do(_SET_ASIDE, id=row.id, **place)
        # The browser unsubscribed the endpoint after the last visit of the row that stays.
        ended = max((row.expired_at for row in others if row.expired_code == 'unsubscribed'
                     and row.expired_at > kept.registered_at), default=None)
        self._do(_KEEP, id=kept.id, ended=ended, **place)
        is_active = kept.is_active and ended is None
        self._count(rows, person if is_active else None, is_active, len(deleted))
        return len(deleted)

    def _inherit(self, kept, same):
        """Returns the id of the person of the row that stays."""
        for row in same:
            self._do(_INHERIT_TAGS, kept=kept.id, other=row.id)
        self._rows(_LOCK_PERSONS, ids=[row.person for row in (kept, *same) if row.person])
        newest = sorted((kept, *same), key=lambda row: row.registered_at, reverse=True)
        ids = [row.id for row in same]
        ((person,),) = self._rows(
            _INHERIT, kept=kept.id, same=ids, most=MOST_DEVICES,
            attributes_of=next((row.id for row in newest if row.has_attributes), kept.id),
            choices_of=next((row.id for row in newest if row.has_choices), kept.id))
        if person:
            self._do(_TAKE_OVER, kept=kept.id, person=person)
        self._do(_TEST_DEVICE, channel=self._channel, kept=kept.id, ids=ids)
        return person

    def _count(self, rows, person, is_active, deleted):
        """As `changes_count`."""
        active = is_active - sum(row.is_active for row in rows)
        persons = Counter({person: 1} if person else {})
        persons.subtract(row.person for row in rows if row.person and row.is_active)
        people = 0
        for id_, change in persons.items():
            if change:
                ((count,),) = self._rows(_COUNT_PERSON, id=id_, change=change)
                people += (count > 0) - (count - change > 0)
        linked = sum(persons.values())
        if deleted or active or linked or people:
            self._do(_COUNT, channel=self._channel, active=active, stored=-deleted, people=people,
                     linked=linked)
        if active:
            self._do(_COUNT_HOUR, channel=self._channel, lost=-active)

    def _rows(self, statement, **parameters):
        return _rows(self._connection, statement, parameters)

    def _do(self, statement, **parameters):
        with self._connection.cursor() as cursor:
            cursor.execute(statement, parameters)


def _rows(connection, statement, parameters):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


# The last row is the last of the page, whatever its platform.
_PAGE = """
WITH page AS MATERIALIZED (
  SELECT id, platform, address FROM subscriptions_app_subscription
  WHERE id > %(after)s::uuid ORDER BY id LIMIT %(most)s
)
SELECT id, address FROM page WHERE platform = 'web' AND address !~ %(plain)s
UNION ALL
(SELECT id, NULL FROM page ORDER BY id DESC LIMIT 1)
"""
_FIND = """
SELECT channel_id, address FROM subscriptions_app_subscription
WHERE id = %(id)s AND platform = 'web'
"""
_LOCK = 'SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))'
_READ = """
SELECT id, address_sha256 <> %(digest)s, is_set_aside, auth, person_id, expired_at IS NULL,
  registered_at, expired_at, expired_code, created_at, attributes <> '{}', choices <> '{}'
FROM subscriptions_app_subscription
WHERE channel_id = %(channel)s AND platform = 'web' AND address_sha256 = ANY(%(digests)s)
ORDER BY id FOR NO KEY UPDATE
"""
_LOCK_PERSONS = """
SELECT FROM subscriptions_app_person WHERE id = ANY(%(ids)s::uuid[])
ORDER BY id FOR NO KEY UPDATE
"""
_INHERIT_TAGS = """
INSERT INTO subscriptions_app_tag (channel_id, platform, tag, subscription_id)
SELECT channel_id, platform, tag, %(kept)s FROM subscriptions_app_tag
WHERE subscription_id = %(other)s
  AND NOT EXISTS (SELECT FROM subscriptions_app_tag WHERE subscription_id = %(kept)s)
ON CONFLICT DO NOTHING
"""
# Not the person who opted out, because the row may be active, and none who would have too many.
_INHERIT = """
WITH same AS (SELECT * FROM subscriptions_app_subscription WHERE id = ANY(%(same)s::uuid[]))
UPDATE subscriptions_app_subscription AS kept
SET attributes = (SELECT attributes FROM subscriptions_app_subscription
                  WHERE id = %(attributes_of)s),
  (choices, proven_choices) = (SELECT choices, proven_choices
    FROM subscriptions_app_subscription WHERE id = %(choices_of)s),
  is_proven = is_proven OR (SELECT bool_or(same.is_proven) FROM same),
  person_id = coalesce(person_id, (
    SELECT person.id FROM same JOIN subscriptions_app_person AS person ON person.id = person_id
    WHERE opted_out_at IS NULL AND (active_devices < %(most)s OR expired_at IS NULL)
    ORDER BY registered_at DESC LIMIT 1))
WHERE id = %(kept)s
RETURNING person_id
"""
# A person takes over what its device chose with proof.
_TAKE_OVER = """
WITH taken AS (
  SELECT coalesce(jsonb_object_agg(chosen.key, chosen.value), '{}') AS choices
  FROM subscriptions_app_subscription, jsonb_each(choices) AS chosen
  WHERE id = %(kept)s AND proven_choices -> chosen.key = chosen.value
), given AS (
  UPDATE subscriptions_app_person AS person SET choices = taken.choices || person.choices
  FROM taken WHERE person.id = %(person)s AND taken.choices <> '{}'
)
UPDATE subscriptions_app_subscription AS kept
SET choices = kept.choices - ARRAY(SELECT jsonb_object_keys(taken.choices)), proven_choices = '{}'
FROM taken WHERE kept.id = %(kept)s
"""
_TEST_DEVICE = """
UPDATE subscriptions_app_testdevice SET subscription_id = %(kept)s
WHERE id = (SELECT id FROM subscriptions_app_testdevice
            WHERE channel_id = %(channel)s AND subscription_id = ANY(%(ids)s::uuid[])
            ORDER BY added_at, id LIMIT 1)
  AND NOT EXISTS (SELECT FROM subscriptions_app_testdevice
                  WHERE channel_id = %(channel)s AND subscription_id = %(kept)s)
"""
_DELETE = 'DELETE FROM subscriptions_app_subscription WHERE id = ANY(%(ids)s::uuid[])'
_SET_ASIDE = """
UPDATE subscriptions_app_subscription
SET address = %(address)s, address_sha256 = %(digest)s, is_set_aside = true,
  expired_code = CASE WHEN expired_at IS NULL THEN 'replaced' ELSE expired_code END,
  expired_at = coalesce(expired_at, statement_timestamp())
WHERE id = %(id)s
"""
_KEEP = """
UPDATE subscriptions_app_subscription
SET address = %(address)s, address_sha256 = %(digest)s, is_set_aside = false,
  expired_code = CASE WHEN expired_at IS NULL AND %(ended)s::timestamptz IS NOT NULL
    THEN 'unsubscribed' ELSE expired_code END,
  expired_at = coalesce(expired_at, %(ended)s::timestamptz)
WHERE id = %(id)s
"""
_COUNT_PERSON = """
UPDATE subscriptions_app_person SET active_devices = active_devices + %(change)s,
  left_at = CASE WHEN active_devices + %(change)s = 0
    THEN coalesce(left_at, statement_timestamp()) END
WHERE id = %(id)s RETURNING active_devices
"""
_COUNT = """
INSERT INTO channels_app_channelcounter AS counter
  (channel_id, shard, web_subscribers, stored_subscriptions, people, linked_devices)
VALUES (%(channel)s, pg_backend_pid() %% 8, %(active)s, %(stored)s, %(people)s, %(linked)s)
ON CONFLICT (channel_id, shard) DO UPDATE
SET web_subscribers = counter.web_subscribers + EXCLUDED.web_subscribers,
  stored_subscriptions = counter.stored_subscriptions + EXCLUDED.stored_subscriptions,
  people = counter.people + EXCLUDED.people,
  linked_devices = counter.linked_devices + EXCLUDED.linked_devices
"""
_COUNT_HOUR = """
INSERT INTO channels_app_channelhour AS stored (channel_id, shard, hour, web_lost)
VALUES (%(channel)s, pg_backend_pid() %% 8, date_trunc('hour', statement_timestamp(), 'UTC'),
  %(lost)s)
ON CONFLICT (channel_id, shard, hour) DO UPDATE SET web_lost = stored.web_lost + EXCLUDED.web_lost
"""


def _merge(_apps, schema_editor):
    merge(schema_editor.connection)


class Migration(migrations.Migration):
    # Devices go on subscribing, and workers go on sending.
    atomic = False

    dependencies = [
        ('channels_app', '0014_scope_subscribers'),
        ('subscriptions_app', '0020_name_not_found'),
    ]

    operations = [
        migrations.RunPython(_merge, migrations.RunPython.noop),
    ]
