"""Charts, by the pixels that the browser draws; the pages that show them."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from notifications_app.models import EventHour, Notification
from tests.admin.notifications.dashboards import stat
from tests.browser.console.support import PHONE
from tests.factories import make_sent_notification

# How many pixels of each line's colour are inside the chart's axes.
_PIXELS = """(name) => {
  const canvas = document.getElementById(`chart-${name}`);
  const chart = window.Chart.getChart(canvas);
  const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const { left, top, width, height } = chart.chartArea;
  const area = [left, top - 5, width, height + 10].map((n) => n * chart.currentDevicePixelRatio);
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const pixels = copy.getContext("2d", { willReadFrequently: true });
  pixels.drawImage(canvas, 0, 0);
  const { data } = pixels.getImageData(...area);
  return chart.data.datasets.map((line) => {
    const [red, green, blue] = rgb(line.borderColor);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i] === red && data[i + 1] === green && data[i + 2] === blue && data[i + 3]) found++;
    }
    return found;
  });
}"""


def test_the_rates_of_a_single_day_are_drawn(console, alice):
    stat(alice.channel, recipients=100, delivered=90, bounced=10, clicked=30)

    page = console.open("/admin/?days=7", alice.members["viewer"])
    page.locator("#chart-shares").wait_for()
    page.wait_for_function("window.Chart.getChart(document.getElementById('chart-shares'))")

    bounced, clicked = page.evaluate(_PIXELS, "shares")
    assert bounced
    assert clicked


def drawn(page, name):
    """The chart's library has drawn it."""
    page.wait_for_function(
        "name => window.Chart && window.Chart.getChart(document.getElementById(`chart-${name}`))",
        arg=name,
    )


def test_a_rate_is_not_drawn_over_hours_without_outcomes(console, alice):
    """A line over empty hours was a trend that nobody measured."""
    for back, bounced in ((20, 50), (19, 40), (10, 90), (3, 10), (2, 20)):
        stat(alice.channel, back=back, recipients=100, delivered=100 - bounced, bounced=bounced)

    page = console.open("/admin/?days=1", alice.members["viewer"])
    drawn(page, "shares")

    is_drawn = page.evaluate(
        """() => {
          const meta = window.Chart.getChart("chart-shares").getDatasetMeta(0);
          return meta.dataset.segments.map(({ start, end }) => [start, end]);
        }"""
    )
    assert [end - start for start, end in is_drawn] == [1, 0, 1]
    assert page.evaluate(_PIXELS, "shares")[0]


def test_clicks_have_a_scale_of_their_own_beside_deliveries(console, alice):
    """Eight clicks of a thousand deliveries were a flat line."""
    stat(alice.channel, back=1, recipients=1_000, delivered=1_000, clicked=8)
    stat(alice.channel, recipients=900, delivered=900, clicked=2)

    page = console.open("/admin/?days=1", alice.members["viewer"])
    drawn(page, "deliveries")

    heights = page.evaluate(
        """() => {
          const chart = window.Chart.getChart("chart-deliveries");
          const { top, bottom } = chart.chartArea;
          const points = chart.getDatasetMeta(0).data.slice(-2);
          return points.map(({ y }) => (bottom - y) / (bottom - top));
        }"""
    )
    assert heights[0] > 0.6
    assert heights[0] > 3 * heights[1]


def clicked(channel, *, first=9, **fields):
    """A notification with clicks in its first two hours."""
    notification = make_sent_notification(channel, **fields)
    for hours, clicks in ((0, first), (1, 3)):
        EventHour.objects.create(
            notification=notification,
            hour=notification.started_at + timedelta(hours=hours),
            platform="web",
            clicked=clicks,
        )
    return notification


def expect_drawn(page, name):
    """Waits until the chart has pixels of each line's colour."""
    page.wait_for_function(
        "name => window.Chart.getChart(document.getElementById(`chart-${name}`))"
        f" && ({_PIXELS})(name).every(Boolean)",
        arg=name,
    )


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 760}])
def test_notifications_that_are_ticked_are_compared(console, alice, viewport):
    for title, clicks in (("Rye", 4), ("Oats", 40), ("Spelt", 9)):
        clicked(alice.channel, title=title, first=clicks)
    path = "/admin/notifications_app/notification/"
    page = console.open(path, alice.members["viewer"], viewport=viewport)
    button = page.get_by_role("button", name="Compare")
    expect(button).to_be_hidden()

    page.get_by_label("Compare “Rye”").check()
    page.get_by_label("Compare “Oats”").check()
    button.click()

    expect(page.get_by_role("heading", name="Compare notifications")).to_be_visible()
    expect(page.get_by_role("table").first).to_contain_text("Rye")
    expect(page.get_by_role("table").first).not_to_contain_text("Spelt")
    expect_drawn(page, "since")


def test_clicks_are_drawn_and_an_open_table_stays_open_while_the_page_refreshes(console, alice):
    notification = clicked(alice.channel, status="processing", finished_at=None)
    page = console.open(
        f"/admin/notifications_app/notification/{notification.pk}/change/", alice.members["viewer"]
    )
    expect_drawn(page, "clicks")
    page.locator("#table-clicks summary").click()

    EventHour.objects.filter(notification=notification).update(clicked=40)
    Notification.objects.filter(pk=notification.pk).update(clicked_count=80)

    expect(page.locator("#table-clicks tbody tr").first).to_contain_text("40")
    expect(page.locator("#table-clicks tbody tr").first).to_be_visible()
    expect_drawn(page, "clicks")


def test_best_hours_are_shown_in_the_readers_time_zone(console, alice):
    stat(alice.channel, back=3, clicked=30)
    path = f"/admin/notifications_app/notification/best-hours/{alice.channel.pk}/"

    page = console.open(path, alice.members["viewer"], timezone_id="Asia/Tokyo")

    expect(page.get_by_label("in the time zone")).to_have_value("Asia/Tokyo")
    page.get_by_label("in the time zone").select_option("America/Lima")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("columnheader", name="Hour (America/Lima)")).to_be_visible()
