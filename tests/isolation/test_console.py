"""No page of the console opens anything of another account, or discloses whether it exists.

As in `test_api.py`, each request is made about a thing of Bob's and about one that does not exist.
Addresses come from the site itself, so that new pages are requested as well.
"""

from dataclasses import dataclass, field
from urllib.parse import urlencode

import pytest
from django.contrib.admin.views.main import SEARCH_VAR
from django.http import SimpleCookie
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels_app.models import Role
from pushsvc.common.console.admin import site
from tests.admin.attacks.test_tenancy import written
from tests.admin.console.test_scope import SUPERUSERS_ONLY, addresses
from tests.admin.support import WORD, signed_in
from tests.isolation.estates import MISSING, nobodys
from tests.isolation.witness import difference

pytestmark = pytest.mark.django_db

METHODS = ("GET", "POST")
LESSER_ROLES = [role for role in Role.values if role != Role.OWNER]
# Refused to every member of an account, whatever they name.
FIND_NOTHING = ("view_on_site", *SUPERUSERS_ONLY)
# Lead to the audit log, whatever they name.
HISTORIES = {f"{each._meta.app_label}_{each._meta.model_name}_history" for each in site._registry}
KINDS = ("id", "number", "name", "digest", "endpoint", "android_token", "once")
# Query parameters of pages that are not lists.
QUERIES = {
    "template_new": {"notification": "id"},
    "index": {"channel": "id"},
    "dashboard_live": {"channel": "id"},
    "dashboard_attention": {"channel": "id"},
    "dashboard_chart": {"channel": "id"},
    "notification_compare": {"id": "id"},
    "notification_compare_chart": {"id": "id"},
    "notification_labels": {"channel__id__exact": "id"},
    "notification_labels_chart": {"channel__id__exact": "id"},
    "notification_compose": {"channel": "id", "draft": "id"},
    "search": {"s": "name"},
    "segment_sizes": {"id": "id"},
    "channel_devices": {"q": "name"},
}


@dataclass(frozen=True)
class Visit:
    session: SimpleCookie
    method: str
    path: str
    form: dict = field(default_factory=dict)

    def ask(self):
        client = Client()
        client.cookies = SimpleCookie(self.session.output(header=""))
        return client.generic(
            self.method,
            self.path,
            urlencode(self.form),
            content_type="application/x-www-form-urlencoded",
        )


def session_of(estate, role):
    return signed_in(estate.house.members[role]).cookies


def pages(estate):
    """By name, the address of every page with the estate's ids."""
    return {name: path for name, path in addresses(estate.house) if name != "logout"}


def routes(alice, bob):
    """(name, Alice's address, [(the same about Bob's thing, about a missing one, what they
    name)])"""
    theirs = pages(bob)
    for name, path in pages(alice).items():
        parts, others = path.split("/"), theirs[name].split("/")
        differing = [n for n, part in enumerate(parts) if part != others[n]]
        chosen = [[n] for n in differing] + ([differing] if len(differing) > 1 else [])
        yield name, path, [_pair(parts, others, numbers) for numbers in chosen]


def _pair(parts, others, numbers):
    theirs, missing = list(parts), list(parts)
    for n in numbers:
        theirs[n] = others[n]
        missing[n] = MISSING["number" if others[n].isdecimal() else "id"]
    return [("/".join(path), [path[n] for n in numbers]) for path in (theirs, missing)]


def assert_alike(witness, session, method, theirs, missing, form=None):
    seen = []
    for path, named in (missing, theirs):
        given = {name: named[0] if value is None else value for name, value in (form or {}).items()}
        seen.append(witness.of(Visit(session, method, path, given), named))
    assert not difference(*seen), (method, theirs, form)
    assert WORD not in str(seen[1]), (method, theirs, form)
    return seen[0].status


FORM = {"do": "remove", "post": "yes", "action": "clear"}
# What the forms of these pages do besides.
ACTS = {
    "subscriptions_app_person_change": ("opt-out", "opt-in", "erase"),
    "channel_categories": ("add", "require"),
    "channel_identity": ("secret", "public"),
}


@pytest.mark.parametrize("method", METHODS)
def test_the_response_for_another_accounts_address_is_that_for_a_missing_one(
    witness, alice, bob, method
):
    """For an owner, the role with most rights."""
    session = session_of(alice, Role.OWNER)
    for name, own, pairs in routes(alice, bob):
        # First, because processes keep what they have cached.
        assert WORD not in str(witness.of(Visit(session, method, own, FORM))), name
        for act in ("remove", *(ACTS.get(name, ()) if method == "POST" else ())):
            for theirs, missing in pairs:
                form = FORM | {"do": act}
                status = assert_alike(witness, session, method, theirs, missing, form)
                assert status in {302, 403, 404, 405}, (name, theirs)


@pytest.fixture
def with_ids(alice, bob):
    """The routes that name something."""
    return [route for route in routes(alice, bob) if route[2]]


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_another_accounts_address_is_refused_for_every_other_role(witness, alice, with_ids, data):
    session = session_of(alice, data.draw(st.sampled_from(LESSER_ROLES)))
    method = data.draw(st.sampled_from(METHODS))
    _, own, pairs = data.draw(st.sampled_from(with_ids))
    witness.of(Visit(session, method, own, FORM))
    assert_alike(witness, session, method, *data.draw(st.sampled_from(pairs)), FORM)


@pytest.mark.parametrize("method", METHODS)
def test_an_anonymous_visitor_gets_the_same_answer_for_both(witness, alice, bob, method):
    for _, own, pairs in routes(alice, bob):
        witness.of(Visit(SimpleCookie(), method, own))
        for theirs, missing in pairs:
            assert_alike(witness, SimpleCookie(), method, theirs, missing)


def is_path_alike(witness, session, method, *paths):
    one, other = (witness.of(Visit(session, method, path)).statements for path in paths)
    return one == other


def test_the_owners_own_things_are_found(witness, alice, bob):
    """Otherwise the responses would be alike because nothing is ever found."""
    session, missed = session_of(alice, Role.OWNER), set()
    for name, own, pairs in routes(alice, bob):
        for _, (path, _) in pairs:
            if all(is_path_alike(witness, session, method, own, path) for method in METHODS):
                missed.add(name)

    assert {name for name in missed - HISTORIES if not name.startswith(FIND_NOTHING)} == set()


def lists():
    """(name of the list, its parameter, the kind of thing to ask it for)"""
    for model, admin in site._registry.items():
        name = f"{model._meta.app_label}_{model._meta.model_name}_changelist"
        asked = [getattr(each, "parameter_name", each) for each in admin.list_filter]
        for parameter in asked:
            yield name, parameter, "id"
        if admin.search_fields:
            yield from ((name, SEARCH_VAR, kind) for kind in KINDS)
    for name, parameters in QUERIES.items():
        yield from ((name, *each) for each in parameters.items())


@pytest.mark.parametrize("name", sorted({name for name, *_ in lists()}))
def test_a_list_finds_nothing_of_another_account(witness, alice, bob, name):
    session, path = session_of(alice, Role.OWNER), pages(alice)[name]
    witness.of(Visit(session, "GET", path))
    for _, parameter, kind in [each for each in lists() if each[0] == name]:
        for thing in bob.things[kind][: 6 if parameter == SEARCH_VAR else 1]:
            asked = [
                (f"{path}?{urlencode({parameter: each})}", [each])
                for each in (thing, nobodys(kind, thing))
            ]
            assert_alike(witness, session, "GET", *asked)


def forms(alice):
    """(page, form, the field that names a thing of Bob's); None marks its place."""
    draft = written(alice.channel)
    for page in ("notification_compose", "notification_compose_check", "notification_compose_test"):
        for step in ("review", "send"):
            yield page, draft | {"step": step, "channel": None}, "channel_id"
            yield page, draft | {"step": step, "segment_id": None}, "segment_id"
        for device in ("test_device", "test_known_as"):
            yield page, draft | {device: None}, "subscription_id"
            yield page, draft | {device: None}, "digest"
        yield page, draft | {"key": None}, "once"
    for page in ("draft_save", "draft_delete", "notification_compose"):
        yield page, draft | {"step": "edit", "version": "1", "draft": None}, "draft_id"
    yield "channel_devices", {"device": None}, "device_id"
    yield "channel_devices", {"device": None, "writer": ""}, "device_id"
    yield "channel_images", {"image": None}, "image_id"
    yield "channel_identity", {"do": "retire", "key": None}, "identity_key_id"
    yield "channel_tags", {"tag": None}, "tag"
    for do in ("archive", "change"):
        yield "channel_categories", {"do": do, "key": None, "name": "new"}, "category_key"
    for do in ("role", "remove", "link"):
        form = {"do": do, "role": "viewer", "membership": None}
        yield "channels_app_account_change", form, "number"
    channel = {"name": "new", "vapid_subject": "mailto:push@example.com", "enabled": "web"}
    for page in ("channels_app_channel_add", "channel_settings"):
        yield page, channel | {"account": None}, "account_id"
    new = {"channel": None, "name": "x", "rule": "{}"}
    yield "subscriptions_app_segment_add", new, "channel_id"


def test_a_form_that_names_another_accounts_row_is_refused_like_a_missing_one(witness, alice, bob):
    session, own = session_of(alice, Role.OWNER), pages(alice)
    for name, form, meant in forms(alice):
        kind = meant if meant in MISSING else "id"
        witness.of(Visit(session, "POST", own[name], {k: v or "" for k, v in form.items()}))
        theirs = bob.named(meant, kind)
        asked = (own[name], [theirs]), (own[name], [nobodys(kind, theirs)])
        assert_alike(witness, session, "POST", *asked, form)
