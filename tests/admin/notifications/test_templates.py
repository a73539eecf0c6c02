"""Templates in the console: the list, the form, and the ways from and to a notification."""

import json

import pytest
from auditlog.models import LogEntry
from django.urls import reverse
from django.utils.html import escape

from channels_app.models import Role
from notifications_app.admin.compose import templates
from notifications_app.models import Draft, Notification, Template
from notifications_app.sends import drafts
from tests.admin.notifications.composing import COMPOSE, send, shown_in, written
from tests.admin.support import deleted_after_its_lock, signed_in
from tests.factories import make_sent_notification, make_template

CONTENT = {
    "title": "Your order",
    "body": "It left our warehouse.",
    "url": "https://shop.example/orders",
    "icon": "https://shop.example/icon.png",
    "image": "https://shop.example/image.png",
    "data": {"order": "4711", "a": "1", "zone": "b"},
    "ttl": 7_200,
    "urgency": "high",
    "topic": "orders",
    "actions": [{"id": "track", "title": "Track it"}],
    "web": {"require_interaction": True, "image": None},
    "android": {"sound": "ding", "title": None},
    "ios": {"badge": 0, "sound": {"name": "ding.wav", "volume": 0.5}},
    "translations": {"pt-BR": {"title": "Seu pedido", "actions": {"track": "Rastrear"}}},
}

PERSONAL = {
    "body": "{{ name | default: 'You' }}, {{ vars.sale }} off.",
    "personalize": True,
    "vars": {"sale": "20 %"},
    "on_missing": "bounce",
}


@pytest.fixture
def editor(alice):
    return signed_in(alice.members["editor"])


def listing(house):
    return reverse("admin:channel_templates", args=[house.channel.pk])


def new(house):
    return reverse("admin:template_new", args=[house.channel.pk])


def at(name, template):
    return reverse(f"admin:template_{name}", args=[template.pk])


def saved(client, path, form):
    answer = client.post(path, form)
    assert answer.status_code == 302, answer.context["errors"]
    return Template.objects.latest("updated_at")


def form_in(page):
    """The form of the page, as a browser would post it unchanged."""
    own = {name: page.context[name] for name in ("name", "version")}
    assert f'name="version" value="{own["version"]}"' in page.content.decode()
    return shown_in(page) | own


def opened(client, template):
    return form_in(client.get(at("edit", template)))


def names(answer):
    return [each.name for each in answer.context["listed"]]


# --- the form -------------------------------------------------------------------------------------


def test_a_template_keeps_what_was_written_and_no_audience_nor_time(alice, editor):
    form = written(alice, name="Spring", when="later", local_time="2031-01-01T09:00")

    template = saved(editor, new(alice), form)

    assert (template.name, template.channel) == ("Spring", alice.channel)
    assert template.content == {
        "title": "Spring sale",
        "body": "Twenty per cent off.",
        "url": "https://shop.example/sale",
    }


@pytest.mark.parametrize("more", [{}, PERSONAL, {"on_missing": "bounce"}])
def test_a_form_that_nobody_changed_leaves_the_content_as_it_was(alice, editor, more):
    template = make_template(alice.channel, content=CONTENT | more)

    after = saved(editor, at("edit", template), opened(editor, template))

    assert after.pk == template.pk
    assert after.content == CONTENT | more
    assert list(after.content["data"]) == list(CONTENT["data"])


def test_an_edit_replaces_name_and_content(alice, editor):
    template = make_template(alice.channel, content=CONTENT)
    typed = {"name": "Short", "body": "Hi", "ttl_unit": "none", "version": template.version}
    after = saved(editor, at("edit", template), typed)
    assert (after.name, after.content) == ("Short", {"body": "Hi", "ttl": 0})


def test_no_body_is_needed(alice, editor):
    template = saved(editor, new(alice), {"name": "Sound", "ios.sound": "ding.wav"})
    assert template.content == {"ios": {"sound": "ding.wav"}}
    assert editor.get(at("edit", template)).status_code == 200
    assert editor.get(listing(alice)).status_code == 200


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({"url": "shop"}, {"url": ["Enter a web address, such as https://shop.example/sale."]}),
        ({"ttl_number": "soon"}, {"ttl": ["Must be a whole number of a unit of time."]}),
        ({"ios.badge": "3.5"}, {"ios": ["Number on the app's icon: Must be a whole number."]}),
        ({"title": "a\x00"}, {"": ["A text contains a character that cannot be stored."]}),
        ({"name": " "}, {"name": ["Must have 1 to 100 characters."]}),
        ({"name": "Taken"}, {"name": ["Another template of the channel has this name."]}),
    ],
)
def test_an_error_is_told_at_its_field_and_nothing_is_stored(alice, editor, typed, expected):
    make_template(alice.channel, "Taken")
    form = written(alice, name="Spring") | typed

    answer = editor.post(new(alice), form)

    assert answer.status_code == 400
    assert answer.context["errors"] == expected
    for words in expected.values():
        assert escape(words[0]) in answer.content.decode()
    assert shown_in(answer)["body"] == form["body"]
    assert Template.objects.count() == 1
    if "name" not in typed:
        check = editor.post(reverse("admin:template_check", args=[alice.channel.pk]), form)
        assert check.json() == {"errors": expected, "platforms": [], "personal": None}


def test_a_language_is_added_without_saving(alice, editor):
    form = {"name": "Spring", "body": "x", "add_language": "de", "step": "edit"}
    page = editor.post(new(alice), form)
    assert 'name="translations.de.title"' in page.content.decode()
    assert page.context["name"] == "Spring"
    assert not Template.objects.exists()


def test_the_audit_log_has_each_version_of_the_console_too(alice, editor):
    template = saved(editor, new(alice), {"name": "Spring", "body": "One"})
    saved(editor, at("edit", template), opened(editor, template) | {"body": "Two"})

    entries = LogEntry.objects.filter(content_type__model="template").order_by("id")
    assert [each.changes["body"] for each in entries] == [[None, "One"], ["One", "Two"]]
    versions = reverse("admin:auditlog_logentry_changelist") + f"?q={template.pk}"
    assert versions in editor.get(at("edit", template)).content.decode()
    assert len(editor.get(versions).context["cl"].result_list) == 2


# --- two at once ----------------------------------------------------------------------------------


def test_nobody_replaces_a_colleagues_change_unseen(alice, editor):
    template = make_template(alice.channel, content={"title": "Old", "body": "x"})
    form = opened(editor, template)
    saved(signed_in(alice.members["manager"]), at("edit", template), form | {"title": "Corrected"})

    refused = editor.post(at("edit", template), form | {"name": "Mine", "body": "My text"})

    assert refused.status_code == 400
    assert "It was changed by alice-manager after you opened this page" in refused.content.decode()
    assert "beside the fields" not in refused.content.decode()
    template.refresh_from_db()
    assert (template.name, template.content["title"]) == ("Order shipped", "Corrected")
    again = form_in(refused)
    assert (again["name"], again["title"], again["body"]) == ("Mine", "Old", "My text")
    after = saved(editor, at("edit", template), again)
    assert (after.name, after.content) == ("Mine", {"title": "Old", "body": "My text"})


def test_a_form_to_which_a_language_was_added_is_as_old_as_before(alice, editor):
    template = make_template(alice.channel, content={"body": "x"})
    form = opened(editor, template)
    saved(editor, at("edit", template), form | {"body": "Corrected"})

    longer = editor.post(at("edit", template), form | {"add_language": "de", "step": "edit"})

    assert editor.post(at("edit", template), form_in(longer)).status_code == 400
    assert Template.objects.get().content == {"body": "Corrected"}


def test_a_template_that_was_deleted_meanwhile_is_not_found(alice, editor):
    template = make_template(alice.channel)
    path, form = at("edit", template), opened(editor, template)
    template.delete()
    assert editor.post(path, form).status_code == 404


def test_a_template_that_is_deleted_while_its_form_is_refused_is_not_found(alice, editor):
    template = make_template(alice.channel)
    form = opened(editor, template) | {"version": "another"}
    with deleted_after_its_lock(template):
        assert editor.post(at("edit", template), form).status_code == 404


# --- the list -------------------------------------------------------------------------------------


def test_the_list_is_searched_and_has_pages(alice, bob, editor, monkeypatch):
    monkeypatch.setattr(templates, "_SHOWN", 2)
    for number in range(5):
        make_template(alice.channel, f"Sale {number}")
    make_template(alice.channel, "Order shipped", CONTENT)
    make_template(bob.channel, "Sale of Bob's")

    first = editor.get(listing(alice))
    assert names(first) == ["Order shipped", "Sale 4"]
    assert CONTENT["body"] in first.content.decode()
    assert (first.context["previous_page"], first.context["next_page"]) == (0, 2)
    found = editor.get(listing(alice), {"q": "sALE", "page": 3})
    assert names(found) == ["Sale 0"]
    assert (found.context["previous_page"], found.context["next_page"]) == (2, None)
    assert "?q=sALE&amp;page=2" in found.content.decode()
    for query in ({"page": "0"}, {"page": "x"}, {"page": "-1"}, {"page": "9" * 30}):
        assert names(editor.get(listing(alice), query)) == ["Order shipped", "Sale 4"]
    for query in ({"page": "9"}, {"page": "9" * 9}, {"q": "%"}, {"q": "a\x00b"}):
        assert names(editor.get(listing(alice), query)) == []


# --- use and save as template --------------------------------------------------------------------


def test_use_makes_a_draft_with_the_content_for_every_platform(alice, sender):
    content = CONTENT | PERSONAL
    template = make_template(alice.channel, content=content)

    page = sender.post(at("use", template), follow=True)

    draft = Draft.objects.get()
    assert page.redirect_chain == [(f"{COMPOSE}?draft={draft.pk}", 302)]
    assert (draft.channel, draft.owner) == (alice.channel, alice.members["sender"])
    assert page.context["form"].platforms == ["web"]
    answer = send(sender, shown_in(page) | {"channel": str(alice.channel.pk)})
    assert answer.status_code == 302
    found = Notification.objects.get().content
    assert json.dumps(dict(found.data)) == json.dumps(CONTENT["data"])
    for name in content.keys() - {"data"}:
        assert getattr(found, name) == content[name], name


def test_use_says_why_there_is_no_draft(alice, sender, monkeypatch):
    monkeypatch.setattr(drafts, "MOST_DRAFTS", 0)
    template = make_template(alice.channel)
    page = sender.post(at("use", template), follow=True)
    assert "The channel has 0 drafts. Delete one first." in page.content.decode()
    assert page.redirect_chain == [(at("edit", template), 302)]


def test_what_is_being_composed_becomes_a_template(alice, editor):
    compose = editor.get(COMPOSE, {"channel": alice.channel.pk}).content.decode()
    assert f'formaction="{new(alice)}"' in compose

    page = editor.post(new(alice), written(alice) | {"step": "edit"})

    assert page.status_code == 200
    assert not Template.objects.exists()
    assert page.context["name"] == "Spring sale"
    template = saved(editor, new(alice), shown_in(page) | {"name": "Spring"})
    assert (template.name, template.content["body"]) == ("Spring", "Twenty per cent off.")


def test_a_notification_becomes_a_template(alice, editor):
    notification = make_sent_notification(
        alice.channel, title="Sale", body="Now", data={"b": "1", "a": "2"}, ttl=60
    )
    own = reverse("admin:notifications_app_notification_change", args=[notification.pk])
    link = f"{new(alice)}?notification={notification.pk}"
    assert link in editor.get(own).content.decode()

    page = editor.get(link)

    assert page.context["name"] == "Sale"
    template = saved(editor, new(alice), shown_in(page) | {"name": "Sale"})
    expected = notification.content
    assert template.content["body"] == "Now"
    assert template.content["ttl"] == 60
    assert list(template.content["data"].items()) == list(expected.data.items())


def test_a_notifications_page_names_the_template_of_the_send(alice, viewer):
    template = make_template(alice.channel)
    sent = make_sent_notification(alice.channel, template_id=template.pk)
    own = reverse("admin:notifications_app_notification_change", args=[sent.pk])

    assert f'<a href="{at("edit", template)}">Order shipped</a>' in viewer.get(own).content.decode()
    template.delete()
    assert f"{sent.template_id}</span>, which was deleted" in viewer.get(own).content.decode()


# --- roles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "may_use", "may_edit", "may_delete"),
    [
        (Role.VIEWER, False, False, False),
        (Role.SENDER, True, False, False),
        (Role.EDITOR, True, True, False),
        (Role.MANAGER, True, True, True),
    ],
)
def test_each_role_is_offered_and_allowed_the_same(alice, role, may_use, may_edit, may_delete):
    client = signed_in(alice.members[role])
    template = make_template(alice.channel)
    page = client.get(at("edit", template)).content.decode()
    listed = client.get(listing(alice)).content.decode()
    form = {"name": "Other", "body": "x"}

    assert (at("use", template) in page, at("use", template) in listed) == (may_use, may_use)
    assert client.post(at("use", template)).status_code == (302 if may_use else 403)
    assert ("Save</button>" in page, new(alice) in listed) == (may_edit, may_edit)
    assert (" disabled>" in page) != may_edit
    for path in (at("edit", template), new(alice)):
        named = {"name": f"For {path}"[:100], "version": template.version}
        changed = client.post(path, form | named)
        assert changed.status_code == (302 if may_edit else 403)
    check = reverse("admin:template_check", args=[alice.channel.pk])
    assert client.post(check, form).status_code == (200 if may_edit else 403)
    assert (at("delete", template) in page) == may_delete
    assert client.post(at("delete", template)).status_code == (302 if may_delete else 403)
    assert Template.objects.filter(pk=template.pk).exists() != may_delete
