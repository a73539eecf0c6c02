"""No key opens anything of another channel, and none is told whether there is such a thing.

Each request is made twice: about what is Bob's, and about what nobody has. Both must get the same
answer by the same statements and the same commands to Redis. Every operation of the URL
configuration is asked with every credential that is not Bob's, about everything that is.
"""

from datetime import UTC, datetime

import pytest

from channels_app.models import Scope
from channels_app.services import api_key_issue, api_key_revoke
from tests.isolation.estates import MISSING, WORD
from tests.isolation.operations import ALL, KINDS, NEEDS, OF_NOBODY, OF_SOMEBODY, PLAIN
from tests.isolation.witness import difference

pytestmark = pytest.mark.django_db

EVERY = tuple(Scope.values)
LONG_AGO = datetime(2001, 2, 3, tzinfo=UTC)
ALL_SCOPES = "all scopes"
PUBLIC = ["X-Channel-ID"]  # that a channel is there may be known: devices send its id
PUBLIC_ROUTES = [each for each in OF_SOMEBODY if not each.is_keyed]


def accepted(estate):
    """By name, the API keys that the estate's owner may have."""
    keys = {scope: estate.key(scope) for scope in EVERY} | {ALL_SCOPES: estate.key(*EVERY)}
    return {name: {"Authorization": f"Key {text}"} for name, text in keys.items()}


def refused(estate):
    """By name, what is no API key, or none any more."""
    _, expired = api_key_issue(channel=estate.channel, expires_at=LONG_AGO)
    row, revoked = api_key_issue(channel=estate.channel)
    api_key_revoke(api_key=row)
    good = estate.key(*EVERY)
    keys = {"expired": expired, "revoked": revoked, "mistyped": good[:-1] + "!"}
    given = {name: {"Authorization": f"Key {text}"} for name, text in keys.items()}
    return given | {"none": {}, "another scheme": {"Authorization": f"Bearer {good}"}}


def places(operation):
    """What of a request may name a thing: names that are given together."""
    for name in sorted(operation.names & KINDS.keys()):
        yield [name, NEEDS[name]] if name in NEEDS else [name]
    if len(operation.path_names) > 1:
        yield operation.path_names


PLACES = [
    pytest.param(operation, names, id=f"{operation} {'+'.join(names)}")
    for operation in OF_SOMEBODY
    for names in places(operation)
]


def test_every_route_is_told_apart():
    """A new one is in the OpenAPI document, or says in OF_NOBODY that it knows nobody's things."""
    assert {each.route for each in ALL} >= OF_NOBODY
    for operation in OF_SOMEBODY:
        assert set(operation.path_names) <= operation.names


@pytest.mark.parametrize("operation", OF_SOMEBODY, ids=str)
def test_every_name_that_a_request_may_hold_is_told_apart(operation):
    """A new one says in KINDS what it names, or in PLAIN that it names nothing."""
    assert operation.names <= KINDS.keys() | PLAIN


def meant(estate, names):
    """The estate's own things that these names mean."""
    return [estate.named(name, KINDS[name]) for name in names]


def all_of(estate, names):
    """Whatever of the estate's may be put there: also what is of another sort."""
    if len(names) > 1:
        return [meant(estate, names)]
    return [[thing] for thing in estate.guesses[KINDS[names[0]]]]


def tried(alice, second, bob, operation, names):
    """(who asks, with what, about which of Bob's)"""
    others = all_of(bob, names)
    if names == PUBLIC:
        others.remove([bob.ids["channel_id"]])
    if operation.method == "HEAD":  # is GET, but for what is sent
        yield alice, accepted(alice)[ALL_SCOPES], others[:1]
        return
    for credential, headers in (accepted(alice) | refused(alice)).items():
        yield alice, headers, others if credential == ALL_SCOPES else others[:1]
    yield second, accepted(second)[ALL_SCOPES], others[:1]


@pytest.mark.parametrize(("operation", "names"), PLACES)
def test_what_is_another_s_is_as_if_it_were_not(witness, alice, second, bob, operation, names):
    nothing = [MISSING[KINDS[name]] for name in names]
    witness.of(operation.request(alice, **about(names, nothing)))  # what processes keep, is kept
    for own, headers, others in tried(alice, second, bob, operation, names):
        expected = witness.of(operation.request(own, **about(names, nothing)), nothing, headers)
        for things in others:
            trace = witness.of(operation.request(own, **about(names, things)), things, headers)
            assert not difference(expected, trace), (headers, things)
            assert WORD not in str(trace), (headers, things)


@pytest.mark.parametrize(("operation", "names"), PLACES)
def test_what_is_one_s_own_is_found(witness, alice, operation, names):
    """Else two answers would be alike because nothing is ever found there."""
    headers = accepted(alice)[ALL_SCOPES]
    own, nothing = meant(alice, names), [MISSING[KINDS[name]] for name in names]

    found = witness.of(operation.request(alice, **about(names, own)), own, headers)

    missed = witness.of(operation.request(alice, **about(names, nothing)), nothing, headers)
    assert difference(found, missed)
    assert found.status not in {401, 403, 404}


@pytest.mark.parametrize("operation", PUBLIC_ROUTES, ids=str)
def test_no_credential_changes_what_a_public_route_does(witness, alice, bob, operation):
    """Whoever knows Bob's channel, or holds a token of his, is anybody, Alice and Bob included."""
    own = {name: bob.named(name, KINDS[name]) for name in operation.names & KINDS.keys()}
    request = operation.request(bob, **own)
    alone = witness.of(request)

    for estate in (alice, bob):
        for credential, headers in (accepted(estate) | refused(estate)).items():
            assert not difference(alone, witness.of(request, headers=headers)), credential


def about(names, things):
    return dict(zip(names, things, strict=True))
