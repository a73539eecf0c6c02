"""POST /send-notification: placeholders that stand for values of each recipient."""

import pytest

from channels_app.audit import LogEntry
from notifications_app.models import Notification, Target
from subscriptions_app.models import Subscription
from subscriptions_app.people.linking import devices_link
from tests import factories
from tests.api.support import NOWHERE, accepted, code, errors
from tests.segments import attribute

pytestmark = pytest.mark.django_db
URL = "https://shop.example/"
BODY = {"body": "Hi {{ first_name | default: 'there' }}", "personalize": True}


def test_without_personalize_braces_are_kept_as_they_are(alice):
    given = {"body": "{{ {% }} {{ name", "url": f"{URL}{{{{a}}}}", "data": {"k": "{{ x | y }}"}}

    row = accepted(alice, given)

    assert (row.extras, row.vars) == (None, None)
    assert row.content.body == given["body"]


@pytest.mark.parametrize(
    ("given", "attr"),
    [
        ({"body": "Hi {{ first_name"}, "body"),
        ({"title": "{{ name | reverse }}"}, "title"),
        ({"url": f"{URL}{{{{ a b }}}}"}, "url"),
        ({"image": f"{URL}{{{{ a"}, "image"),
        ({"icon": f"{URL}{{% x %}}{{{{ a }}}}"}, "icon"),
        ({"data": {"k": "{% if x %}"}}, "data.k"),
        ({"actions": [{"id": "a", "title": "{{ }}"}]}, "actions.0.title"),
        ({"actions": [{"id": "a", "title": "A", "url": "{{ host }}"}]}, "actions.0.url"),
        ({"web": {"title": "{{ 5 }}"}}, "web.title"),
        ({"ios": {"subtitle": "{{ if }}"}}, "ios.subtitle"),
        ({"android": {"body": "{{ attributes }}"}}, "android.body"),
        ({"translations": {"de": {"body": "{{ a.b }}"}}}, "translations.de.body"),
        (
            {
                "actions": [{"id": "a", "title": "A"}],
                "translations": {"de": {"actions": {"a": "{{ |"}}},
            },
            "translations.de.actions.a",
        ),
        ({"body": "{{a}}" * 41}, "body"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_text_that_is_no_template_is_refused(alice, given, attr, dry_run):
    refused = alice.send(BODY | given | {"dry_run": dry_run})

    assert (attr, "not_a_template") in errors(refused)
    assert "Character " in refused.json()["errors"][0]["detail"]
    assert not Notification.objects.exists()


@pytest.mark.parametrize(
    "url",
    [
        "https://{{ host }}/",
        "https://shop.{{ host }}/a",
        "https://shop.example{{ path }}",
        "https://shop.example?{{ query }}",
        "https://shop.example#/{{ part }}",
        "https://shop.example\\/{{ path }}",
        "{{ url }}",
        "https://{{ user }}@shop.example/",
        "https://shop.example:{{ port }}/",
        "javascript:/x/{{ a }}",
    ],
)
def test_no_placeholder_stands_where_it_could_change_the_host(alice, url):
    assert errors(alice.send(BODY | {"url": url})) == [("url", "not_a_template")]
    assert errors(alice.send(BODY | {"web": {"image": url}})) == [("web.image", "not_a_template")]


@pytest.mark.parametrize(
    ("platform", "url"),
    [
        ("android", "{{ scheme }}://a"),
        ("android", "my{{ name }}://a"),
        ("android", "myshop://{{ a }}"),
        ("ios", "myshop://orders{{ a }}"),
        ("ios", "https://{{ host }}/"),
        ("android", "intent://a#Intent;scheme={{ scheme }};end"),
        ("android", "intent://a#Intent;S.browser_fallback_url={{ url }};end"),
        ("web", "{{ path }}"),
        ("web", "https://{{ host }}/"),
        ("web", "//{{ host }}/"),
        ("web", "myshop://orders/{{ a }}"),
    ],
)
def test_no_placeholder_stands_where_it_could_change_the_scheme(alice, platform, url):
    body = BODY | {platform: {"url": url}}
    assert errors(alice.send(body)) == [(f"{platform}.url", "not_a_template")]
    button = {"id": "a", "title": "A", f"{platform}_url": url}
    body = BODY | {"actions": [button]}
    assert errors(alice.send(body)) == [(f"actions.0.{platform}_url", "not_a_template")]


@pytest.mark.parametrize(
    ("platform", "url", "is_taken"),
    [
        ("android", "myshop://orders/{{ vars.id }}?a={{ name }}", True),
        ("android", "intent://o/{{ id }}#Intent;scheme=myshop;S.name={{ name }};end", True),
        ("ios", "tel:{{ phone }}", True),
        ("ios", "myshop:{{ vars.scheme }}:alert(1)", False),
        ("ios", "myshop:{{ scheme | default: 'javascript' }}:alert(1)", False),
        ("ios", "javascript:{{ a }}", False),
        ("ios", "{{ 'javascript' }}:{{ a }}", False),
        ("ios", "myshop://orders/{{ '%5C' }}{{ a }}", False),
        ("web", "/orders/{{ id }}", True),
        ("web", "/{{ id }}", True),
        ("web", "/{{ id }}/bob.example", False),
        ("web", "/{{ id }}{{ '/bob.example' }}", False),
    ],
)
def test_a_link_of_a_platform_is_judged_with_its_placeholders(alice, platform, url, is_taken):
    values = {"vars": {"id": 17, "scheme": "javascript"}}

    answer = alice.send(BODY | values | {platform: {"url": url}})

    assert (answer.status_code == 202) == is_taken
    if not is_taken:
        assert errors(answer) == [(f"{platform}.url", "not_a_url")]


def test_a_link_is_an_address_with_and_without_values(alice):
    assert alice.send(BODY | {"url": f"{URL}o/{{{{ vars.id }}}}?a={{{{ b }}}}"}).status_code == 202
    spaced = BODY | {"url": f"{URL}a b/{{{{ x }}}}"}
    assert errors(alice.send(spaced)) == [("url", "not_a_url")]
    plain = {"body": "x", "url": f"{URL}{{{{ x }}}}"}
    assert errors(alice.send(plain)) == [("url", "not_a_url")]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"personalize": "yes"}, ("personalize", "not_a_boolean")),
        ({"on_missing": "skip"}, ("on_missing", "not_a_choice")),
        ({"vars": []}, ("vars", "not_an_object")),
        ({"vars": {"a b": "x"}}, ("vars.a b", "malformed")),
        ({"vars": {"1a": "x"}}, ("vars.1a", "malformed")),
        ({"vars": {"a" * 51: "x"}}, ("vars." + "a" * 51, "malformed")),
        ({"vars": {"a": True}}, ("vars.a", "not_a_string_or_number")),
        ({"vars": {"a": "x" * 256}}, ("vars.a", "too_long")),
        ({"vars": {f"a{n}": n for n in range(21)}}, ("vars", "too_many")),
        ({"vars": {"a": "x"}, "personalize": False}, ("vars", "not_combinable")),
        (
            {"personalize": False, "targets": [{"external_id": "a", "vars": {"x": 1}}]},
            ("targets.0.vars", "not_combinable"),
        ),
        ({"targets": [{"vars": {"x": 1}}]}, ("targets.0", "not_combinable")),
        (
            {"targets": [{"external_id": "a", "vars": {"x y": 1}}]},
            ("targets.0.vars.x y", "malformed"),
        ),
        (
            {
                "targets": [
                    {"external_id": "a", "vars": {"x": 1}},
                    {"external_id": "b"},
                    {"external_id": "a", "vars": {"x": 2}},
                ]
            },
            ("targets.2", "given_twice"),
        ),
        (
            {
                "targets": [
                    {"subscription_id": NOWHERE},
                    {"subscription_id": NOWHERE, "vars": {"x": 1}},
                ]
            },
            ("targets.1", "given_twice"),
        ),
        ({"data": {f"k{n}": "{{ a }}" * 40 for n in range(11)}}, ("personalize", "too_many")),
    ],
)  # fmt: skip
def test_what_cannot_be_personalized_is_refused(alice, given, found):
    assert errors(alice.send(BODY | given)) == [found]
    assert not Notification.objects.exists()


def test_targets_have_values_of_their_own(alice):
    targets = [
        {"external_id": "ada", "vars": {"order": "A-17"}},
        {"subscription_id": NOWHERE, "vars": {"order": 18}},
        {"external_id": "bob"},
        {"external_id": "ada", "vars": {"order": "A-17"}},
    ]

    row = accepted(alice, BODY | {"targets": targets})

    stored = Target.objects.of(row.pk).values_list("external_id", "vars")
    assert list(stored) == [("ada", {"order": "A-17"}), (None, {"order": 18}), ("bob", None)]


def test_the_payload_is_checked_with_every_default(alice):
    long = "x" * 240
    fits = {"data": {"k": "{{ name }}" + "y" * 3_600}}
    large = {"data": {f"k{n}": f"{{{{ name | default: '{long}' }}}}" for n in range(20)}}

    assert alice.send(BODY | fits).status_code == 202
    assert code(alice.send(BODY | large), 400) == "payload_too_large"
    of_send = {"vars": {"name": long}, "data": {f"k{n}": "{{ vars.name }}" for n in range(20)}}
    assert code(alice.send(BODY | of_send), 400) == "payload_too_large"


BLANK = "\u200b "


@pytest.mark.parametrize(
    ("texts", "attr"),
    [
        ({"body": "{{ vars.text }}"}, "body"),
        ({"body": "{{ vars.none | default: '' }}"}, "body"),
        ({"body": "{{ '\u2800' }}"}, "body"),
        ({"title": "{{ vars.text | upcase }} {{ vars.text }}"}, "title"),
        ({"translations": {"de": {"body": "{{ vars.text }}"}}}, "translations.de.body"),
        ({"ios": {"subtitle": "{{ vars.text }}"}}, "ios.subtitle"),
    ],
)
def test_a_text_that_shows_nothing_to_anybody_is_blank(alice, texts, attr):
    body = BODY | {"vars": {"text": BLANK}} | texts
    assert errors(alice.send(body)) == [(attr, "blank")]


def test_a_text_that_shows_something_to_some_is_accepted(alice):
    body = BODY | {"body": "{{ vars.text }}", "vars": {"text": BLANK}}
    assert errors(alice.send(body)) == [("body", "blank")]
    own = [{"external_id": "ada", "vars": {"text": "x"}}]
    row = accepted(alice, body | {"targets": own, "scheduled_at": "2999-01-01T00:00:00Z"})
    edited = alice.call("PATCH", f"/notification/{row.id}", {"title": "x"})
    assert edited.status_code == 200
    assert alice.send(body | {"body": "{{ vars.text }}{{ name }}"}).status_code == 202
    assert alice.send(body | {"vars": {}}).status_code == 202


def test_a_dry_run_tells_the_largest_of_some_devices(everywhere):
    names = ["", "Bo", "Maximiliane" * 20]
    for name in names:
        factories.add_subscription(everywhere.channel, attributes={"first_name": name})
    send = BODY | {"target_platforms": ["all"], "dry_run": True}

    found = everywhere.send(send).json()["platforms"]

    defaults = found["web"]["payload_bytes"]
    assert found["web"]["largest_sampled_bytes"] == defaults - len("there") + len(names[-1])
    assert "largest_sampled_bytes" not in found["ios"]
    plain = everywhere.send(send | {"personalize": False}).json()["platforms"]
    assert "largest_sampled_bytes" not in plain["web"]


def test_a_dry_run_samples_targets_and_rules(alice):
    rows = [
        factories.add_subscription(alice.channel, attributes={"first_name": name})
        for name in ("Bo", "x" * 200)
    ]
    devices_link(channel=alice.channel, links={rows[0].id: "ada"})
    send = BODY | {"dry_run": True}

    def sampled(**audience):
        return alice.send(send | audience).json()["platforms"]["web"]["largest_sampled_bytes"]

    short = sampled(external_ids=["ada"])
    assert sampled() == short + 198
    assert sampled(rule={"all": [attribute("first_name", "eq", "Bo")]}) == short
    own = {"external_id": "ada", "vars": {"x": "y" * 50}}
    send["body"] += "{{ vars.x }}"
    assert sampled(targets=[own]) == short + 50
    assert (
        sampled(targets=[own, {"subscription_id": str(rows[0].id), "vars": {"x": "z"}}])
        == short + 1
    )


def test_a_templates_texts_are_judged_when_it_is_stored_and_with_the_send(alice):
    def store(**content):
        body = {"name": "Sale", "content": content}
        return alice.call("POST", f"/channel/{alice.channel.id}/templates", body)

    refused = store(title="{{ name", personalize=True)
    assert errors(refused) == [("content.title", "not_a_template")]
    assert errors(store(url=f"{URL}{{{{ a }}}}")) == [("content.url", "not_a_url")]
    values = {"sale": "1 %"}
    assert errors(store(body="x", vars=values)) == [("content.vars", "not_combinable")]
    template = store(body="{{ vars.sale }} off", title="{{ name").json()
    send = {"template_id": template["template_id"]}
    assert errors(alice.send(send | {"vars": values})) == [("vars", "not_combinable")]
    assert errors(alice.send(send | {"personalize": True})) == [("title", "not_a_template")]
    personal = accepted(alice, send | {"personalize": True, "title": "x", "vars": {"sale": "2 %"}})
    assert (personal.body, personal.vars) == ("{{ vars.sale }} off", {"sale": "2 %"})


def test_an_edit_judges_the_texts_again(alice):
    row = accepted(alice, BODY | {"scheduled_at": "2999-01-01T00:00:00Z", "vars": {"a": "b"}})

    def edit(**changes):
        return alice.call("PATCH", f"/notification/{row.id}", changes)

    assert errors(edit(title="{{ name")) == [("title", "not_a_template")]
    assert errors(edit(personalize=None)) == [("vars", "not_combinable")]
    assert edit(vars={"a": "c"}, on_missing="bounce").status_code == 200
    assert edit(personalize=False, vars=None, title="{{ name").status_code == 200
    row.refresh_from_db()
    assert (row.title, row.vars, row.content.personalize) == ("{{ name", None, False)


def test_an_edit_of_the_values_of_targets_replaces_them(alice):
    first = {"targets": [{"external_id": "ada", "vars": {"order": 1}}]}
    row = accepted(alice, BODY | first | {"scheduled_at": "2999-01-01T00:00:00Z"})

    def edit(changes):
        assert alice.call("PATCH", f"/notification/{row.id}", changes).status_code == 200
        row.refresh_from_db()
        return row.edited_at

    assert edit(first) is None
    assert edit({"targets": [{"external_id": "ada", "vars": {"order": 2}}]}) is not None
    assert Target.objects.of(row.pk).get().vars == {"order": 2}


def test_the_audit_log_has_no_values(alice):
    secret = "Fourty-Two"
    send = BODY | {"vars": {"a": secret}, "scheduled_at": "2999-01-01T00:00:00Z"}
    send["targets"] = [{"external_id": "ada", "vars": {"b": secret}}]
    row = accepted(alice, send)

    alice.call("PATCH", f"/notification/{row.id}", {"vars": {"a": f"{secret} two"}, "title": "x"})

    entries = LogEntry.objects.filter(object_pk=str(row.pk))
    assert entries.exists()
    assert not any(secret in str(vars(each)) for each in entries)


def test_an_export_has_the_values_of_targets(alice):
    row = factories.add_subscription(alice.channel)
    devices_link(channel=alice.channel, links={row.id: "ada"})
    sent = accepted(alice, BODY | {"targets": [{"external_id": "ada", "vars": {"order": 1}}]})
    other = [
        {"subscription_id": str(row.id), "vars": {"order": 2}},
        {"external_id": "bob", "vars": {"order": 3}},
    ]
    later = accepted(alice, BODY | {"targets": other})

    path = f"/channel/{alice.channel.id}/person/export?external_id=ada"
    exported = alice.call("GET", path).json()

    assert exported["values"] == [
        {"notification_id": str(later.id), "vars": {"order": 2}},
        {"notification_id": str(sent.id), "vars": {"order": 1}},
    ]


def test_an_erasure_takes_the_values_away(alice):
    row = factories.add_subscription(alice.channel)
    devices_link(channel=alice.channel, links={row.id: "ada"})
    targets = [
        {"external_id": "ada", "vars": {"order": 1}},
        {"subscription_id": str(row.id), "vars": {"order": 2}},
        {"external_id": "bob", "vars": {"order": 3}},
    ]
    sent = accepted(alice, BODY | {"targets": targets})

    alice.call("DELETE", f"/channel/{alice.channel.id}/person?external_id=ada")

    assert not Subscription.objects.filter(pk=row.pk).exists()
    assert [each.vars for each in Target.objects.of(sent.pk)] == [None, None, {"order": 3}]
