"""Every address of the console, for anonymous visitors and for those who lost a right.

The addresses come from the site itself, so that new pages are tested too. For members of other
accounts tests/isolation/test_console.py requests them.
"""

from itertools import chain

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import FieldDoesNotExist
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.urls.exceptions import NoReverseMatch

from channels_app.models import (
    ApiKey,
    Channel,
    IdentityKey,
    Membership,
    ProviderCredential,
    Role,
    VapidKey,
    Webhook,
)
from channels_app.sign_in.admin import pages as sign_in
from notifications_app.models import Automation, Draft, Image, Notification, Schedule, Template
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
from tests.admin.support import WORD, signed_in

OPEN_TO_ALL = {
    "login",
    "account_login",
    "mfa_login_webauthn",
    "mfa_authenticate",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key",
}
SUPERUSERS_ONLY = ["auth_user", "axes_accessattempt", "django_celery_beat_periodictask"]


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
        "draft_id": rows["draft"].pk,
        "schedule_id": rows["schedule"].pk,
        "automation_id": rows["automation"].pk,
        "newsfeed_id": rows["newsfeed"].pk,
        "subscription_id": rows["subscription"].pk,
        "person_id": rows["person"].pk,
        "user_id": house.members["owner"].pk,
        "webhook_id": rows["webhook"].pk,
        "platform": "web",
        "app_label": "channels_app",
        "content_type_id": ContentType.objects.get_for_model(Channel).pk,
        "uidb36": "1",
        "key": "abc-def",
        "pk": 1,
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
    own = {f"admin:{each.name}": each for each in patterns(admin.url_patterns) if each.name}
    for name, pattern in (own | {each.name: each for each in sign_in.urlpatterns}).items():
        model = next((name for name in objects if f"_{name}_" in pattern.name), "channel")
        known = ids | {"object_id": objects[model].pk}
        wanted = pattern.pattern.converters or pattern.pattern.regex.groupindex
        try:
            arguments = {name: known[name] for name in wanted}
        except KeyError as missing:
            pytest.fail(f"tell ids_of what {missing} of {pattern} is")
        try:
            yield pattern.name, reverse(name, kwargs=arguments)
        except NoReverseMatch:
            yield pattern.name, reverse(name, args=arguments.values())


def text_of(response):
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode(errors="replace") + str(response.headers)


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
        Schedule,
        Automation,
        Image,
        Person,
        IdentityKey,
        Webhook,
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


def assert_sees_only_the_sign_in_page(client, house):
    for name, path in addresses(house):
        for ask in (client.get, client.post):
            response = ask(path)
            assert WORD not in text_of(response), path
            if name not in {*OPEN_TO_ALL, "logout"}:
                assert response.status_code in {302, 404}, (name, path, response.status_code)
                assert response.status_code == 404 or "/admin/login/" in response["Location"], path


def test_an_anonymous_visitor_sees_only_the_sign_in_page(zebra):
    assert_sees_only_the_sign_in_page(Client(), zebra)


def test_a_deactivated_user_is_signed_out_at_once(zebra):
    owner = zebra.members["owner"]
    client = signed_in(owner)
    assert client.get(reverse("admin:index")).status_code == 200

    User.objects.filter(pk=owner.pk).update(is_active=False)

    assert_sees_only_the_sign_in_page(client, zebra)


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
            response = client.get(path, {f"{field}__startswith": "a"})
            assert response.status_code in {302, 400, 403}, (path, field)


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

    assert not shown & {"Authenticator", "EmailAddress", "SocialAccount", "Group", "AccessLog"}
    for model, admin in site._registry.items():
        for hidden in ("secret_sha256", "private_key_encrypted", "secret_encrypted", "password"):
            try:
                model._meta.get_field(hidden)
            except FieldDoesNotExist:
                continue
            assert hidden not in str(admin.get_fields(None) if admin.fields else admin.list_display)
