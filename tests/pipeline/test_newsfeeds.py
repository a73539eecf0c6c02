"""Newsfeeds as they are in the wild: what is sent of them, once, and what is not."""

import gzip
import threading
import time
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from channels_app.models import Account, Webhook, WebhookMessage
from channels_app.webhooks import webhook_test
from notifications_app import tasks
from notifications_app.models import Newsfeed, Notification
from notifications_app.newsfeeds import checks, fetching
from notifications_app.newsfeeds.fetching import MAX_DOCUMENT, MOST_REDIRECTS, Fetcher
from notifications_app.reporting.attention import attention
from notifications_app.sends import firing, publishing
from notifications_app.webhooks import turns
from pushsvc.common.findings import Kind
from pushsvc.common.store import sql
from tests import factories
from tests.api.support import owner_of
from tests.pipeline import support
from tests.pipeline.hooks import hook
from tests.pipeline.newsfeeds import SEND, check, created, item, path, primed, rss, running_site
from tests.pipeline.processes import kill

DAY = timedelta(days=1)


@pytest.fixture
def owner(channel):
    return owner_of(channel)


def titles():
    """Of the notifications, in the order in which they were made."""
    return list(Notification.objects.order_by("created_at", "pk").values_list("title", flat=True))


def reread(newsfeed):
    newsfeed.refresh_from_db()
    return newsfeed


# --- what is sent ---------------------------------------------------------------------------------


def test_a_new_entry_reaches_the_devices_and_opens_its_link(sandbox, channel, owner, site):
    devices = factories.subscribe_browsers(sandbox, channel, 2)
    newsfeed = primed(owner, site, item(1))
    assert titles() == []  # the first check sends nothing

    site.serve(rss(item(2), item(1)))
    check()
    support.plan()
    support.deliver()
    sent = Notification.objects.get()
    assert (sent.title, sent.body, sent.url) == ("Title 2", "Summary 2", "https://news.example/2")
    assert support.counts(sent) == ("sent", 2, 2, 0)
    assert {len(device.receipts) for device, _ in devices} == {1}
    assert sent.sent_by == newsfeed.changed_by != ""
    assert reread(newsfeed).last_notification_id == sent.pk

    check()
    assert len(titles()) == 1


def test_each_entry_has_its_own_test_of_the_variants(owner, site):
    test = {"share": 20, "minutes": 60, "metric": "clicked", "inconclusive": "leader"}
    variants = [{"name": "plain"}, {"name": "loud", "title": "New: {{ entry.title }}"}]
    primed(owner, site, item(1), send={**SEND, "variants": variants, "test": test})
    site.serve(rss(item(2), item(1)))
    check()
    sent = Notification.objects.get()
    assert sent.test == test
    assert [each.get("title") for each in sent.content.variants] == [None, "New: Title 2"]


def test_fifty_new_entries_at_once_send_the_newest_that_the_day_allows_and_no_others(owner, site):
    newsfeed = primed(owner, site, item(100), daily_limit=3)
    site.serve(rss(*(item(number) for number in range(50, 0, -1))))
    check()
    assert titles() == ["Title 3", "Title 2", "Title 1"]  # the newest last, so that it is on top

    Newsfeed.objects.update(sent_on=F("sent_on") - DAY)
    check()
    assert len(titles()) == 3
    assert publishing.sent_today(reread(newsfeed), sql.now()) == 0


def test_the_days_limit_counts_on_the_channels_clock(owner, channel, site):
    now = sql.now()
    # The zone where midnight was last: the day began less than an hour ago.
    zone = f"Etc/GMT{now.hour:+d}" if now.hour <= 12 else f"Etc/GMT-{24 - now.hour}"
    channel.timezone = zone
    channel.save()
    newsfeed = primed(owner, site, item(9), daily_limit=1)
    today = publishing._day(reread(newsfeed), now)
    Newsfeed.objects.update(sent_on=today - DAY, sent_count=1)
    site.serve(rss(item(8)))
    check()
    assert titles() == ["Title 8"]
    site.serve(rss(item(7)))
    check()
    assert titles() == ["Title 8"]


@pytest.mark.parametrize(
    "changes",
    [
        {"guid": "another"},
        {"link": "https://news.example/moved"},
        {"guid": "another", "link": "http://NEWS.example/1/?utm_source=feed#top"},
        {"title": "Corrected"},
        {"pubDate": None},
    ],
)
def test_a_changed_entry_is_not_new(owner, site, changes):
    primed(owner, site, item(1))
    site.serve(rss(item(1, **changes)))
    check()
    assert titles() == []


def test_entries_that_share_a_link_or_an_id_are_told_apart(owner, site):
    same = {"link": "https://news.example/", "guid": "same"}
    primed(owner, site, item(1, **same), item(2, **same))
    site.serve(rss(item(3, **same), item(1, **same), item(2, **same)))
    check()
    assert titles() == ["Title 3"]


@pytest.mark.parametrize("same", [{"guid": None}, {"guid": "same"}])
@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [([1, 2], [2], []), ([1], [2, 1], [2]), ([1, 2], [3, 1, 2], [3])],
)
def test_an_entry_is_not_new_because_its_link_and_id_are_shared_or_no_longer(
    owner, site, same, before, after, sent
):
    shared = {"link": "https://status.example/", **same}
    primed(owner, site, *(item(number, **shared) for number in before))
    site.serve(rss(*(item(number, **shared) for number in after)))
    check()
    assert titles() == [f"Title {number}" for number in sent]


def test_an_entry_that_was_found_before_a_change_is_sent_with_the_new_text(owner, site):
    newsfeed = primed(owner, site, item(1))
    site.serve(rss(item(2), item(1)))
    Newsfeed.objects.update(next_at=Now())
    assert turns.work(seconds=20) is False  # nobody has sent it yet

    body = {
        "name": "News",
        "url": site.url,
        "notification": SEND | {"title": "New: {{ entry.title }}"},
    }
    assert owner.call("PUT", path(owner, newsfeed.pk), body).status_code == 200
    firing.work(seconds=20)
    check()

    assert titles() == ["New: Title 2"]


def test_an_entry_without_id_and_link_is_known_by_its_title(owner, site):
    bare = {"link": None, "guid": None, "pubDate": None}
    primed(owner, site, item(1, **bare))
    site.serve(rss(item(2, **bare), item(1, **bare, description="Corrected")))
    check()
    assert titles() == ["Title 2"]
    assert Notification.objects.get().url == ""


def test_a_date_to_come_counts_as_now_and_an_old_one_is_not_sent(owner, site):
    primed(owner, site)
    site.serve(rss(item(1, ago=-10 * DAY), item(2, ago=4 * DAY), item(3, ago=2 * DAY)))
    check()
    assert titles() == ["Title 3", "Title 1"]


def test_an_entry_that_left_the_document_is_not_new_when_it_returns(owner, site):
    primed(owner, site, item(1), item(2))
    site.serve(rss(item(2)))
    check()
    site.serve(rss(item(1), item(2)))
    check()
    assert titles() == []


def test_texts_of_html_are_plain_and_cut(owner, site):
    send = {"title": "{{ entry.title }}", "body": "{{ entry.author }}: {{ entry.summary }}"}
    primed(owner, site, send=send)
    html = "<p>Tom &amp; Jerry&nbsp;say</p><script>x()</script><p>1 &lt; 2</p>" + "long " * 100
    site.serve(rss(item(1, title="<b>AT&amp;T</b> &#8211; news", description=html, author="Ann")))
    check()
    sent = Notification.objects.get()
    assert sent.title == "AT&T \N{EN DASH} news"
    assert sent.body.startswith("Ann: Tom & Jerry say 1 < 2 long long")
    assert len(sent.body) == 255
    assert sent.body.endswith("…")


def test_an_entry_without_a_text_shows_its_title(owner, site):
    primed(owner, site)
    site.serve(rss(item(1, description=None), item(2, description=None, title=None)))
    check()
    sent = Notification.objects.get()  # the other has nothing to show
    assert (sent.title, sent.body) == ("", "Title 1")


def test_braces_of_an_entry_are_no_placeholders_of_a_personal_send(sandbox, channel, owner, site):
    (device, _), *_ = factories.subscribe_browsers(sandbox, channel, 1)
    send = {
        "title": "{{ entry.title }}",
        "body": "{{ name | default: 'You' }}: {{ entry.title }}",
        "personalize": True,
    }
    primed(owner, site, send=send)
    site.serve(rss(item(1, title="{{ name }} {% if %} {")))
    check()
    support.plan()
    support.deliver()
    (receipt,) = device.receipts
    assert "You: {{ name }} {% if %} {" in str(receipt)


def test_a_link_that_may_not_be_opened_is_left_out(owner, site):
    primed(owner, site, send={"body": "{{ entry.title }}", "image": "{{ entry.image }}"})
    site.serve(
        rss(
            item(1, link="javascript:alert(1)", guid="1", description='<img src="data:x">'),
            item(2, description='<img src="/a.jpg">'),
        )
    )
    check()
    first, second = Notification.objects.order_by("body")
    assert (first.url, first.image) == ("", "")
    assert (second.url, second.image) == ("https://news.example/2", f"{site.origin}/a.jpg")


# --- how it is fetched ----------------------------------------------------------------------------


def test_an_unchanged_document_is_not_sent_again(owner, site):
    def answer(_path, headers):
        if headers.get("if-none-match") == '"v1"' and headers.get("if-modified-since") == "then":
            return 304, {}, b""
        return 200, {"ETag": '"v1"', "Last-Modified": "then"}, rss(item(1)).encode()

    site.answer = answer
    newsfeed = created(owner, site.url)
    check()
    Newsfeed.objects.update(entry_count=77)
    check()
    assert len(site.requests) == 2
    assert (reread(newsfeed).entry_count, newsfeed.failures) == (77, 0)
    assert newsfeed.checked_at > newsfeed.created_at


def test_gzip_is_read(owner, site):
    site.serve(gzip.compress(rss(item(1)).encode()), Content_Encoding="gzip")
    newsfeed = created(owner, site.url)
    check()
    assert (reread(newsfeed).entry_count, newsfeed.last_error) == (1, "")


def test_redirects_are_followed_a_few_times(owner, site):
    def answer(path, _headers):
        number = int(path.rpartition("/")[2] or 0)
        if number:
            return 302, {"Location": f"/hop/{number - 1}"}, b""
        return 200, {}, rss(item(1)).encode()

    site.answer = answer
    near = created(owner, f"{site.origin}/hop/{MOST_REDIRECTS}")
    far = created(owner, f"{site.origin}/hop/{MOST_REDIRECTS + 1}")
    check()
    assert reread(near).last_error == ""
    assert "redirects more than" in reread(far).last_error


@pytest.mark.parametrize(
    "inward",
    [
        "http://127.0.0.1:1/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://2130706433/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "https://user:secret@example.com/",
        "//internal:8080/",
    ],
)
def test_a_redirect_to_an_inward_address_is_not_followed(owner, site, inward):
    site.answer = lambda _path, _headers: (301, {"Location": inward}, b"")
    newsfeed = created(owner, site.url)
    check()
    assert "address" in reread(newsfeed).last_error
    assert newsfeed.failures == 1
    assert len(site.requests) == 1


def test_a_redirect_to_a_name_of_an_inward_address_is_not_followed(owner, site, monkeypatch):
    real = fetching.SeparateResolver.look_up

    async def look_up(self, host, port):
        # As DNS of an owner would resolve it.
        return await real(self, "127.0.0.1" if host == "inward.example.org" else host, port)

    monkeypatch.setattr(fetching.SeparateResolver, "look_up", look_up)
    location = "https://inward.example.org/"
    site.answer = lambda _path, _headers: (301, {"Location": location}, b"")
    newsfeed = created(owner, site.url)
    check()
    assert "not public" in reread(newsfeed).last_error


def endless(part):
    while True:
        yield part


def test_of_an_endless_document_the_beginning_is_read(owner, site):
    def parts():
        yield b"<rss><channel>"
        yield item(1).encode()
        yield from endless(b"<!-- " + b"x" * 60_000 + b" -->")

    site.answer = lambda _path, _headers: (200, {}, parts())
    newsfeed = created(owner, site.url)
    check()
    assert (reread(newsfeed).entry_count, newsfeed.last_error) == (1, "")


def test_a_gzip_bomb_is_decompressed_to_the_limit(owner, site):
    bomb = gzip.compress(b"<rss><channel>" + b" " * (200 * MAX_DOCUMENT))
    site.serve(bomb, Content_Encoding="gzip")
    newsfeed = created(owner, site.url)
    check()
    assert "malformed" in reread(newsfeed).last_error


def test_a_slow_document_ends_at_the_time_limit(owner, site, monkeypatch):
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 1.0)

    def parts():
        yield b"<rss><channel>" + item(1).encode()
        for _ in range(40):
            time.sleep(0.1)
            yield b" "

    site.answer = lambda _path, _headers: (200, {"ETag": "x"}, parts())
    newsfeed = created(owner, site.url)
    check()
    assert "did not arrive" in reread(newsfeed).last_error
    assert (newsfeed.known, newsfeed.etag) == (None, "")


def test_a_hanging_feed_delays_neither_webhooks_nor_other_accounts(
    channel, owner, site, receiver, settings, monkeypatch
):
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 3.0)
    done, released = [], threading.Event()
    other = factories.make_channel(account=Account.objects.create(name="Bob"))
    with running_site() as hanging:
        settings.NEWSFEED_TRUSTED_ORIGINS |= {hanging.origin}

        def hang(_path, _headers):
            released.wait(60)
            done.append("hanging")
            return 200, {}, b""

        hanging.answer = hang
        for number in range(10):
            created(owner, f"{hanging.origin}/{number}")
        site.serve(rss(item(1)))
        quick = created(owner_of(other), site.url)
        webhook, _ = hook(channel, receiver, "webhook.test")
        webhook_test(channel_id=channel.pk, webhook_id=webhook.pk)
        receiver.answer = lambda _request: done.append("webhook") or 204
        served = site.answer
        site.answer = lambda *asked: done.append("site") or served(*asked)
        turns.work(seconds=2)
        released.set()
    assert {*done[:2]} == {"webhook", "site"}
    assert reread(quick).entry_count == 1
    assert len(hanging.requests) == turns.NEWSFEEDS_IN_FLIGHT // 4  # an account's share


# --- broken feeds ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"<html><body>Hello</body></html>", "web page"),
        (b"<opml/>", "neither RSS nor Atom"),
        (b"<rss><channel><item><title>x</oops>", "malformed"),
        (b'<!DOCTYPE r [<!ENTITY a "b">]><rss><channel>&a;</channel></rss>', "entities"),
        (b"\x00\x01\x02", "empty"),
    ],
)
def test_what_is_no_feed_is_an_error_in_words(owner, site, body, words):
    site.serve(body)
    newsfeed = created(owner, site.url)
    check()
    assert words in reread(newsfeed).last_error
    assert newsfeed.known is None


def test_a_document_that_no_code_expects_is_a_failed_check_with_a_reason(owner, site, monkeypatch):
    newsfeed = primed(owner, site, item(1))
    site.serve(rss(item(2), item(1)))
    with monkeypatch.context() as patched:
        patched.setattr(checks, "compared", Mock(side_effect=MemoryError))
        check()  # the worker goes on
    assert (reread(newsfeed).failures, newsfeed.last_error) == (1, "The document cannot be read.")
    check()
    assert titles() == ["Title 2"]


def test_a_failing_feed_is_checked_less_often_then_told_then_disabled(owner, channel, site):
    Webhook.objects.create(
        channel=channel, url="https://a.example/", events=["newsfeed.disabled"], secret_encrypted=""
    )
    site.answer = lambda _path, _headers: (503, {}, b"")
    newsfeed = created(owner, site.url, every_minutes=10)
    waits = []
    for _ in range(5):
        assert told(channel) == []
        check()
        waits.append((reread(newsfeed).next_at - newsfeed.checked_at).total_seconds() / 60)
    assert waits == [10, 20, 40, 80, 160]
    assert told(channel) == [Kind.NEWSFEED_FAILING.code]

    Newsfeed.objects.update(failing_since=F("failing_since") - checks.FAILING_FOR)
    check()
    assert (reread(newsfeed).is_enabled, newsfeed.disabled_code) == (False, "failing")
    assert told(channel) == [Kind.NEWSFEED_DISABLED.code]
    message = WebhookMessage.objects.get()
    assert message.type == "newsfeed.disabled"
    check()
    assert len(site.requests) == 6


def told(channel):
    channels = type(channel).objects.filter(pk=channel.pk)
    found = attention(channels, now=sql.now())
    return [each.code for each in found if each.code.startswith("newsfeed")]


def test_a_success_ends_the_failures(owner, site):
    newsfeed = primed(owner, site, item(1))
    site.answer = lambda _path, _headers: (500, {}, b"")
    check()
    assert reread(newsfeed).failures == 1
    site.serve(rss(item(2), item(1)))
    check()
    assert (reread(newsfeed).failures, newsfeed.failing_since, newsfeed.last_error) == (0, None, "")
    assert titles() == ["Title 2"]


def test_410_disables_and_retry_after_is_kept(owner, site):
    newsfeed = primed(owner, site, item(1))
    site.answer = lambda _path, _headers: (429, {"Retry_After": "7200"}, b"")
    check()
    assert reread(newsfeed).next_at - newsfeed.checked_at == timedelta(hours=2)
    site.answer = lambda _path, _headers: (410, {}, b"")
    check()
    assert (reread(newsfeed).is_enabled, newsfeed.disabled_code) == (False, "gone")


def test_a_refused_send_disables_the_newsfeed(channel, owner, site):
    category = factories.make_category(channel)
    newsfeed = primed(owner, site, send={"body": "{{ entry.title }}", "category": category.key})
    owner.call("DELETE", f"/channel/{channel.id}/categories/{category.key}")
    site.serve(rss(item(1)))
    check()
    assert (reread(newsfeed).is_enabled, newsfeed.disabled_code) == (False, "category_unknown")
    assert (newsfeed.found, titles()) == (None, [])


def test_a_deleted_channel_is_neither_checked_nor_sent(channel, owner, site):
    primed(owner, site)
    Newsfeed.objects.update(found=[{"title": "x", "summary": "x", "link": ""}], next_at=Now())
    type(channel).objects.filter(pk=channel.pk).update(deletion_asked_at=Now())
    assert not checks.is_any_due()
    assert checks.claim(9) == []
    assert publishing.publish_next() is False


# --- once -----------------------------------------------------------------------------------------


def claimed():
    Newsfeed.objects.update(next_at=Now())
    return checks.claim(20)


def fetched(check_):
    fetcher = Fetcher(1)
    try:
        return fetcher.begin(check_).result()
    finally:
        fetcher.close()


def test_many_workers_send_each_entry_once(owner, site):
    primed(owner, site, daily_limit=50)
    site.serve(rss(*(item(number) for number in range(20))))

    def work():
        for _ in range(5):
            Newsfeed.objects.update(next_at=Now())
            turns.work(seconds=20)
            firing.work(seconds=20)

    support.in_threads(*[work] * 4)
    assert sorted(titles()) == sorted(f"Title {number}" for number in range(20))


def test_a_late_result_of_a_lost_lease_changes_nothing(owner, site):
    newsfeed = primed(owner, site)
    site.serve(rss(item(1)))
    (first,) = claimed()
    assert claimed() == []  # leased
    late = fetched(first)
    Newsfeed.objects.update(lease_until=Now() - timedelta(seconds=1))
    (second,) = claimed()
    assert second.lease_number == first.lease_number + 1
    assert checks.record(first, late) is False
    assert reread(newsfeed).found is None
    assert checks.record(second, fetched(second)) is True


class Killed(BaseException):
    """No code catches it, as none catches a SIGKILL."""


def test_a_worker_killed_between_the_notifications_and_the_commit_leaves_nothing(
    owner, site, monkeypatch
):
    primed(owner, site)
    site.serve(rss(item(2), item(1)))
    Newsfeed.objects.update(next_at=Now())
    turns.work(seconds=20)
    real, made = publishing.notification_accept, []

    def accept(**arguments):
        made.append(real(**arguments))
        if len(made) == 2:
            raise Killed
        return made[-1]

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "notification_accept", accept)
        with pytest.raises(Killed):
            firing.work(seconds=20)
    assert titles() == []
    firing.work(seconds=20)
    assert titles() == ["Title 2", "Title 1"]


def test_killed_workers_lose_and_repeat_nothing(sandbox, channel, owner, site, processes):
    """Real processes: the worker dies while it fetches, and one that sends what was found."""
    devices = factories.subscribe_browsers(sandbox, channel, 1)
    primed(owner, site, daily_limit=50)
    document = rss(*(item(number) for number in range(30))).encode()
    calls, killed = [], threading.Event()

    def answer(asked, _headers):
        calls.append(asked)
        if len(calls) == 1:
            killed.wait(60)
        return 200, {}, document

    site.answer = answer
    variables = {"NEWSFEED_TRUSTED_ORIGINS": site.origin}
    first = processes.start("worker-hooks", **variables)
    planners = [processes.start("worker-plan", **variables) for _ in range(2)]
    processes.start("worker-web", **variables)
    processes.start("beat", **variables)
    Newsfeed.objects.update(next_at=Now())
    support.until(lambda: calls)
    kill(first)
    killed.set()
    Newsfeed.objects.update(lease_until=Now())  # as a minute later
    processes.start("worker-hooks", **variables)
    support.until(lambda: Newsfeed.objects.filter(found__isnull=True, entry_count=30).exists())
    kill(planners[0])
    support.until(lambda: Notification.objects.filter(status="sent").count() == 30, seconds=60)
    assert sorted(titles()) == sorted(f"Title {number}" for number in range(30))
    assert {len(device.receipts) for device, _ in devices} == {30}


def test_the_tick_rings_for_newsfeeds_that_are_due_and_for_what_was_found(owner, site):
    newsfeed = created(owner, site.url)
    tasks.tick()
    assert (support.waiting("hooks") > 0, support.waiting("plan")) == (True, 0)
    Newsfeed.objects.update(found=[{}])
    tasks.tick()
    assert support.waiting("plan") == 1
    owner.call("DELETE", path(owner, newsfeed.pk))
    assert not checks.is_any_due()


def test_a_date_without_a_zone_is_read(owner, site):
    moment = timezone.now().replace(microsecond=0, tzinfo=None)
    site.serve(rss(item(1, pubDate=moment.isoformat())))
    newsfeed = created(owner, site.url)
    check()
    assert reread(newsfeed).latest["published"] == f"{moment.isoformat()}.000Z"
