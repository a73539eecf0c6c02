"""Every address of the console, for each role, for other accounts and for anonymous visitors.

The addresses come from the site itself, so that new pages are tested too. Everything of Bob's is
called zebra: no member of Alice's account may ever read that word.
"""

import json
from itertools import chain

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import FieldDoesNotExist
from django.db.models.functions import Now
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.urls.exceptions import NoReverseMatch

from channels_app.identity_keys import identity_key_create
from channels_app.models import (
    ApiKey,
    Channel,
    IdentityKey,
    Membership,
    ProviderCredential,
    Role,
    VapidKey,
)
from channels_app.services import api_key_issue, provider_credentials_store
from notifications_app.models import Draft, Notification, Template
from pushsvc.common.console.admin import site
from subscriptions_app.models import (
    Category,
    Person,
    Segment,
    Subscription,
    Tag,
    TagRemoval,
    TestDevice,
)
from tests.admin.support import fill_hours, signed_in
from tests.api.credentials import GOOGLE
from tests.factories import (
    add_crowd,
    add_tags,
    make_category,
    make_device,
    make_draft,
    make_sent_notification,
    make_template,
)

WORD = "zebra"
OPEN_TO_ALL = {"login", "set_password", "forgot_password"}
# What the forms of these pages ask for, beside what all forms are tried with.
ACTS = {
    "subscriptions_app_person_change": ("opt-out", "opt-in", "erase"),
    "channel_categories": ("add", "change", "archive", "require"),
    "channel_identity": ("secret", "public", "retire"),
}
SUPERUSERS_ONLY = ["auth_user", "axes_accessattempt", "django_celery_beat_periodictask"]


@pytest.fixture
def zebra(bob):
    """Bob's account with one row of every kind, each with the word in it."""
    add_crowd(bob.channel, 3)
    fill_hours(bob.channel, days=1)
    bob.account.name = bob.channel.name = WORD
    bob.account.save()
    bob.channel.save()
    for user in bob.members.values():
        User.objects.filter(pk=user.pk).update(username=f"{WORD}-{user.pk}")
    rule = {"attribute": WORD, "operator": "eq", "value": WORD}
    subscriptions = Subscription.objects.filter(channel=bob.channel)
    subscriptions.update(attributes={WORD: WORD}, expired_code="")
    bob.rows = {
        "channel": bob.channel,
        "key": api_key_issue(channel=bob.channel, name=WORD)[0],
        "segment": Segment.objects.create(channel=bob.channel, name=WORD, rule=rule),
        "subscription": subscriptions[0],
        "person": Person.objects.create(channel=bob.channel, external_id=WORD, left_at=Now()),
        "notification": make_sent_notification(
            bob.channel, title=WORD, body=WORD, status="pending"
        ),
        "draft": make_draft(bob.channel, bob.members["owner"], title=WORD),
        "template": make_template(bob.channel, WORD, {"title": WORD, "body": WORD}),
    }
    make_device(bob.channel, subscriptions[0], bob.members["owner"], name=WORD)
    make_category(bob.channel, WORD)
    add_tags([subscriptions[0]], WORD)
    identity_key_create(channel=bob.channel, public_key=None)
    provider_credentials_store(
        channel=bob.channel, fcm_service_account=json.dumps(GOOGLE | {"project_id": f"{WORD}-1"})
    )
    return bob


def patterns(found, prefix=""):
    for pattern in found:
        if isinstance(pattern, URLPattern):
            yield pattern
        else:
            yield from patterns(pattern.url_patterns)


def ids_of(house):
    """The ids that addresses take, each of one of the house's own rows."""
    rows = house.rows
    return {
        "channel_id": rows["channel"].pk,
        "key_id": rows["key"].pk,
        "account_id": house.account.pk,
        "notification_id": rows["notification"].pk,
        "segment_id": rows["segment"].pk,
        "template_id": rows["template"].pk,
        "subscription_id": rows["subscription"].pk,
        "person_id": rows["person"].pk,
        "user_id": house.members["owner"].pk,
        "platform": "web",
        "app_label": "channels_app",
        "content_type_id": ContentType.objects.get_for_model(Channel).pk,
        "uidb64": "MQ",
        "token": "abc-def",
        "url": "nothing/here",
    }


def objects_of(house):
    """The house's rows, by the name that addresses have for their model."""
    return {
        "channel": house.rows["channel"],
        "apikey": house.rows["key"],
        "segment": house.rows["segment"],
        "subscription": house.rows["subscription"],
        "notification": house.rows["notification"],
        "draft": house.rows["draft"],
        "person": house.rows["person"],
        "account": house.account,
        "user": house.members["owner"],
        "logentry": entry_of(house),
    }


def entry_of(house):
    logged = site._registry.keys()
    entries = next(model for model in logged if model.__name__ == "LogEntry")
    return entries.objects.filter(additional_data__account=str(house.account.pk)).first()


def addresses(house):
    """(name, path) of every address of the console, with the house's ids."""
    admin = next(
        each for each in get_resolver().url_patterns if getattr(each, "namespace", "") == "admin"
    )
    ids, objects = ids_of(house), objects_of(house)
    for pattern in patterns(admin.url_patterns):
        if pattern.name is None:
            continue
        model = next((name for name in objects if f"_{name}_" in pattern.name), "channel")
        known = ids | {"object_id": objects[model].pk}
        wanted = pattern.pattern.converters or pattern.pattern.regex.groupindex
        try:
            arguments = {name: known[name] for name in wanted}
        except KeyError as missing:
            pytest.fail(f"tell ids_of what {missing} of {pattern} is")
        try:
            yield pattern.name, reverse(f"admin:{pattern.name}", kwargs=arguments)
        except NoReverseMatch:
            yield pattern.name, reverse(f"admin:{pattern.name}", args=arguments.values())


def text_of(answer):
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return content.decode(errors="replace") + str(answer.headers)


def asked(client, house):
    """[(name, path, answer)] of every address, alone and with searches and filters."""
    channel = house.rows["channel"].pk
    more = f"?q=ebra&channel__id__exact={channel}&channel={channel}&days=90"
    for name, path in addresses(house):
        if name == "logout":
            continue
        yield name, path, client.get(path)
        yield name, path, client.get(path + more)


def posted(client, house):
    for name, path in addresses(house):
        for act in ("remove", *ACTS.get(name, ())) if name != "logout" else ():
            fields = {"do": act, "post": "yes", "action": "clear", "key": WORD}
            if name == "channel_tags":  # forms of notifications repeat the tag that they were sent
                fields["tag"] = WORD
            yield name, path, client.post(path, fields | {"name": "taken", "required": "yes"})


def everything_of(house):
    """Every stored row of the house. No page may have changed it."""
    channel = house.rows["channel"]
    models = (
        ApiKey,
        VapidKey,
        ProviderCredential,
        Segment,
        Subscription,
        TestDevice,
        Notification,
        Draft,
        Template,
        Person,
        IdentityKey,
        Category,
        Tag,
        TagRemoval,
    )
    rows = chain(
        Channel.objects.filter(pk=channel.pk).values(),
        Membership.objects.filter(account=house.account).order_by("pk").values(),
        User.objects.filter(memberships__account=house.account).order_by("pk").values(),
        *(model.objects.filter(channel_id=channel.pk).order_by("pk").values() for model in models),
    )
    return [str(row) for row in rows]


@pytest.mark.parametrize("role", Role.values)
def test_no_page_shows_a_member_anything_of_another_account(alice, zebra, role):
    for name, path, answer in asked(signed_in(alice.members[role]), zebra):
        assert answer.status_code < 500, path
        assert WORD not in text_of(answer), (name, path, answer.status_code)


def test_the_accounts_own_members_do_read_its_word(zebra):
    """Without this, a page that never shows the word would pass the test above."""
    told = {
        name
        for name, _, answer in asked(signed_in(zebra.members["owner"]), zebra)
        if answer.status_code == 200 and WORD in text_of(answer)
    }

    assert told >= {
        "channels_app_channel_changelist",
        "channels_app_channel_change",
        "channels_app_account_change",
        "notifications_app_notification_changelist",
        "notifications_app_notification_change",
        "notifications_app_draft_changelist",
        "subscriptions_app_segment_changelist",
        "subscriptions_app_segment_change",
        "subscriptions_app_subscription_change",
        "auditlog_logentry_changelist",
        "channel_keys",
        "channel_best_hours",
        "channel_devices",
        "channel_tags",
        "tag_names",
        "channel_categories",
        "channel_templates",
        "template_edit",
        "subscriptions_app_person_change",
        "person_export",
    }


@pytest.mark.parametrize("role", Role.values)
def test_no_form_lets_a_member_change_another_account(alice, zebra, role):
    before = everything_of(zebra)

    for name, path, answer in posted(signed_in(alice.members[role]), zebra):
        assert answer.status_code < 500, path
        assert WORD not in text_of(answer), (name, path, answer.status_code)

    assert everything_of(zebra) == before


def test_an_anonymous_visitor_sees_only_the_sign_in_page(zebra):
    for name, path, answer in chain(asked(Client(), zebra), posted(Client(), zebra)):
        assert answer.status_code < 500, path
        assert WORD not in text_of(answer), path
        if name not in OPEN_TO_ALL:
            assert answer.status_code in {302, 404}, (name, path, answer.status_code)
            assert answer.status_code == 404 or "/admin/login/" in answer["Location"], path


def test_a_deactivated_user_is_signed_out_at_once(zebra):
    owner = zebra.members["owner"]
    client = signed_in(owner)
    assert client.get(reverse("admin:index")).status_code == 200

    User.objects.filter(pk=owner.pk).update(is_active=False)

    for _, path, answer in asked(client, zebra):
        assert WORD not in text_of(answer), path


def test_a_demotion_takes_effect_at_the_next_request(alice):
    manager = alice.members["manager"]
    client = signed_in(manager)
    page = reverse("admin:channel_keys", args=[alice.channel.pk])
    assert client.post(page, {"name": "one", "scopes": ["read"]}).status_code == 200

    Membership.objects.filter(user=manager).update(role=Role.VIEWER)

    assert client.post(page, {"name": "two", "scopes": ["read"]}).status_code == 403
    assert ApiKey.objects.filter(channel=alice.channel).count() == 1


def test_a_superuser_sees_every_account(alice, zebra, root):
    page = signed_in(root).get(reverse("admin:channels_app_channel_changelist")).content.decode()

    assert str(alice.channel.pk) in page
    assert str(zebra.channel.pk) in page


def test_a_user_without_an_account_sees_no_list(bob):
    loner = bob.members["owner"]
    loner.memberships.all().delete()
    client = signed_in(loner)

    for model in site._registry:
        path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        assert client.get(path).status_code == 403, path


@pytest.mark.parametrize("model", SUPERUSERS_ONLY)
def test_only_superusers_open_pages_about_the_installation(alice, root, model):
    page = reverse(f"admin:{model}_changelist")

    assert signed_in(alice.members["owner"]).get(page).status_code == 403
    assert signed_in(root).get(page).status_code == 200


@pytest.mark.parametrize("role", Role.values)
def test_the_side_bar_offers_only_pages_that_open(alice, role):
    client = signed_in(alice.members[role])
    bar = client.get(reverse("admin:index")).context["side_bar"]
    links = [link for group in bar for link in group["links"]]

    assert links
    for link in links:
        assert client.get(link["url"], follow=True).status_code == 200, link["title"]


def test_a_list_refuses_filters_that_it_does_not_offer(alice):
    """A filter on any column would disclose hidden columns letter by letter."""
    client = signed_in(alice.members["viewer"])

    for model, admin in site._registry.items():
        path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        offered = {str(entry) for entry in admin.list_filter}
        for field in {field.name for field in model._meta.fields} - offered:
            answer = client.get(path, {f"{field}__startswith": "a"})
            assert answer.status_code in {302, 400, 403}, (path, field)


def choices_of(field):
    meta = field.model._meta
    return {
        "app_label": meta.app_label,
        "model_name": meta.model_name,
        "field_name": field.name,
        "term": "ebra",
    }


def test_every_autocomplete_offers_only_the_own_account(alice, zebra, root):
    def offered(user):
        """The fields whose choices name rows of Bob's."""
        client = signed_in(user)
        fields = [field for model in site._registry for field in model._meta.get_fields()]
        return {
            str(field)
            for field in fields
            if field.many_to_one
            and field.concrete
            and WORD
            in client.get(reverse("admin:autocomplete"), choices_of(field)).content.decode()
        }

    assert offered(root)
    assert offered(alice.members["owner"]) == set()


def test_no_page_of_a_package_shows_what_the_console_hides(root):
    shown = {model.__name__ for model in site._registry}

    assert not shown & {"TOTPDevice", "StaticDevice", "Group", "AccessLog", "AccessFailureLog"}
    for model, admin in site._registry.items():
        for hidden in ("secret_sha256", "private_key_encrypted", "secret_encrypted", "password"):
            try:
                model._meta.get_field(hidden)
            except FieldDoesNotExist:
                continue
            assert hidden not in str(admin.get_fields(None) if admin.fields else admin.list_display)
