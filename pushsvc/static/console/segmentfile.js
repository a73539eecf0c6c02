// The page that makes a segment of the people in a file. Their devices get a tag, in parts, and then
// the segment of the tag is created. A part can be sent again, so a run goes on where it stopped.
(() => {
  const { Unreadable, csvLine, encodingOf, fieldsOf, headOf, partOf, startOf } =
    window.pushsvcImportFile;
  const PART = { most: 2000, bytes: 900 * 1024 };
  const BODY = 48 * 1024; // bytes of ids in a request, which has room for 64 KiB
  const TRIES = 5;
  const LISTED = 50;
  const MISSING = translated("Choose a file.");

  // Errors by the field that they concern.
  class Refused extends Error {
    constructor(errors) {
      super();
      this.errors = errors;
    }
  }

  const $ = (name) => document.getElementById(`ids${name ? `-${name}` : ""}`);
  const form = $("");
  const number = (count) => window.pushsvcNumber(count);
  const most = Number(form.dataset.most);

  let file = null;
  let layout = null; // of the file: encoding, begin, separator, columns, first line
  let turn = 0; // of the chosen file, because answers about an earlier one are stale
  let unreadable = MISSING; // why there is no layout
  let looking = null; // until the chosen file is looked at
  let run = null; // what has been sent, until something on the form changes
  let isTagOwn = false; // whether the user has typed a tag

  const show = (element, isShown) => {
    element.hidden = !isShown;
  };

  // ---- errors at their fields --------------------------------------------------------------------

  function tell(field, words) {
    const isOfForm = !["name", "tag", "file"].includes(field);
    const element = $(isOfForm ? "error" : `${field}-error`);
    element.textContent = words;
    show(element, Boolean(words));
    if (!isOfForm) $(field).setAttribute("aria-invalid", String(Boolean(words)));
  }

  function tellAll(errors) {
    for (const field of ["name", "tag", "file", ""]) tell(field, errors[field] ?? "");
    const first = ["name", "tag", "file"].find((field) => errors[field]);
    if (first) $(first).focus();
  }

  function problem(error) {
    if (error instanceof Refused) return tellAll(error.errors);
    if (error instanceof Unreadable) return tellAll({ file: error.message });
    console.error(error);
    tellAll({ "": translated("That failed. Reload the page.") });
  }

  // ---- the service -------------------------------------------------------------------------------

  async function ask(url, body, type) {
    const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
    if (type) headers["Content-Type"] = type;
    for (let tried = 1; ; tried++) {
      const answer = await fetch(url, { method: "POST", body, headers }).catch(() => null);
      if (answer?.ok && !answer.redirected) return answer.json();
      if (answer && (answer.redirected || [403, 404].includes(answer.status)))
        throw new Refused({
          "": translated("You are signed out, or may no longer do this. Reload the page."),
        });
      if (answer?.headers.get("Content-Type")?.includes("json")) {
        const { errors, detail } = await answer.json();
        throw errors ? new Refused(errors) : new Unreadable(detail);
      }
      if (tried === TRIES)
        throw new Refused({
          "": translated("The service cannot be reached. Press the button to go on."),
        });
      const wait = Number(answer?.headers.get("Retry-After")) || 2 ** (tried - 1);
      await new Promise((resolve) => setTimeout(resolve, 1000 * wait));
    }
  }

  function send(step) {
    const body = new URLSearchParams({ step, name: $("name").value, tag: $("tag").value });
    if ($("extend").checked) body.set("extend", "on");
    return ask(location.pathname, body);
  }

  // ---- the file ----------------------------------------------------------------------------------

  async function choose() {
    const current = ++turn;
    run = null;
    file = $("file").files[0] ?? null;
    layout = null;
    unreadable = MISSING;
    show($("how"), false);
    tell("file", "");
    if (!file) return;
    try {
      if (!file.size) throw new Unreadable(translated("The file is empty."));
      const reading = await encodingOf(file);
      const head = await headOf(file, reading);
      const found = await ask(`${form.dataset.look}?format=tokens_csv`, head, "text/csv");
      if (current !== turn) return;
      layout = { ...reading, ...found };
      listColumns();
    } catch (error) {
      if (current !== turn) return;
      problem(error);
      unreadable = $("file-error").textContent || MISSING;
    }
  }

  function listColumns() {
    $("column").replaceChildren(
      ...layout.columns.map(
        ({ name }, place) =>
          new Option(name || translated("Column %(place)s", { place: place + 1 }), place),
      ),
    );
    const place = layout.columns.findIndex(({ means }) => means === "external_id");
    $("column").value = Math.max(place, 0);
    showColumn();
    show($("how"), true);
  }

  // A name has no digits; most ids have some.
  function showColumn() {
    const { name, means, samples } = layout.columns[Number($("column").value)];
    $("header").checked = means === "external_id" || !/\d/.test(name);
    $("samples").textContent = translated("First values: %(values)s", {
      values: samples.join(" · ") || "–",
    });
  }

  // The ids of the column, each once.
  async function idsOf() {
    const found = new Set();
    const column = Number($("column").value);
    const line = layout.first_line - ($("header").checked ? 0 : 1);
    let place = await startOf(file, layout, line);
    for (;;) {
      const part = await partOf(file, layout, place, PART);
      if (!part) break;
      for (const each of part.lines) {
        const id = fieldsOf(part.textOf(each), layout.separator)[column]?.trim();
        if (id) found.add(id);
      }
      place = part.next;
    }
    if (!found.size) throw new Unreadable(translated("The column has no ids."));
    return [...found];
  }

  // The end of the part of the ids that fits into one request.
  function endOf(ids, begin) {
    const encoder = new TextEncoder();
    let bytes = 0;
    let end = begin;
    while (end < ids.length && end - begin < most) {
      bytes += encoder.encode(JSON.stringify(ids[end])).length + 1;
      if (bytes > BODY && end > begin) break;
      end++;
    }
    return end;
  }

  // ---- the run -----------------------------------------------------------------------------------

  async function start() {
    tellAll({});
    await looking;
    if (!run) {
      if (!layout) {
        const refusal = await send("check").then(
          () => new Refused({}),
          (error) => error,
        );
        if (!(refusal instanceof Refused)) throw refusal;
        throw new Refused({ ...refusal.errors, file: unreadable });
      }
      await send("check");
      run = { ids: await idsOf(), place: 0, devices: 0, full: 0, unknown: [] };
    }
    while (run.place < run.ids.length) {
      showProgress();
      const end = endOf(run.ids, run.place);
      const body = { tag: $("tag").value, external_ids: run.ids.slice(run.place, end) };
      const found = await ask(form.dataset.part, JSON.stringify(body), "application/json");
      run.place = end;
      run.devices += found.devices;
      run.full += found.full;
      run.unknown = run.unknown.concat(found.unknown);
      showResults();
    }
    showProgress();
    if (!run.devices && !$("extend").checked)
      throw new Unreadable(
        translated("None of these people has a device, so there is no segment."),
      );
    const { url } = await send("create");
    $("open").href = url;
    show($("ended"), true);
    show(form, false);
    $("open").focus();
  }

  function showProgress() {
    const percent = Math.floor((100 * run.place) / run.ids.length);
    const bar = $("progress").firstElementChild;
    bar.setAttribute("aria-valuenow", percent);
    bar.firstElementChild.style.width = `${percent}%`;
    show($("progress"), true);
    $("state").textContent = translated("%(place)s of %(total)s ids", {
      place: number(run.place),
      total: number(run.ids.length),
    });
  }

  function showResults() {
    const { place, devices, full, unknown } = run;
    show($("results"), true);
    $("known").textContent = number(place - unknown.length);
    $("devices").textContent = number(devices);
    $("unknown").textContent = number(unknown.length);
    show($("full"), full > 0);
    $("full").textContent = counted(
      "%(count)s device did not get the tag, because it has 100.",
      "%(count)s devices did not get the tag, because they have 100.",
      full,
    );
    show($("missing"), unknown.length > 0);
    $("missing-list").replaceChildren(
      ...unknown.slice(0, LISTED).map((id) => {
        const item = document.createElement("li");
        item.className = "ps-mono ps-breaks";
        item.textContent = id;
        return item;
      }),
    );
    const rest = unknown.length - LISTED;
    $("missing-more").textContent =
      rest > 0 ? translated("and %(count)s more", { count: number(rest) }) : "";
  }

  function download() {
    const lines = ["\ufeff", csvLine(["external_id"], ",")];
    for (const id of run.unknown) lines.push(csvLine([id], ","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "text/csv" }));
    link.download = "unknown.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  async function press(event) {
    event.preventDefault();
    $("start").disabled = true;
    $("fields").disabled = true;
    const error = await start().catch((raised) => raised);
    $("fields").disabled = false;
    $("start").disabled = false;
    if (error) problem(error);
  }

  // "Spring sale" suggests the tag `list-spring-sale`.
  function suggest() {
    if (isTagOwn) return;
    const plain = $("name").value.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
    const words = plain.match(/[a-z0-9]+/g) ?? [];
    $("tag").value = words.length ? `list-${words.join("-")}`.slice(0, $("tag").maxLength) : "";
  }

  $("file").hasChangeListener = true; // for the theme, which expects its own elements around it
  $("file").addEventListener("change", () => {
    looking = choose();
  });
  $("column").addEventListener("change", showColumn);
  $("name").addEventListener("input", suggest);
  $("tag").addEventListener("input", () => {
    isTagOwn = true;
    run = null;
  });
  $("how").addEventListener("change", () => {
    run = null;
  });
  $("download").addEventListener("click", download);
  form.addEventListener("submit", press);
  show(form, true);
})();
