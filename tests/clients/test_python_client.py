"""clients/python against the running service, and as an installed package."""

import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from uuid import UUID

import pytest

import pushsvc_client
from channels_app.models import Channel
from notifications_app.content.tracking import make_token
from pushsvc_client import AsyncClient, Client, Refused, imports
from tests import openapi
from tests.api.credentials import GOOGLE
from tests.clients.failing import CHANNEL
from tests.clients.readme import blocks, filled
from tests.clients.webhooks import BODY, OTHER, SECRET, signed
from tests.factories import add_subscriptions
from tests.forked import CHECKOUT

PACKAGE = CHECKOUT / "clients" / "python"
FAR = datetime(2999, 1, 1, tzinfo=UTC)
RULE = {"attribute": "plan", "operator": "eq", "value": "pro"}


@pytest.fixture
def push(shop):
    with Client(shop.url, channel=shop.channel, key=shop.key) as push:
        yield push


# Every operation


def use_content(push):
    category = push.create_category(key="offers", name="Offers", default=True)
    changed = push.update_category("offers", name="Deals", default=False)
    assert (category["name"], changed["name"]) == ("Offers", "Deals")
    assert list(push.list_categories()) == [changed]
    push.archive_category("offers")
    assert list(push.list_categories()) == []

    template_id = push.create_template(name="Shipped", content={"body": "It left."})["template_id"]
    template = push.update_template(template_id, name="Sent", content={"body": "It left."})
    assert push.get_template(template_id) == template == next(push.list_templates())
    push.delete_template(template_id)
    with pytest.raises(Refused, match="not_found"):
        push.get_template(template_id)


def use_schedules(push):
    digest = {
        "name": "Digest",
        "notification": {"body": "What you missed."},
        "recurrence": {"rule": "FREQ=DAILY", "at": ["09:00"], "timezone": "Europe/Berlin"},
    }
    schedule_id = push.create_schedule(**digest)["schedule_id"]
    paused = push.update_schedule(schedule_id, **digest, enabled=False)
    assert (paused["enabled"], paused["next_at"]) == (False, None)
    assert push.get_schedule(schedule_id) == paused == next(push.list_schedules())
    assert list(push.list_occurrences(schedule_id)) == []
    push.delete_schedule(schedule_id)


def use_automations(push):
    welcome = {
        "name": "Welcome",
        "trigger": {"event": "subscriptions.created"},
        "delay_minutes": 10,
        "notification": {"body": "Here is how to begin."},
    }
    automation_id = push.create_automation(**welcome)["automation_id"]
    paused = push.update_automation(automation_id, **welcome, enabled=False)
    assert (paused["enabled"], paused["waiting"]) == (False, 0)
    assert push.get_automation(automation_id) == paused == next(push.list_automations())
    assert list(push.list_automation_days(automation_id)) == []
    push.delete_automation(automation_id)


def use_newsfeeds(push):
    news = {
        "name": "News",
        "url": "https://www.shop.com/feed/",
        "notification": {"body": "{{ entry.title }}"},
    }
    newsfeed_id = push.create_newsfeed(**news)["newsfeed_id"]
    paused = push.update_newsfeed(newsfeed_id, **news, enabled=False)
    assert (paused["enabled"], paused["daily_limit"]) == (False, 5)
    assert push.get_newsfeed(newsfeed_id) == paused == next(push.list_newsfeeds())
    assert push.get_newsfeed_preview(newsfeed_id)["entry"] is None
    assert push.check_newsfeed(newsfeed_id)["newsfeed_id"] == newsfeed_id
    push.delete_newsfeed(newsfeed_id)


def use_webhooks(push):
    where = {"url": "https://backend.shop.com/", "events": ["notifications.finished"]}
    webhook = push.create_webhook(**where)
    webhook_id = webhook["webhook_id"]
    assert push.update_webhook(webhook_id, **where, enabled=True)["enabled"]
    assert push.rotate_webhook_secret(webhook_id)["secret"] != webhook["secret"]
    sent = push.test_webhook(webhook_id)["message_id"]
    assert [each["message_id"] for each in push.list_webhook_messages(webhook_id)] == [sent]
    since = push.get_webhook(webhook_id)["created_at"]
    assert push.replay_webhook(webhook_id, since=since)["messages"] == 0
    assert [each["webhook_id"] for each in push.list_webhooks()] == [webhook_id]
    push.delete_webhook(webhook_id)


def use_people(push, subscription_id):
    key = push.create_identity_key(algorithm="HS256")
    assert [each["identity_key_id"] for each in push.list_identity_keys()] == [
        key["identity_key_id"]
    ]
    push.delete_identity_key(key["identity_key_id"])
    stored = push.create_web_push_key(private_key="A" * 42 + "E")
    assert [each["current"] for each in push.list_web_push_keys()] == [True, False]
    assert not stored["current"]
    link = {"subscription_id": subscription_id, "external_id": "user 42"}
    push.link_devices(links=[link])
    assert push.get_person(external_id="user 42")["external_id"] == "user 42"
    changed = push.update_person(external_id="user 42", attributes={"plan": "pro"})
    assert len(changed["devices"]) == push.get_channel_audience()["people"] == 1
    assert push.export_person(external_id="user 42")["devices"]

    (row,) = push.export_subscriptions(state="active", include="address")
    assert (row["subscription_id"], row["attributes"]) == (subscription_id, {"plan": "pro"})
    assert row["keys"]["auth"]

    push.change_tag_members("news:de", external_ids=["user 42"])
    assert [tag["tag"] for tag in push.list_tags(prefix="news")] == ["news:de"]
    push.delete_tag("news:de")

    segment_id = push.create_segment(name="Payers", rule=RULE)["segment_id"]
    assert push.get_segment_size(segment_id)["size"] == 1
    push.update_segment(segment_id, name="Pro", rule=RULE)
    assert push.get_segment(segment_id) == next(push.list_segments())
    push.delete_segment(segment_id)


def use_events(push, notification_id, subscription_id):
    token = make_token(UUID(notification_id), UUID(subscription_id))
    assert push.get_prompt() == {}
    push.report_prompt_event(kind="bell", event="shown")
    push.report_events(events=[{"token": token, "event": "received"}])
    assert push.follow_click(token) == "https://example.com/"
    assert push.get_notification_details(notification_id)["received_count"] == 1
    assert push.get_notification(notification_id)["clicked_count"] == 1


def use_halts(push):
    later = push.send_notification(body="Later", scheduled_at=FAR)["notification_id"]
    assert push.pause_notification(later)["paused"] is True
    assert push.edit_notification(later, body="Even later")["body"] == "Even later"
    assert push.resume_notification(later)["paused"] is False
    with pytest.raises(Refused, match="not_running"):
        push.stop_notification(later)
    with pytest.raises(Refused, match="no_test"):
        push.decide_test(later, variant="short")
    pending = push.list_notifications(status="pending", scheduled_after=FAR)
    assert [each["notification_id"] for each in pending] == [later]
    assert push.cancel_notification(later)["success"] is True
    assert list(push.list_notifications(status="pending")) == []


def use_channel(push):
    assert push.get_channel_statistics()["subscriber_count"] == 1
    since = datetime.fromisoformat(push.get_channel_statistics()["channel_info"]["created_at"])
    days = push.get_channel_time_series(from_=since, interval="day", platform="web")
    assert sum(each["gained"] - each["lost"] for each in days["subscribers"]) == 1
    push.update_provider_credentials(providers_config={"fcm_service_account": json.dumps(GOOGLE)})
    push.update_delivery_settings(timezone="Europe/Berlin", inbox_days=7)
    assert push.get_delivery_settings()["timezone"] == "Europe/Berlin"
    states = push.get_channel_platforms()["platforms"]
    assert states["android"]["credential"]["kind"] == "fcm_service_account"


def use_everything(push, browser):
    assert push.get_web_push_key()["public_key"]
    subscription_id = push.subscribe(**browser)["subscriptionId"]
    assert push.update_preferences(endpoint=browser["endpoint"])["categories"] == []
    targets = [{"subscription_id": subscription_id}]
    message = {"title": "Hello", "body": "It works.", "url": "https://example.com/"}
    assert push.dry_run(**message, targets=targets)["platforms"]["web"]["audience"] == 1
    sent = push.send_notification(**message, targets=targets)["notification_id"]
    shown = push.wait(sent)
    assert (shown["status"], shown["delivered_count"], shown["recipient_count"]) == ("sent", 1, 1)
    assert [each["state"] for each in push.list_notification_targets(sent)] == ["reached"]
    assert [each["outcome"] for each in push.export_deliveries(sent)] == ["delivered"]
    explained = push.explain_delivery(notification_id=sent, subscription_id=subscription_id)
    assert [each["verdict"] for each in explained["devices"]] == ["got"]
    use_events(push, sent, subscription_id)
    use_halts(push)
    use_channel(push)
    inbox = push.read_inbox(endpoint=browser["endpoint"], keys=browser["keys"], limit=1)
    assert [each["body"] for each in inbox["messages"]] == ["It works."]
    use_content(push)
    use_schedules(push)
    use_automations(push)
    use_newsfeeds(push)
    use_webhooks(push)
    use_people(push, subscription_id)
    assert push.erase_person(external_id="user 42")["erased"]
    rows = [{"endpoint": browser["endpoint"], "keys": browser["keys"]}]
    assert push.import_subscriptions(rows, format="webpush_json")["created"] == 1
    push.unsubscribe(endpoint=browser["endpoint"])


USES = [
    use_content,
    use_schedules,
    use_automations,
    use_newsfeeds,
    use_webhooks,
    use_people,
    use_events,
    use_halts,
    use_channel,
    use_everything,
]


def test_every_operation_of_the_document_works(push, shop):
    use_everything(push, shop.browser())

    text = "".join(map(inspect.getsource, USES))
    paths = openapi.document()["paths"].values()
    names = [each["operationId"] for operations in paths for each in operations.values()]
    assert [name for name in names if f"push.{name}(" not in text] == []


def test_other_requests_can_be_made(push):
    audience = push.request("GET", f"/channel/{push.channel}/audience")
    template = {"name": "Shipped", "content": {"body": "It left."}}
    made = push.request("post", f"/channel/{push.channel}/templates", json=template)
    listed = push.request("GET", f"/channel/{push.channel}/templates", params={"limit": 1})

    assert audience["people"] == 0
    assert listed == [made]
    with pytest.raises(Refused) as refused:
        push.request("GET", "/nowhere")
    assert refused.value.status == 404


def test_lists_hold_every_page_or_as_many_entries_as_asked_for(push, shop):
    for number in range(103):
        push.create_template(name=f"{number:03}", content={"body": "It left."})

    async def names(**options):
        async with AsyncClient(shop.url, channel=shop.channel, key=shop.key) as push:
            return [each["name"] async for each in push.list_templates(**options)]

    everything = [f"{number:03}" for number in reversed(range(103))]
    assert [each["name"] for each in push.list_templates()] == everything
    assert [each["name"] for each in push.list_templates(limit=102)] == everything[:102]
    assert [each["name"] for each in push.list_templates(limit=2, offset=1)] == everything[1:3]
    assert asyncio.run(names()) == everything
    assert asyncio.run(names(limit=101)) == everything[:101]


def test_an_unsubscribed_browser_is_sent_nothing(push, shop):
    browser = shop.browser()
    push.subscribe(**browser)
    push.unsubscribe(endpoint=browser["endpoint"])

    sent = push.send_notification(body="Anybody?")

    assert push.wait(sent["notification_id"])["recipient_count"] == 0


def test_the_same_idempotency_key_sends_once(push):
    first, second = (
        push.send_notification(body="Once", idempotency_key="order-1") for _ in range(2)
    )

    assert first == second


def test_an_error_has_its_code_its_errors_and_the_requests_id(push):
    with pytest.raises(Refused) as refused:
        push.send_notification(body="", target_platforms=["web", "fax"])

    assert (refused.value.status, refused.value.code) == (400, "validation_error")
    assert {field_error.attr for field_error in refused.value.errors} == {
        "body",
        "target_platforms.1",
    }
    assert all(field_error.detail in str(refused.value) for field_error in refused.value.errors)
    assert len(refused.value.request_id) > 8


def test_the_asynchronous_client_has_the_same_results(shop):
    async def send():
        async with AsyncClient(shop.url, channel=shop.channel, key=shop.key) as push:
            await push.subscribe(**shop.browser())
            sent = await push.send_notification(body="It works.")
            shown = await push.wait(sent["notification_id"])
            rows = [{"platform": "web", "endpoint": "https://example.com/"}]
            found = await push.import_subscriptions(rows, format="pushsvc_ndjson")
            assert found["refused"] == 1
            with pytest.raises(Refused, match="validation_error"):
                await push.send_notification(body="")
            listed = [each async for each in push.list_notifications(status="sent")]
            exported = [each async for each in push.export_subscriptions()]
            assert [each["platform"] for each in exported] == ["web"]
            return shown["delivered_count"], len(listed)

    assert asyncio.run(send()) == (1, 1)


# Imports

TOKEN = "dQw4w9WgXcQ:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx"


def phones(count):
    return [
        {"platform": "android", "provider_token": f"{TOKEN}{number}", "tags": ["news"]}
        for number in range(count)
    ]


def test_a_file_of_any_size_is_imported_in_parts(push, shop, tmp_path):
    shop.enable_android()
    file = tmp_path / "tokens.csv"
    rows = "".join(f'android;{each["provider_token"]};"a\nb"\n' for each in phones(5_001))
    file.write_text(f"sep=;\nplatform;token;note\n{rows};none;\n")
    with file.open(encoding="utf-8-sig", newline="") as lines:
        found = push.import_subscriptions(
            lines, format="tokens_csv", attributes="", platform="android"
        )

    assert (found["created"], found["refused"], found["attributes_dropped"]) == (5_001, 1, ["note"])
    assert found["refusals"][0]["line"] == 2 + 2 * 5_001 + 1
    assert found["refusals"][0]["code"] == "not_a_token"
    again = push.import_subscriptions(iter(phones(5)), format="pushsvc_ndjson", dry_run=True)
    assert (again["updated"], again["unchanged"]) == (5, 0)


def test_a_part_has_a_mebibyte_and_its_own_header():
    rows = [f"{number},{'x' * 1000}\n" for number in range(2_000)]
    found = list(imports.parts(["\ufeffid,text\n", *rows], is_csv=True))

    assert all(len(each.body) <= 1024 * 1024 for each in found)
    assert b"".join(each.body.partition(b"\n")[2] for each in found).decode() == "".join(rows)
    second = found[1].body.decode().splitlines()[:2]
    assert second[0] == "\ufeffid,text"
    assert int(second[1].partition(",")[0]) + 2 == 2 + found[1].before  # its line, without header


def test_an_error_of_a_later_part_tells_where_the_part_begins(push):
    rows = ["platform,token\n", *["android,x\n"] * 5_000, 'android,"a"b"c"\n']
    with pytest.raises(Refused, match="Line 2, column 12: After a double quote") as refused:
        push.import_subscriptions(rows, format="tokens_csv")
    assert refused.value.__notes__ == ["Add 5000 to a line to get the line of the whole file."]


def test_bytes_are_no_rows(push):
    with pytest.raises(TypeError, match="as text"):
        push.import_subscriptions([b"platform,token\n"], format="tokens_csv")


# Exports


def test_all_pages_of_an_export_are_read(push, shop):
    add_subscriptions(Channel.objects.get(pk=shop.channel), 5_001, language="\u2028")
    rows = list(push.export_subscriptions())

    assert len({row["subscription_id"] for row in rows}) == len(rows) == 5_001
    assert {row["language"] for row in rows} == {"\u2028"}
    assert list(push.export_subscriptions(limit=2)) == rows[:2]
    assert list(push.export_subscriptions(after=rows[-2]["subscription_id"])) == rows[-1:]


# Times


def test_times_are_sent_in_utc(push):
    nine = datetime(2999, 1, 1, 9, tzinfo=timezone(timedelta(hours=2)))

    sent = push.send_notification(body="Later", scheduled_at=nine, expires_at="2999-02-01T00:00Z")

    assert sent["scheduled_at"] == "2999-01-01T07:00:00.000Z"


@pytest.mark.parametrize(
    "use",
    [
        lambda push, time: push.send_notification(body="Later", scheduled_at=time),
        lambda push, time: push.list_notifications(scheduled_before=time),
        lambda push, time: push.create_segment(
            name="New", rule={"field": "created_at", "operator": "gt", "value": time}
        ),
    ],
    ids=["field", "query", "nested"],
)
def test_a_time_without_a_time_zone_is_an_error(push, use):
    with pytest.raises(ValueError, match=r"2999-01-01T09:00:00 has no time zone"):
        use(push, datetime(2999, 1, 1, 9))  # noqa: DTZ001 - the mistake


@pytest.mark.parametrize(
    ("url", "channel", "words"),
    [
        ("push.example.com", CHANNEL, "write it as https://push.example.com"),
        ("localhost:8000", CHANNEL, "write it as https://push.example.com"),
        ("https://push.example.com", "My shop", "channel='My shop' is no channel id"),
    ],
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_mistake_in_the_options_is_an_error_at_once(kind, url, channel, words):
    with pytest.raises(ValueError, match=words):
        kind(url, channel=channel, key="psk_x")


def test_several_values_for_a_filter_are_an_error_at_once(push):
    with pytest.raises(TypeError, match=r"status=\['sent'\]: give one value, not a list"):
        push.list_notifications(status=["sent"])


# The package


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder with the package, installed from its wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    uv = partial(subprocess.run, check=True)
    tool = [sys.executable, "-m", "uv"]
    build = ["build", "--quiet", "--wheel", "--offline", "--out-dir", folder, PACKAGE]
    uv([*tool, *build])
    (wheel,) = folder.glob("*.whl")
    install = ["pip", "install", "--quiet", "--no-deps", "--offline", "--target", folder / "site"]
    uv([*tool, *install, wheel])
    return folder / "site"


@pytest.fixture
def run(installed, shop, tmp_path):
    """Runs a program with the installed package, and returns the lines that it prints."""

    def run(text):
        program = tmp_path / "program.py"
        program.write_text(filled(text, shop))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)}
        command = [sys.executable, "-P", program]
        said = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert said.stderr == ""
        return said.stdout.splitlines()

    return run


def test_the_examples_of_the_readme_run_with_the_installed_package(run, shop, tmp_path):
    shop.subscribe()
    shop.enable_android()
    (tmp_path / "tokens.csv").write_text(f"platform,token\nandroid,{TOKEN}\nandroid,none\n")

    said = run("\n".join([*blocks(PACKAGE / "README.md", "python"), received()]))

    assert said == [
        "sent 1 of 1",
        "True The bakery opens at ten.",
        "2 notifications",
        "['bread']",
        "1 new",
        "line 3 not_a_token",
        "web []",
        "android ['bread']",
        "400 validation_error",
        "body too_long Must be at most 255 characters long.",
        "target_platforms.0 not_a_choice Must be one of: web, android, ios, all.",
        "True",
        "1 browsers",
        "0 people",
        "msg_1 notification.finished {'notification_id': 'one', 'title': 'Grüße'}",
        "204",
        "400",
    ]


def received():
    """Lines that hand two requests to `receive` of the README, one of which has another secret."""
    request = {"body": BODY, "headers": signed(SECRET)}
    return f"""
from types import SimpleNamespace

print(receive(SimpleNamespace(**{request!r}), {SECRET!r}))
print(receive(SimpleNamespace(**{request!r}), {OTHER!r}))
"""


def test_the_example_of_the_projects_readme_runs(run, shop):
    shop.subscribe()

    (example,) = blocks(CHECKOUT / "README.md", "python")

    assert run(example) == ["1 of 1"]


def test_the_types_of_the_installed_package_find_mistakes(installed, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MISTAKES)
    command = [sys.executable, "-m", "mypy", "--config-file", "", "--strict", program]

    said = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "MYPYPATH": str(installed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    wrong = {number for number, line in enumerate(MISTAKES.splitlines(), 1) if "# wrong" in line}
    found = re.findall(r"^program\.py:(\d+): error", said.stdout, re.MULTILINE)
    assert {int(number) for number in found} == wrong, said.stdout


MISTAKES = """\
from datetime import UTC, datetime
from pushsvc_client import AsyncClient, Client, schemas

push = Client("https://push.example.com", channel="id", key="psk_x")
sent: schemas.SendOutput = push.send_notification(body="Hello", scheduled_at=datetime.now(UTC))
push.send_notification(bodytext="Hello")  # wrong
push.send_notification(body=1)  # wrong
push.get_segment(segment=1)  # wrong
push.import_subscriptions([], format="xlsx")  # wrong
for row in push.export_subscriptions(state="gone"):  # wrong
    print(row["address"])  # wrong
print(push.import_subscriptions(open("x"), format="tokens_csv")["created"] + 1)
print(sent["notification"])  # wrong
for tag in push.list_tags(limit=3):
    print(tag["devices"] + 1, tag["tag"] + 1)  # wrong


async def main(push: AsyncClient) -> int:
    shown = await push.get_notification("one")
    push.get_notification("one")["title"]  # wrong
    async for segment in push.list_segments():
        print(segment["rule"])
    return shown["delivered_count"]
"""


def test_the_package_has_a_version_of_its_own():
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]

    assert pushsvc_client.__version__ == project["version"]
