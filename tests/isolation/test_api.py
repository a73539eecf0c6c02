"""No key opens anything of another channel, and no response discloses whether such a thing exists.

Each request is made twice: about a thing of Bob's, and about one that does not exist. Both must get
the same response with the same statements and the same commands to Redis. Every operation of the
URL configuration is requested with every credential that is not Bob's, about everything that is
his.
"""

from datetime import UTC, datetime

import pytest

from channels_app.models import Scope
from channels_app.services import api_key_issue, api_key_revoke
from tests.admin.support import WORD
from tests.isolation.estates import MISSING, nobodys
from tests.isolation.operations import (
    ALL,
    KINDS,
    MADE,
    NEEDS,
    OF_NOBODY,
    OF_SOMEBODY,
    PLAIN,
    Request,
)
from tests.isolation.witness import difference

pytestmark = pytest.mark.django_db

EVERY = tuple(Scope.values)
LONG_AGO = datetime(2001, 2, 3, tzinfo=UTC)
ALL_SCOPES = "all scopes"
PUBLIC = ["X-Channel-ID"]  # The existence of a channel is public: devices send its id.
PUBLIC_ROUTES = [each for each in OF_SOMEBODY if not each.is_keyed]


@pytest.fixture(scope="module")
def credentials(_estates, django_db_blocker):
    """Returns the headers with each credential of an estate's owner, by name. They are made once,
    with the estates, because most requests need one."""
    with django_db_blocker.unblock():
        made = {each.channel.pk: accepted(each) | refused(each) for each in _estates}
    return lambda estate: made[estate.channel.pk]


def accepted(estate):
    """By name, the API keys that the estate's owner may have."""
    keys = {scope: estate.key(scope) for scope in EVERY} | {ALL_SCOPES: estate.key(*EVERY)}
    return {name: {"Authorization": f"Key {text}"} for name, text in keys.items()}


def refused(estate):
    """By name, values that are not or no longer an API key."""
    _, expired = api_key_issue(channel=estate.channel, expires_at=LONG_AGO)
    row, revoked = api_key_issue(channel=estate.channel)
    api_key_revoke(api_key=row)
    good = estate.key(*EVERY)
    keys = {"expired": expired, "revoked": revoked, "mistyped": good[:-1] + "!"}
    given = {name: {"Authorization": f"Key {text}"} for name, text in keys.items()}
    return given | {"none": {}, "another scheme": {"Authorization": f"Bearer {good}"}}


def places(operation):
    """The parts of a request that may name a thing: names that are given together."""
    made = MADE.get((operation.method, operation.route), set())
    for name in sorted((operation.names & KINDS.keys()) - made):
        yield [name, NEEDS[name]] if name in NEEDS else [name]
    if len(operation.path_names) > 1:
        yield operation.path_names


PLACES = [
    pytest.param(operation, names, id=f"{operation} {'+'.join(names)}")
    for operation in OF_SOMEBODY
    for names in places(operation)
]


def test_every_route_is_classified():
    """A new one is in the OpenAPI document, or OF_NOBODY says that it concerns no channel."""
    assert {each.route for each in ALL} >= OF_NOBODY
    for operation in OF_SOMEBODY:
        assert set(operation.path_names) <= operation.names


@pytest.mark.parametrize("operation", OF_SOMEBODY, ids=str)
def test_every_name_in_a_request_is_classified(operation):
    """KINDS says what a new name refers to, or PLAIN that it refers to nothing."""
    assert operation.names <= KINDS.keys() | PLAIN


def meant(estate, names):
    """The estate's own things that these names refer to."""
    return [estate.named(name, KINDS[name]) for name in names]


def all_of(estate, names):
    """Everything of the estate's that fits there, also things of another kind."""
    if len(names) > 1:
        return [meant(estate, names)]
    return [[thing] for thing in estate.guesses[KINDS[names[0]]]]


def tried(credentials, alice, second, bob, operation, names):
    """(who asks, with what, about which of Bob's things)"""
    others = all_of(bob, names)
    if names == PUBLIC:
        others.remove([bob.ids["channel_id"]])
    if operation.method == "HEAD":  # is GET, except for its body
        yield alice, credentials(alice)[ALL_SCOPES], others[:1]
        return
    for credential, headers in credentials(alice).items():
        yield alice, headers, others if credential == ALL_SCOPES else others[:1]
    yield second, credentials(second)[ALL_SCOPES], others[:1]


@pytest.mark.parametrize(("operation", "names"), PLACES)
def test_the_response_about_another_channels_thing_is_that_about_a_missing_one(
    witness, credentials, alice, second, bob, operation, names
):
    nothing = [MISSING[KINDS[name]] for name in names]
    # Processes keep what they have cached.
    witness.of(operation.request(alice, **about(names, nothing)))
    for own, headers, others in tried(credentials, alice, second, bob, operation, names):
        expected = witness.of(operation.request(own, **about(names, nothing)), nothing, headers)
        for things in others:
            trace = witness.of(operation.request(own, **about(names, things)), things, headers)
            assert not difference(expected, trace), (headers, things)
            assert WORD not in str(trace), (headers, things)
        if operation.is_keyed and set(names) <= set(operation.path_names):
            assert expected.status in {401, 403, 404}


@pytest.mark.parametrize(("operation", "names"), PLACES)
def test_the_owners_own_things_are_found(witness, credentials, alice, operation, names):
    """Otherwise the responses would be alike because nothing is ever found."""
    headers = credentials(alice)[ALL_SCOPES]
    own, nothing = meant(alice, names), [MISSING[KINDS[name]] for name in names]

    found = witness.of(operation.request(alice, **about(names, own)), own, headers)

    missed = witness.of(operation.request(alice, **about(names, nothing)), nothing, headers)
    assert difference(found, missed)
    assert found.status not in {401, 403, 404}


@pytest.mark.parametrize("name", ["external_ids", "subscription_ids"])
def test_a_dry_run_reports_another_channels_targets_like_missing_ones(
    witness, credentials, alice, bob, name
):
    kind = {"external_ids": "person", "subscription_ids": "id"}[name]
    headers = credentials(alice)[ALL_SCOPES]

    def asked(thing):
        body = {"body": "Hello", "dry_run": True, name: [thing]}
        return witness.of(Request("POST", "/send-notification", body), [thing], headers)

    asked(MISSING[kind])  # processes keep what they have cached
    for thing in bob.guesses[kind]:
        assert not difference(asked(nobodys(kind, thing)), asked(thing)), thing
    own = alice.ids["subscription_id"] if kind == "id" else alice.things[kind][0]
    assert difference(asked(nobodys(kind, own)), asked(own))


@pytest.mark.parametrize("operation", PUBLIC_ROUTES, ids=str)
def test_no_credential_changes_what_a_public_route_does(
    witness, credentials, alice, bob, operation
):
    """Anybody may know Bob's channel or hold a token of his."""
    own = {name: bob.named(name, KINDS[name]) for name in operation.names & KINDS.keys()}
    request = operation.request(bob, **own)
    alone = witness.of(request)

    for estate in (alice, bob):
        for credential, headers in credentials(estate).items():
            assert not difference(alone, witness.of(request, headers=headers)), credential


def about(names, things):
    return dict(zip(names, things, strict=True))
