// The page that imports a file: its format and columns, its first rows, a dry run, and the import,
// part after part. Each part that the service has stored is noted, so an import goes on after it.
(() => {
  const { Unreadable, csvLine, encodingOf, fieldsOf, headOf, partOf, printOf, startOf } =
    window.pushsvcImportFile;
  const IGNORED = "-";
  const FIRST = { most: 10, bytes: 40 * 1024 };
  const PART = { most: 2000, bytes: 900 * 1024 };
  const PRINTED = 64 * 1024;
  const TRIES = 8;
  const OF_REFUSAL = ["import_line", "import_code", "import_field", "import_reason"];
  const COUNTED = ["created", "updated", "unchanged", "refused"];
  const OUTCOMES = {
    created: translated("created"),
    updated: translated("updated"),
    unchanged: translated("unchanged"),
  };

  // The request can be sent again, after `seconds`.
  class Unanswered extends Error {
    seconds = 0;
  }

  const $ = (name) => document.getElementById(`import${name ? `-${name}` : ""}`);
  const form = $("");
  const number = (count) => window.pushsvcNumber(count);

  let store;
  let file = null;
  let layout = null; // of the file: encoding, begin, format, separator, columns, first line
  let kept = null; // the import that this browser has kept
  let turn = 0; // of the page's last change, because answers of earlier ones are stale
  let timer = 0;
  let run = null; // what is going on now
  let dryRefused = null; // refused rows, if a dry run was the last

  // ---- what is shown -----------------------------------------------------------------------------

  const show = (element, isShown) => {
    element.hidden = !isShown;
  };

  function tell(element, words) {
    show(element, Boolean(words));
    element.textContent = words;
  }

  function problem(element, error) {
    const isKnown = error instanceof Unreadable || error instanceof Unanswered;
    if (!isKnown) console.error(error);
    tell(element, isKnown ? error.message : translated("The import failed. Reload the page."));
  }

  function cells(row, texts) {
    for (const [label, text, kind] of texts) {
      const cell = row.insertCell();
      if (kind) cell.className = kind;
      if (label) cell.dataset.label = label;
      if (text instanceof Node) cell.append(text);
      else cell.textContent = text ?? "";
    }
  }

  function head(row, text) {
    const cell = document.createElement("th");
    cell.scope = "row";
    cell.textContent = text;
    row.append(cell);
    return cell;
  }

  function badge(text, tone) {
    const element = document.createElement("span");
    element.className = "ps-badge";
    element.dataset.tone = tone;
    element.textContent = text;
    return element;
  }

  // ---- the service -------------------------------------------------------------------------------

  async function ask(url, parameters, body, isCsv) {
    const query = new URLSearchParams(parameters);
    const headers = {
      "Content-Type": isCsv ? "text/csv" : "application/x-ndjson",
      "X-CSRFToken": form.elements.csrfmiddlewaretoken.value,
    };
    const answer = await fetch(`${url}?${query}`, { method: "POST", body, headers }).catch(() => {
      throw new Unanswered(translated("The service cannot be reached."));
    });
    if (answer.redirected || answer.status === 403) {
      throw new Unreadable(
        translated(
          "You are signed out, or may no longer import. Sign in, reload this page, and choose the file again.",
        ),
      );
    }
    if (answer.status === 404) throw new Unreadable(translated("The channel no longer exists."));
    if (answer.status === 400) throw new Unreadable((await answer.json()).detail);
    if (answer.ok) return answer.json();
    const words = translated("The service responded with %(status)s.", { status: answer.status });
    if (answer.status < 500 && answer.status !== 429) throw new Unreadable(words);
    const error = new Unanswered(words);
    error.seconds = Number(answer.headers.get("Retry-After")) || 0;
    throw error;
  }

  // Parts can be sent again, because a row that is imported twice changes nothing.
  async function askUntilAnswered(...request) {
    for (let tried = 1; ; tried++) {
      try {
        return await ask(...request);
      } catch (error) {
        if (!(error instanceof Unanswered) || tried === TRIES) throw error;
        const seconds = Math.max(error.seconds, Math.min(2 ** tried, 30));
        if (!run.isCancelled) {
          $("state").textContent =
            `${error.message} ${translated("Next try in %(seconds)s s.", { seconds })}`;
          await pause(seconds);
        }
        if (run.isCancelled) return null;
        $("state").textContent = run.words;
      }
    }
  }

  function pause(seconds) {
    return new Promise((resolve) => {
      const waiting = setTimeout(resolve, 1000 * seconds);
      run.wake = () => {
        clearTimeout(waiting);
        resolve();
      };
    });
  }

  // ---- the file and how to read it ---------------------------------------------------------------

  const isCsv = () => "csv" in $("format").selectedOptions[0].dataset;
  const isTable = () => $("format").value === "tokens_csv";

  async function choose() {
    const current = ++turn;
    file = $("file").files[0] ?? null;
    layout = null;
    for (const name of ["kind", "how", "first", "run"]) show($(name), false);
    tell($("file-error"), "");
    if (!file) return;
    try {
      if (!file.size) throw new Unreadable(translated("The file is empty."));
      const found = await encodingOf(file);
      if (current !== turn) return;
      $("encoding").value = found.encoding;
      layout = found;
      const earlier = await goingOn();
      if (current !== turn) return;
      if (earlier) return restore(earlier);
      await look("");
    } catch (error) {
      if (current === turn) problem($("file-error"), error);
    }
  }

  // Asks what the file seems to be. An empty format is guessed.
  async function look(format) {
    const current = ++turn;
    tell($("file-error"), "");
    try {
      const reading = { encoding: $("encoding").value, begin: layout.begin };
      const found = await ask(form.dataset.look, { format }, await headOf(file, reading), true);
      if (current !== turn) return;
      layout = { ...reading, ...found };
      $("format").value = layout.format;
      listColumns();
      reveal();
      await preview();
    } catch (error) {
      if (current !== turn) return;
      show($("kind"), true);
      for (const name of ["how", "first", "run"]) show($(name), false);
      problem($("file-error"), error);
    }
  }

  function reveal() {
    for (const name of ["kind", "how", "first", "run"]) show($(name), true);
    show($("columns"), isTable());
    show($("of-table"), isTable());
    const isPlain = ["webpush_json", "people_ndjson"].includes($("format").value);
    show($("of-vendor"), !isTable() && !isPlain);
    for (const name of ["results", "progress"]) show($(name), false);
    $("state").textContent = "";
    tell($("error"), "");
    offer();
  }

  function listColumns() {
    $("columns-rows").replaceChildren(
      ...layout.columns.map(({ name, means, samples }, place) => {
        const row = $("column").content.cloneNode(true);
        const [title, values, choice] = [
          row.querySelector("th"),
          row.querySelector("td"),
          row.querySelector("select"),
        ];
        title.textContent = name || translated("(without a name)");
        values.textContent = samples.join(" · ");
        choice.value = means;
        const column = name || place + 1;
        choice.setAttribute("aria-label", translated("Column %(column)s contains", { column }));
        return row;
      }),
    );
  }

  const meanings = () =>
    [...$("columns-rows").querySelectorAll("select")].map((each) => each.value);

  // The header of each part has the names of the service. Without a name, a column is ignored.
  function header(means) {
    if (!layout.separator) return "";
    const names = layout.columns.map(({ name }, place) => {
      const meaning = layout.format === "tokens_csv" ? means[place] : "";
      return meaning === IGNORED ? "" : meaning || name;
    });
    const quoted = names.map((name) => `"${name.replaceAll('"', '""')}"`);
    return `sep=${layout.separator}\n${quoted.join(layout.separator)}\n`;
  }

  function options() {
    const given = {
      format: $("format").value,
      tags_from: $("tags").value.trim(),
      vapid_public_key: $("vapid").value,
      takeover_days: $("takeover").value.trim() || "0",
    };
    if (isTable()) given.platform = $("platform").value;
    else if ($("attributes").value.trim()) given.attributes = $("attributes").value.trim();
    return given;
  }

  // ---- the first rows ----------------------------------------------------------------------------

  function previewSoon() {
    clearTimeout(timer);
    timer = setTimeout(preview, 300);
  }

  async function preview() {
    clearTimeout(timer);
    const current = ++turn;
    tell($("first-error"), "");
    try {
      const start = await startOf(file, layout, layout.first_line);
      const part = await partOf(file, layout, start, FIRST);
      const parameters = { ...options(), line: start.line };
      const found = part
        ? await ask(form.dataset.rows, parameters, header(meanings()) + part.text, isCsv())
        : { rows: [], attributes_dropped: [] };
      if (current !== turn) return;
      listRows(found.rows);
      listAttributes(found.attributes_dropped);
      if (!found.rows.length) throw new Unreadable(translated("The file has no rows."));
    } catch (error) {
      if (current !== turn) return;
      listRows([]);
      problem($("first-error"), error);
    }
    show($("first-table"), $("first-rows").rows.length > 0);
  }

  function listRows(rows) {
    $("first-rows").replaceChildren();
    for (const each of rows) {
      const row = $("first-rows").insertRow();
      head(row, each.line).dataset.label = translated("Line");
      if (each.outcome === "refused") {
        cells(row, [["", badge(translated("refused"), "bad")]]);
        const reason = row.insertCell();
        reason.colSpan = 6;
        reason.dir = "auto"; // English in every language
        reason.textContent = reasonOf(each);
        continue;
      }
      const pairs = Object.entries(each.attributes).map(([name, value]) => `${name}: ${value}`);
      const times = [
        each.created_at && translated("created %(day)s", { day: each.created_at.slice(0, 10) }),
        each.last_seen_at &&
          translated("last seen %(day)s", { day: each.last_seen_at.slice(0, 10) }),
      ];
      cells(row, [
        ["", badge(OUTCOMES[each.outcome], "good")],
        [translated("Platform"), each.platform ?? ""],
        [translated("Address"), each.address ?? "", "ps-mono"],
        [translated("Person"), each.external_id, "ps-breaks"],
        [translated("Language"), [each.language, each.timezone].filter(Boolean).join(", ")],
        [translated("Attributes and tags"), [...pairs, ...each.tags].join(" · "), "ps-breaks"],
        [translated("Times"), times.filter(Boolean).join(", ")],
      ]);
    }
  }

  const reasonOf = ({ attr, detail }) => (attr ? `${attr}: ${detail}` : detail);

  function listAttributes(dropped) {
    const words = [
      translated("Names, with commas between."),
      $("format").value === "pushsvc_ndjson"
        ? translated("Leave empty for all.")
        : translated("At most ten."),
    ];
    if (dropped.length) {
      const names = dropped.join(", ");
      words.push(translated("Found in the first rows, and not taken: %(names)s.", { names }));
    }
    $("attributes-help").textContent = words.join(" ");
  }

  // ---- an import that this browser has kept ------------------------------------------------------

  async function goingOn() {
    if (!kept || kept.isEnded || kept.file.name !== file.name || kept.file.size !== file.size) {
      return null;
    }
    const [head, seam] = await Promise.all(printsOf(kept.place.offset));
    return head === kept.file.head && seam === kept.seam ? kept : null;
  }

  // Of the beginning of the file, and of what is before the next part.
  const printsOf = (offset) => [
    printOf(file, 0, PRINTED),
    printOf(file, Math.max(0, offset - PRINTED / 16), offset),
  ];

  function restore(state) {
    ({ layout } = state);
    $("encoding").value = layout.encoding;
    $("format").value = layout.format;
    listColumns();
    const choices = $("columns-rows").querySelectorAll("select");
    choices.forEach((choice, place) => {
      choice.value = state.means[place];
    });
    for (const [name, value] of Object.entries(state.fields)) $(name).value = value;
    reveal();
    showCounts(state);
    dryRefused = null;
    show($("ended"), state.counts.refused > 0);
    preview();
    $("state").textContent = translated("This file is imported up to line %(line)s.", {
      line: number(state.place.line - 1),
    });
  }

  const countsOf = ({ counts: { created, updated, unchanged, refused } }) =>
    translated(
      "%(created)s created, %(updated)s updated, %(unchanged)s unchanged, %(refused)s refused",
      {
        created: number(created),
        updated: number(updated),
        unchanged: number(unchanged),
        refused: number(refused),
      },
    );

  function announce() {
    show($("earlier"), Boolean(kept) && !run && kept.layout !== layout);
    if (!kept) return;
    const { name } = kept.file;
    const counts = countsOf(kept);
    const percent = Math.floor((100 * kept.place.offset) / kept.file.size);
    $("earlier-words").textContent = kept.isEnded
      ? translated("“%(name)s” was imported: %(counts)s.", { name, counts })
      : translated(
          "The import of “%(name)s” stopped before line %(line)s (%(percent)s %): %(counts)s. To go on, choose the same file.",
          { name, counts, percent, line: number(kept.place.line) },
        );
    show($("earlier-refused"), kept.counts.refused > 0);
  }

  function offer() {
    const isLater = canContinue();
    $("start").textContent = isLater ? translated("Continue") : translated("Import");
    $("file").disabled = $("kind").disabled = Boolean(run);
    $("how").disabled = Boolean(run) || isLater;
    show($("dry"), !run && !isLater);
    show($("start"), !run);
    show($("over"), !run && isLater);
    show($("cancel"), Boolean(run));
    announce();
  }

  const canContinue = () => Boolean(kept && !kept.isEnded && layout && kept.layout === layout);

  async function discard() {
    kept = null;
    await store.remove();
    if (file) choose();
    else announce();
  }

  // ---- running -----------------------------------------------------------------------------------

  async function begin(isDry) {
    if (!$("takeover").reportValidity()) return;
    if (!isDry && !canContinue()) {
      const question = translated("Import “%(file)s” into the channel “%(channel)s”?", {
        file: file.name,
        channel: form.dataset.name,
      });
      if (!window.confirm(question)) return;
    }
    const words = isDry ? translated("Dry run: nothing is stored.") : translated("Importing…");
    run = { isDry, words, refused: [] };
    for (const name of ["error", "dropped"]) tell($(name), "");
    for (const name of ["ended", "codes"]) show($(name), false);
    for (const name of ["progress", "results"]) show($(name), true);
    $("state").textContent = run.words;
    offer();
    try {
      const state = canContinue() && !isDry ? kept : await newState(isDry);
      await runOn(state, isDry);
      finish(state, isDry);
    } catch (error) {
      problem($("error"), error);
      $("state").textContent = stoppedAt();
    }
    run = null;
    offer();
  }

  async function newState(isDry) {
    const place = await startOf(file, layout, layout.first_line);
    const names = ["platform", "attributes", "tags", "vapid", "takeover"];
    const state = {
      file: { name: file.name, size: file.size, head: await printOf(file, 0, PRINTED) },
      layout,
      means: meanings(),
      options: options(),
      fields: Object.fromEntries(names.map((name) => [name, $(name).value])),
      place,
      seam: "",
      counts: Object.fromEntries(COUNTED.map((name) => [name, 0])),
      codes: {},
      dropped: [],
      isEnded: false,
    };
    if (!isDry) await store.remove();
    return state;
  }

  async function runOn(state, isDry) {
    const pace = { began: Date.now(), from: state.place.offset, rows: 0 };
    run.state = state;
    showCounts(state);
    showPace(state, pace);
    while (!run.isCancelled) {
      const part = await partOf(file, layout, state.place, PART);
      if (!part) break;
      const parameters = { ...state.options, line: state.place.line, dry_run: isDry };
      const body = header(state.means) + part.text;
      const found = await askUntilAnswered(form.dataset.part, parameters, body, isCsv());
      if (!found) break;
      const rows = noted(state, found, part);
      if (isDry) run.refused.push(new Blob([rows]));
      else await keep(state, rows);
      pace.rows += COUNTED.reduce((sum, name) => sum + found[name], 0);
      showCounts(state);
      showPace(state, pace);
    }
    state.isEnded = !run.isCancelled;
    if (!isDry) await keep(state, "");
  }

  // Adds what became of the part. Returns its refused rows as CSV.
  function noted(state, found, part) {
    for (const name of COUNTED) state.counts[name] += found[name];
    for (const refusal of found.refusals) {
      state.codes[refusal.code] ??= { count: 0, first: refusal };
      state.codes[refusal.code].count++;
    }
    state.dropped = [...new Set([...state.dropped, ...found.attributes_dropped])].slice(0, 50);
    state.place = part.next;
    return found.refusals
      .map(({ line, code, attr, detail }) => {
        const text = part.textOf(line);
        const { separator } = layout;
        const fields = separator ? fieldsOf(text, separator) : [text.trimEnd()];
        return csvLine([line, code, attr, detail, ...fields], separator || ",");
      })
      .join("");
  }

  async function keep(state, rows) {
    [, state.seam] = await Promise.all(printsOf(state.place.offset));
    await store.write(state, rows);
    kept = state;
  }

  function finish(state, isDry) {
    const did = isDry
      ? translated("The dry run has ended. Nothing was stored.")
      : translated("The file is imported.");
    const stopped = isDry ? translated("The dry run was cancelled.") : stoppedAt();
    $("state").textContent = state.isEnded ? did : stopped;
    dryRefused = isDry ? run.refused : null;
    show($("ended"), state.counts.refused > 0);
  }

  const stoppedAt = () =>
    run.state && !run.isDry
      ? translated("Stopped before line %(line)s. The rows before it are imported.", {
          line: number(run.state.place.line),
        })
      : "";

  function cancel() {
    run.isCancelled = true;
    run.wake?.();
    $("state").textContent = translated("Stopping after this part…");
  }

  function showCounts({ counts, codes, dropped }) {
    show($("results"), true);
    for (const cell of $("results").querySelectorAll("[data-count]")) {
      cell.textContent = number(counts[cell.dataset.count]);
    }
    $("codes-rows").replaceChildren();
    const entries = Object.entries(codes).sort(([, one], [, other]) => other.count - one.count);
    for (const [code, { count, first }] of entries) {
      const row = $("codes-rows").insertRow();
      head(row, code);
      cells(row, [
        [translated("Rows"), number(count), "ps-number"],
        ["", `${translated("Line %(line)s", { line: number(first.line) })}: ${reasonOf(first)}`],
      ]);
    }
    show($("codes"), entries.length > 0);
    tell(
      $("dropped"),
      dropped.length
        ? translated("Attributes that are not taken: %(names)s.", { names: dropped.join(", ") })
        : "",
    );
  }

  function showPace({ place, file: { size } }, { began, from, rows }) {
    const percent = size ? Math.floor((100 * place.offset) / size) : 100;
    const bar = $("progress").querySelector("[role=progressbar]");
    bar.setAttribute("aria-valuenow", percent);
    bar.firstElementChild.style.width = `${percent}%`;
    const seconds = (Date.now() - began) / 1000;
    const bytes = (place.offset - from) / seconds;
    const left = Math.ceil((size - place.offset) / bytes);
    const words = [`${percent} %`, translated("line %(line)s", { line: number(place.line - 1) })];
    if (rows) {
      words.push(
        translated("%(rows)s rows a second", { rows: number(Math.round(rows / seconds)) }),
      );
    }
    if (rows && left > 0) {
      words.push(
        left > 90
          ? translated("%(minutes)s min left", { minutes: Math.ceil(left / 60) })
          : translated("%(seconds)s s left", { seconds: left }),
      );
    }
    $("pace").textContent = words.join(" · ");
  }

  async function download(blobs, of) {
    const names = of.separator ? of.columns.map(({ name }) => name) : ["row"];
    const head = `\ufeff${csvLine([...OF_REFUSAL, ...names], of.separator || ",")}`;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([head, ...blobs], { type: "text/csv" }));
    link.download = "refused.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  // ---- events ------------------------------------------------------------------------------------

  $("file").hasChangeListener = true; // for the theme, which expects its own elements around it
  $("file").addEventListener("change", choose);
  $("format").addEventListener("change", () => look($("format").value));
  $("encoding").addEventListener("change", () => look($("format").value));
  $("how").addEventListener("input", previewSoon);
  $("dry").addEventListener("click", () => begin(true));
  $("start").addEventListener("click", () => begin(false));
  $("cancel").addEventListener("click", cancel);
  $("discard").addEventListener("click", discard);
  $("over").addEventListener("click", discard);
  $("refused").addEventListener("click", async () => {
    download(dryRefused ?? (await store.refused()), layout);
  });
  $("earlier-refused").addEventListener("click", async () => {
    download(await store.refused(), kept.layout);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("beforeunload", (event) => {
    if (run && !run.isDry) event.preventDefault();
  });

  async function open() {
    const key = `${form.dataset.user}/${form.dataset.channel}`;
    store = await window.pushsvcImportStore.storeOf(key);
    kept = await store.read();
    announce();
    show(form, true);
    if ($("file").files.length) choose(); // the browser has kept it over a reload
  }

  open();
})();
