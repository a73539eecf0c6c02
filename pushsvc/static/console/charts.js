// Draws the charts that a page's #chart-data describes (admin/charts.py), in the theme's colours.
(() => {
  const drawn = [];
  let source = null;

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--ps-${name}`).trim();
  }

  // The computed colour, because a canvas supports neither variables nor color-mix().
  function plain(value) {
    const probe = document.createElement("span");
    probe.style.color = value;
    probe.hidden = true;
    document.body.append(probe);
    const resolved = getComputedStyle(probe).color;
    probe.remove();
    return resolved;
  }

  function faded(value) {
    return plain(`color-mix(in srgb, ${value} 22%, transparent)`);
  }

  // `isLong`: with the day, if there may be several.
  function say(start, unit, isLong) {
    if (unit === "since") return isLong ? translated("Hour %(start)s", { start }) : `${start}`;
    const moment = new Date(start);
    const parts =
      unit === "hour"
        ? {
            hour: "2-digit",
            minute: "2-digit",
            hourCycle: "h23",
            ...(isLong && { day: "numeric", month: "short" }),
          }
        : { day: "numeric", month: "short", ...(isLong && { weekday: "short" }) };
    const timeZone = window.pushsvcTimes.timeZone();
    return new Intl.DateTimeFormat(window.pushsvcLocale, { ...parts, timeZone }).format(moment);
  }

  function dataset(line, chart, isFirst) {
    const isLine = line.kind === "line";
    const isOverBars = isLine && chart.lines.some((each) => each.kind === "bar");
    const isArea = isLine && chart.is_stacked && !isOverBars;
    const own = plain(colour(line.tone));
    const inside = isArea ? faded(colour(line.tone)) : own;
    return {
      label: line.label,
      type: line.kind,
      data: line.values,
      stack: isOverBars ? line.label : "one", // a line over bars is not stacked with them
      yAxisID: isOverBars ? "own" : "y", // it would be flat on the axis of the bars
      fill: isArea ? (isFirst ? "origin" : "-1") : false,
      borderColor: own,
      hoverBorderColor: own,
      backgroundColor: inside,
      hoverBackgroundColor: inside, // the library cannot derive it from oklch()
      pointBackgroundColor: own,
      borderWidth: isLine ? 2 : 0,
      borderDash: line.dash,
      pointRadius: line.values.map((_, index) => (isLone(line.values, index) ? 3 : 0)),
      pointHitRadius: 12,
      maxBarThickness: 28,
      order: isLine ? 0 : 1,
      spanGaps: false, // nothing is known of an hour without outcomes
    };
  }

  // Without a neighbour, no line leads to the value.
  function isLone(values, index) {
    return [values[index - 1], values[index + 1]].every((each) => each == null);
  }

  // The scale of lines over bars.
  function ownAxis(chart, quiet) {
    const line = chart.lines.find((each) => each.kind === "line");
    if (!line || !chart.lines.some((each) => each.kind === "bar")) return {};
    const title = { display: true, text: line.label, color: quiet };
    const ticks = { callback: compact, color: quiet, maxTicksLimit: 6, precision: 0 };
    const own = { position: "right", beginAtZero: true, border: { display: false } };
    return { own: { ...own, grid: { display: false }, title, ticks } };
  }

  function options(data, chart) {
    const suffix = chart.unit ? ` ${chart.unit}` : "";
    const quiet = plain(colour("quiet"));
    return {
      animation: false,
      maintainAspectRatio: false,
      interaction: { mode: "index", intersect: false },
      plugins: {
        legend: {
          position: "bottom",
          labels: { boxHeight: 6, boxWidth: 6, color: quiet, usePointStyle: true },
        },
        tooltip: {
          callbacks: {
            title: (items) => say(data.starts[items[0].dataIndex], data.unit, true),
            label: (item) =>
              ` ${item.dataset.label}: ${Math.abs(item.parsed.y).toLocaleString(window.pushsvcLocale)}${suffix}`,
          },
        },
      },
      scales: {
        ...ownAxis(chart, quiet),
        x: {
          stacked: chart.is_stacked,
          grid: { display: false },
          ticks: { autoSkipPadding: 16, color: quiet, maxRotation: 0 },
        },
        y: {
          stacked: chart.is_stacked,
          beginAtZero: true,
          border: { display: false },
          grid: { color: plain(colour("line")) },
          ticks: {
            callback: (value) =>
              chart.unit === "s" ? duration(value) : `${compact(value)}${suffix}`,
            color: quiet,
            maxTicksLimit: 6,
            precision: chart.unit ? undefined : 0,
          },
        },
      },
    };
  }

  // The two largest units: 1 min 20 s.
  function duration(seconds) {
    if (seconds < 60) return `${compact(seconds)} s`;
    const all = [
      Math.floor(seconds / 86400),
      Math.floor(seconds / 3600) % 24,
      Math.floor(seconds / 60) % 60,
      Math.round(seconds) % 60,
    ];
    const first = all.findIndex((count) => count > 0);
    return ["d", "h", "min", "s"]
      .map((unit, place) => (all[place] ? `${all[place]} ${unit}` : ""))
      .slice(first, first + 2)
      .join(" ")
      .trim();
  }

  function compact(value) {
    return new Intl.NumberFormat(window.pushsvcLocale, {
      notation: "compact",
      maximumFractionDigits: 1,
    }).format(value);
  }

  function draw() {
    source = document.getElementById("chart-data");
    if (!source || !window.Chart) return;
    const data = JSON.parse(source.textContent);
    for (const chart of drawn.splice(0)) chart.destroy();
    const hasDays = data.unit === "hour" && data.starts.length > 24;
    for (const chart of data.charts) {
      const canvas = document.getElementById(`chart-${chart.name}`);
      if (!canvas) continue;
      drawn.push(
        new window.Chart(canvas, {
          data: {
            labels: data.starts.map((start) => say(start, data.unit, hasDays)),
            datasets: chart.lines.map((line, index) => dataset(line, chart, index === 0)),
          },
          options: options(data, chart),
        }),
      );
    }
  }

  // Colours are read when a chart is drawn, so a change of the theme draws the charts again.
  function drawAgainInOtherThemes() {
    let wasDark = isDark();
    new MutationObserver(() => {
      if (isDark() === wasDark) return;
      wasDark = isDark();
      draw();
    }).observe(document.documentElement, { attributeFilter: ["class"] });
  }

  function isDark() {
    return document.documentElement.classList.contains("dark");
  }

  document.addEventListener("DOMContentLoaded", () => {
    draw();
    drawAgainInOtherThemes();
  });

  // A part of the page that refreshes itself may contain charts, and tables that the reader opened.
  let opened = [];
  document.addEventListener("htmx:beforeSwap", () => {
    opened = [...document.querySelectorAll("details[data-stays-open][open]")].map(({ id }) => id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    if (document.getElementById("chart-data") !== source) draw();
  });
})();
