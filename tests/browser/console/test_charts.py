"""The dashboard's charts, by the pixels that the browser draws."""

from tests.admin.notifications.dashboards import stat

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
  const { data } = canvas.getContext("2d").getImageData(...area);
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
