// A notification's page: draws its outcomes over time, again after each refresh.
(() => {
  let chart = null;

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function label(start, step) {
    const day = step >= 1440 ? { day: "numeric", month: "short" } : {};
    const clock = step >= 1440 ? {} : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    return new Intl.DateTimeFormat("en-GB", { ...day, ...clock }).format(new Date(start));
  }

  function draw() {
    const source = document.querySelector("#outcome-data");
    if (!source) return;
    const { points, step_minutes: step } = JSON.parse(source.textContent);
    const has = points.length > 0;
    document.querySelector("#outcome-chart").hidden = !has;
    document.querySelector("#outcome-details").hidden = !has;
    document.querySelector("#outcome-file").hidden = !has;
    document.querySelector("#outcome-none").hidden = has;
    if (!has) return;
    const labels = points.map(([start]) => label(start, step));
    fillTable(points, labels);
    drawChart(points, labels);
  }

  function fillTable(points, labels) {
    const rows = points.map(([, delivered, bounced], index) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = labels[index];
      row.append(head, ...[delivered, bounced].map(cell));
      return row;
    });
    document.querySelector("#outcome-rows").replaceChildren(...rows);
  }

  function cell(number) {
    const element = document.createElement("td");
    element.className = "ps-number";
    element.textContent = number.toLocaleString("en");
    return element;
  }

  function drawChart(points, labels) {
    const series = [
      {
        label: "Delivered",
        data: points.map((point) => point[1]),
        backgroundColor: colour("--ps-good"),
      },
      {
        label: "Bounced",
        data: points.map((point) => point[2]),
        backgroundColor: colour("--ps-bad"),
      },
    ];
    if (chart) chart.destroy();
    chart = new window.Chart(document.querySelector("#outcome-chart canvas"), {
      type: "bar",
      data: { labels, datasets: series },
      options: options(),
    });
  }

  function options() {
    const grid = { color: colour("--ps-line") };
    const ticks = { color: colour("--ps-quiet"), maxRotation: 0, autoSkipPadding: 16 };
    return {
      animation: false,
      maintainAspectRatio: false,
      interaction: { mode: "index", intersect: false },
      scales: {
        x: { stacked: true, grid: { display: false }, ticks },
        y: { stacked: true, beginAtZero: true, grid, ticks: { ...ticks, precision: 0 } },
      },
      plugins: {
        legend: { position: "bottom", labels: { color: colour("--ps-text"), boxWidth: 12 } },
      },
    };
  }

  if (document.querySelector("#composed")) window.pushsvcDrafts.forget();
  draw();
  document.addEventListener("htmx:afterSwap", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["class"] });
})();
