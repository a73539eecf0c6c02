// A notification's page: draws its outcomes over time, again after each refresh.
(() => {
  let chart = null;

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function label(start, step) {
    const day = step >= 1440 ? { day: "numeric", month: "short" } : {};
    const clock = step >= 1440 ? {} : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    const timeZone = window.pushsvcTimes.timeZone();
    return new Intl.DateTimeFormat(window.pushsvcLocale, { ...day, ...clock, timeZone }).format(
      new Date(start),
    );
  }

  function draw() {
    const source = document.querySelector("#outcome-data");
    if (!source) return;
    const { starts, lines, step_minutes: step } = JSON.parse(source.textContent);
    const has = starts.length > 0;
    document.querySelector("#outcome-chart").hidden = !has;
    document.querySelector("#outcome-details").hidden = !has;
    document.querySelector("#outcome-file").hidden = !has;
    document.querySelector("#outcome-none").hidden = has;
    if (!has) return;
    const labels = starts.map((start) => label(start, step));
    fillTable(lines, labels);
    drawChart(lines, labels);
  }

  function fillTable(lines, labels) {
    const heads = lines.map((line) => {
      const head = document.createElement("th");
      head.scope = "col";
      head.className = "ps-number";
      head.textContent = line.label;
      return head;
    });
    const names = document.querySelector("#outcome-head");
    names.replaceChildren(names.firstElementChild, ...heads);
    const rows = labels.map((text, index) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = text;
      row.append(head, ...lines.map((line) => cell(line.values[index])));
      return row;
    });
    document.querySelector("#outcome-rows").replaceChildren(...rows);
  }

  function cell(number) {
    const element = document.createElement("td");
    element.className = "ps-number";
    element.textContent = window.pushsvcNumber(number);
    return element;
  }

  function drawChart(lines, labels) {
    const series = lines.map((line) => ({
      label: line.label,
      data: line.values,
      backgroundColor: colour(`--ps-${line.tone}`),
    }));
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
      locale: window.pushsvcLocale,
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
