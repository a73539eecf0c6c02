"""Placeholders on the forms that write a notification: what is offered, previewed and missing."""

import json

import pytest
from django.urls import reverse

from notifications_app.models import Notification, Target, Template
from tests.admin.notifications.composing import (
    CHECK,
    COMPOSE,
    duplicate,
    errors,
    review,
    send,
    shown_in,
    written,
)
from tests.admin.notifications.test_actions import scheduled
from tests.admin.notifications.test_compose_audience import FUTURE
from tests.admin.notifications.test_edit import edited
from tests.admin.support import signed_in
from tests.factories import (
    add_each,
    add_subscription,
    add_subscriptions,
    make_direct_notification,
    make_person,
)

pytestmark = pytest.mark.django_db
HI = "Hi {{ first_name }}"
EXTRAS = {"personalize": True, "on_missing": "bounce"}


def personal(house, **fields):
    given = {"personalize": "on", "on_missing": "empty", "title": HI}
    return written(house, **given | fields)


def preview(client, form):
    return client.post(CHECK, form).json()["personal"]


def test_what_is_written_is_sent_as_a_personal_text(sender, alice):
    send(sender, personal(alice, on_missing="bounce"))
    notification = Notification.objects.get()
    assert (notification.title, notification.extras) == (HI, EXTRAS)


def test_without_the_switch_braces_are_text(sender, alice):
    form = written(alice, title=HI, on_missing="bounce", vars='{"sale": 1}')
    send(sender, form)
    notification = Notification.objects.get()
    assert (notification.title, notification.extras, notification.vars) == (HI, None, None)
    assert preview(sender, form) is None


@pytest.mark.parametrize(
    ("typed", "literal"),
    [
        ({"title": HI}, ["{{ first_name }}"]),
        ({"title": HI, "personalize": "on"}, []),
        ({"translations.de.body": "{{a}} {{ b c }} {{a}}"}, ["{{a}}", "{{ b c }}"]),
        ({"data_name": ["t"], "data_value": ["{{ row }}"], "title": "{ x } {{"}, []),
    ],
)
def test_the_review_names_what_looks_like_a_placeholder_and_is_sent_as_written(
    sender, alice, typed, literal
):
    page = review(sender, written(alice, **typed))
    assert page.context["literal"] == literal
    assert ("sent as written" in page.content.decode()) == bool(literal)


@pytest.mark.parametrize(
    ("typed", "field", "words"),
    [
        ({"title": "Hi {{ first_name"}, "title", "Character 4:"),
        ({"body": "{{ a | shout }}"}, "body", "Character 8:"),
        ({"url": "https://{{ host }}/"}, "url", "Character 9:"),
        ({"translations.de.body": "{% if a %}"}, "translations", "Text (de): Character 1:"),
        ({"actions.0.id": "a", "actions.0.title": "{{"}, "actions", "Label (button 1): Character"),
        ({"vars": "[1"}, "vars", "Must be an object."),
        ({"on_missing": "explode"}, "on_missing", "Must be one of"),
    ],
)
def test_a_text_that_is_no_template_is_told_beside_its_field_with_the_place(
    sender, alice, typed, field, words
):
    [error] = errors(sender, personal(alice, **typed))[field]
    assert error.startswith(words)


def test_a_copy_and_an_edit_keep_all_of_it(sender, alice):
    sent = {"title": HI, "extras": EXTRAS, "vars": {"sale": "20 %"}}
    notification = scheduled(alice.channel, **sent)

    after, _ = edited(sender, notification, body="{{ vars.sale }} off")
    assert (after.extras, after.vars) == (EXTRAS, sent["vars"])
    page = duplicate(sender, after)
    assert page.context["placeholders"][0] == ("vars.sale", "{{ vars.sale }}")
    send(sender, shown_in(page) | {"channel": str(alice.channel.pk), "when": "now"})
    copy = Notification.objects.latest("created_at")
    assert (copy.extras, copy.vars, copy.title) == (EXTRAS, sent["vars"], HI)


def test_an_edit_of_the_ids_keeps_the_values_of_those_who_stay(sender, alice):
    notification = make_direct_notification(
        alice.channel, people=["ada", "bob"], scheduled_at=FUTURE, extras=EXTRAS
    )
    targets = Target.objects.of(notification.pk)
    targets.update(vars={"order": 17})

    edited(sender, notification, ids="cleo\r\nada")

    values = [("cleo", None), ("ada", {"order": 17})]
    assert list(targets.values_list("external_id", "vars")) == values


def test_placeholders_are_offered_as_they_can_be_written(sender, alice, bob):
    names = ["plan", "first name", 'a "b"', "both \" and '", "if", "<b>"]
    add_subscriptions(alice.channel, 1, attributes=dict.fromkeys(names, "x"))
    add_subscriptions(bob.channel, 1, attributes={"secret": "x"})

    page = sender.get(COMPOSE)

    offered = dict(page.context["placeholders"])
    assert {name: offered.get(name) for name in names} == {
        "plan": "{{ plan }}",
        "first name": '{{ attributes["first name"] }}',
        'a "b"': "{{ attributes['a \"b\"'] }}",
        "both \" and '": None,
        "if": '{{ attributes["if"] }}',
        "<b>": '{{ attributes["<b>"] }}',
    }
    assert offered["external_id"] == "{{ external_id }}"
    assert "secret" not in offered
    assert 'data-placeholder="{{ attributes[&quot;&lt;b&gt;&quot;] }}"' in page.content.decode()


def test_the_preview_has_ten_subscribers_and_the_texts_of_the_chosen_one(sender, alice):
    attributes = {"first_name": "<i>Ada</i>", "city": "a/b"}
    ada = add_subscription(
        alice.channel, attributes, language="de", person=make_person(alice.channel, "a" * 60)
    )
    add_subscriptions(alice.channel, 12, attributes={"first_name": "Bob"})
    form = personal(
        alice,
        url="https://shop.example/{{ city }}",
        **{
            "translations.de.title": "Hallo {{ first_name }}",
            "ios.subtitle": "{{ platform }}",
            "actions.0.id": "buy",
            "actions.0.title": "Buy, {{ first_name }}",
        },
    )

    newest = preview(sender, form)
    assert len(newest["subscribers"]) == 10
    assert newest["chosen"] == newest["subscribers"][0]["id"]
    assert newest["texts"]["web"]["title"] == "Hi Bob"
    narrowed = form | {"audience": "people", "ids": "a" * 60, "preview_as": str(ada.pk)}
    found = preview(sender, narrowed)
    assert found["subscribers"] == [{"id": str(ada.pk), "words": f"{'a' * 39}…, Web, de"}]
    assert found["texts"]["web"] == {
        "title": "Hallo <i>Ada</i>",
        "body": "Twenty per cent off.",
        "url": "https://shop.example/a%2Fb",
        "icon": "",
        "image": "",
        "subtitle": "",
        "buttons": ["Buy, <i>Ada</i>"],
    }
    assert found["texts"]["ios"]["subtitle"] == "web"


def test_a_subscriber_of_another_channel_is_never_previewed(sender, alice, bob):
    foreign = add_subscription(bob.channel, {"first_name": "Secret"})
    add_subscription(alice.channel, {"first_name": "Ada"})

    found = sender.post(CHECK, personal(alice, preview_as=str(foreign.pk)))

    assert "Secret" not in found.content.decode()
    assert found.json()["personal"]["texts"]["web"]["title"] == "Hi Ada"


@pytest.mark.parametrize(("chosen", "shown"), [("1", "Ada, hi"), ("0", "Hi Ada"), ("9", "Hi Ada")])
def test_the_preview_has_the_chosen_variant_and_what_any_of_them_lacks(
    sender, alice, chosen, shown
):
    add_subscription(alice.channel, {"first_name": "Ada"})
    variants = {
        "variants.0.name": "short",
        "variants.1.name": "long",
        "variants.1.title": "{{ first_name }}, hi",
        "variants.1.url": "https://shop.example/{{ city }}",
    }

    found = preview(sender, personal(alice, **variants, preview_variant=chosen))

    assert found["texts"]["web"]["title"] == shown
    assert ["city" in each for each in found["lacking"]] == [True]


def test_a_channel_without_devices_has_no_preview(sender, alice):
    found = preview(sender, personal(alice))
    assert found == {"subscribers": [], "chosen": "", "texts": {}, "lacking": []}


@pytest.mark.parametrize(("lacking", "warned"), [(0, False), (1, False), (2, True), (60, True)])
def test_more_than_one_per_cent_without_a_value_is_warned_of(sender, alice, lacking, warned):
    with_name = [{"attributes": {"first_name": "Ada"}}] * (100 - lacking)
    add_each(alice.channel, [*with_name, *[{"attributes": {"first_name": ""}}] * lacking])
    form = personal(alice, body="{{ last_name | default: 'you' }} {{ platform }}")

    words = f"{lacking}% of the sampled devices have no value for first_name. It has no default."
    assert preview(sender, form)["lacking"] == ([words] if warned else [])
    ((_, _, (everyone,)),) = review(sender, form).context["variants_shown"]
    assert bool(everyone.missing) == bool(lacking)


def test_a_template_is_personal_too(alice):
    add_subscription(alice.channel, {"first_name": "Ada"})
    editor = signed_in(alice.members["editor"])
    form = {"name": "Greeting", "title": HI, "body": "x", "personalize": "on"}
    check = reverse("admin:template_check", args=[alice.channel.pk])

    found = editor.post(check, form).json()["personal"]
    assert (found["texts"]["web"]["title"], found["lacking"]) == ("Hi Ada", [])
    editor.post(reverse("admin:template_new", args=[alice.channel.pk]), form)

    template = Template.objects.get()
    assert (template.content["title"], template.content["personalize"]) == (HI, True)
    page = editor.get(reverse("admin:template_edit", args=[template.pk]))
    assert page.context["form"].personalize == "on"
    assert ("first_name", "{{ first_name }}") in page.context["placeholders"]


def test_values_of_a_send_are_not_missing(sender, alice):
    add_subscriptions(alice.channel, 3)
    form = personal(alice, title="{{ vars.sale }}", vars=json.dumps({"sale": 20}))
    found = preview(sender, form)
    assert (found["lacking"], found["texts"]["web"]["title"]) == ([], "20")
