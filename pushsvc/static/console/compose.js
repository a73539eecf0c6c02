// The pages on which a notification is written and reviewed.
(() => {
  const form = document.querySelector("#compose");
  const confirm_ = document.querySelector("#confirm");
  if (confirm_) once(confirm_);
  if (!form) return;

  const $ = (selector) => form.querySelector(selector);
  const touched = new Set();
  const NOT_KEPT = new Set([
    "csrfmiddlewaretoken",
    "channel",
    "draft",
    "version",
    "time_zone",
    "test_device",
    "test_known_as",
  ]);

  // --- saves the draft as one types ------------------------------------------------------------------

  let saveTimer = 0;
  let saving = Promise.resolve();
  let isSaving = false;

  function saveSoon() {
    keepDraft();
    clearTimeout(saveTimer);
    saveTimer = setTimeout(save, 800);
  }

  // One after another, because the first one makes the draft that the others change.
  function save() {
    clearTimeout(saveTimer);
    saving = saving.then(post);
    return saving;
  }

  async function post() {
    const place = draftKey();
    const kept = sessionStorage.getItem(place);
    isSaving = true;
    try {
      const { draft, version } = await posted();
      $("[name=draft]").value = draft;
      $("[name=version]").value = version;
      $("#delete-draft").hidden = false;
      history.replaceState(null, "", `?draft=${draft}`);
      const isNewer = sessionStorage.getItem(place) !== kept;
      sessionStorage.removeItem(place);
      if (isNewer) keepDraft(); // with its new address and version
      saved("Saved");
    } catch (error) {
      saved(`Not saved: ${error.message}`, false);
    }
    isSaving = false;
  }

  async function posted() {
    let answer;
    try {
      answer = await fetch(form.dataset.save, { method: "POST", body: new FormData(form) });
    } catch {
      throw new Error("The service could not be reached. The next change tries again.");
    }
    if (answer.redirected) throw new Error("Sign in again, in another tab.");
    const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
    const said = isJson ? await answer.json() : {};
    if (!answer.ok) throw new Error(said.detail ?? `The service answered ${answer.status}.`);
    return said;
  }

  function saved(words, isGood = true) {
    const place = $("#save-state");
    place.dataset.tone = isGood ? "good" : "bad";
    if (place.textContent !== words) place.textContent = words;
  }

  // --- keeps over a reload what is not saved yet -----------------------------------------------------

  function draftKey() {
    return `pushsvc.draft ${form.dataset.user} ${location.pathname}${location.search}`;
  }

  // What a reload could not restore, because the draft was changed meanwhile.
  function asideKey() {
    return `${draftKey()} aside`;
  }

  function fields() {
    return [...new FormData(form)].filter(([name]) => !NOT_KEPT.has(name));
  }

  function keepDraft() {
    const kept = { version: $("[name=version]").value, fields: fields() };
    sessionStorage.setItem(draftKey(), JSON.stringify(kept));
  }

  function keptIn(place) {
    return JSON.parse(sessionStorage.getItem(place) ?? "null");
  }

  function restoreDraft() {
    if ("posted" in form.dataset) return;
    const kept = keptIn(draftKey());
    if (kept?.fields && JSON.stringify(kept.fields) !== JSON.stringify(fields())) {
      if (kept.version === $("[name=version]").value) restore(kept);
      else putAside();
    }
    document.querySelector("#set-aside").hidden = !keptIn(asideKey());
  }

  function restore(kept) {
    fill(kept.fields);
    document.querySelector("#restored").hidden = false;
    saveSoon();
  }

  // The page shows what somebody else wrote. Saving would overwrite it.
  function putAside() {
    sessionStorage.setItem(asideKey(), sessionStorage.getItem(draftKey()));
    sessionStorage.removeItem(draftKey());
  }

  function dropAside() {
    sessionStorage.removeItem(asideKey());
    document.querySelector("#set-aside").hidden = true;
  }

  function fill(kept) {
    const values = grouped(kept);
    for (const field of form.elements) {
      if (
        !field.name ||
        NOT_KEPT.has(field.name) ||
        field.type === "hidden" ||
        field.type === "submit"
      )
        continue;
      if (field.name.startsWith("data_")) continue;
      const given = (values.get(field.name) ?? []).map(([, value]) => value);
      if (field.type === "checkbox" || field.type === "radio")
        field.checked = given.includes(field.value) && !field.disabled;
      else if (given.length) field.value = given[0];
    }
    document.querySelector("#data-rows").replaceChildren();
    const names = values.get("data_name") ?? [];
    const texts = values.get("data_value") ?? [];
    for (const [index, [, name]] of names.entries()) addRow(name, texts[index]?.[1] ?? "");
    if (names.length) form.querySelector("details").open = true;
  }

  function grouped(pairs) {
    const groups = new Map();
    for (const pair of pairs) groups.set(pair[0], [...(groups.get(pair[0]) ?? []), pair]);
    return groups;
  }

  // --- rows of data ------------------------------------------------------------------------------

  function addRow(name = "", value = "") {
    const row = document.querySelector("#data-row").content.firstElementChild.cloneNode(true);
    row.querySelector("[name=data_name]").value = name;
    row.querySelector("[name=data_value]").value = value;
    document.querySelector("#data-rows").append(row);
    return row;
  }

  // --- preview and counters ---------------------------------------------------------------------

  function count(field) {
    const length = [...field.value].length; // code points, as the API counts
    const most = Number(field.dataset.most);
    const shown = document.querySelector(`#count-${field.name}`);
    shown.textContent = `${length} of ${most} characters`;
    shown.classList.toggle("ps-fault", length > most);
    field.setAttribute("aria-invalid", String(length > most));
  }

  function host(address) {
    try {
      return new URL(address).host;
    } catch {
      return location.host;
    }
  }

  function picture(name, address) {
    for (const place of document.querySelectorAll(`[data-preview="${name}"]`)) {
      const usable = /^https:\/\/./.test(address);
      if (place.classList.contains("ps-compose-picture")) place.hidden = !usable;
      if (place.dataset.address === address) continue;
      place.dataset.address = address;
      place.replaceChildren();
      if (!usable) continue;
      const image = new Image();
      image.alt = "";
      image.referrerPolicy = "no-referrer";
      image.addEventListener("error", () => {
        place.textContent = name === "icon" ? "" : `Picture of ${host(address)}`;
      });
      image.src = address;
      place.append(image);
    }
  }

  function preview() {
    const title = $("[name=title]").value;
    const site = host($("[name=url]").value);
    say("title", title || site);
    say("body", $("[name=body]").value || "Your text");
    say("host", location.host === site ? "your site" : site);
    picture("icon", $("[name=icon]").value);
    picture("image", $("[name=image]").value);
    picture("image-or-icon", $("[name=image]").value || $("[name=icon]").value);
  }

  function previewTheme(isDark) {
    document.querySelector("#mockups").dataset.theme = isDark ? "dark" : "light";
    $("#preview-theme").setAttribute("aria-pressed", String(isDark));
  }

  function say(name, text) {
    for (const place of document.querySelectorAll(`[data-preview="${name}"]`))
      place.textContent = text;
  }

  function schedule() {
    const later = $("[name=when][value=later]").checked;
    $("#schedule").hidden = !later;
    $("#local_time").required = later;
  }

  // A platform's pause matters only to a notification that targets the platform.
  function pauses() {
    for (const note of form.querySelectorAll("[data-pause]")) {
      note.hidden = !$(`[name=platforms][value="${note.dataset.pause}"]`).checked;
    }
  }

  // --- checks by the service ------------------------------------------------------------------------

  let asking = null;
  let timer = 0;

  function ask() {
    clearTimeout(timer);
    timer = setTimeout(check, 350);
  }

  async function check() {
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(form.dataset.check, {
        method: "POST",
        body: new FormData(form),
        signal: asking.signal,
        headers: { Accept: "application/json" },
      });
      if (!answer.ok) throw new Error(String(answer.status));
      show(await answer.json());
    } catch (error) {
      if (error.name !== "AbortError")
        told([
          text("p", "The service could not be reached. The next change tries again.", "ps-fault"),
        ]);
    }
  }

  function show({ faults, platforms, moment }) {
    for (const place of form.querySelectorAll("[data-fault]")) {
      const name = place.dataset.fault;
      if (!touched.has(name)) continue;
      place.replaceChildren(...(faults[name] ?? []).map((fault) => text("p", fault)));
    }
    told(
      platforms.length
        ? reach(platforms, faults)
        : [text("p", "Choose a platform to count its subscribers.", "ps-quiet")],
    );
    showMoment(moment);
  }

  function reach(platforms, faults) {
    const total = platforms.reduce((sum, each) => sum + each.audience, 0);
    const about = platforms.some((each) => each.estimated) ? "about " : "";
    const parts = [
      text(
        "p",
        `${about}${total.toLocaleString("en")} subscriber${total === 1 ? "" : "s"}`,
        "ps-compose-total",
      ),
    ];
    for (const each of platforms) {
      const line = text("div", "", "ps-compose-platform");
      const badge = text("span", each.name, "ps-badge");
      badge.dataset.tone = each.platform;
      const size =
        each.payload_bytes === null
          ? ""
          : `${each.payload_bytes.toLocaleString("en")} of ${each.most_bytes.toLocaleString("en")} bytes`;
      line.append(
        badge,
        text(
          "span",
          `${each.estimated ? "about " : ""}${each.audience.toLocaleString("en")}`,
          "ps-strong",
        ),
        text("span", size, "ps-quiet"),
      );
      parts.push(line);
    }
    const heavy = (faults.target_platforms ?? []).map((fault) => text("p", fault, "ps-fault"));
    parts.push(
      ...heavy,
      text("p", about ? "Estimated from a sample of the segment." : "Exact, as of now.", "ps-help"),
    );
    return parts;
  }

  function showMoment(moment) {
    const place = $("#moment");
    place.classList.toggle("ps-fault", Boolean(moment?.is_past));
    if (!moment) {
      place.textContent = "";
      return;
    }
    const at = new Date(moment.utc);
    const how = {
      weekday: "short",
      day: "numeric",
      month: "short",
      year: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    };
    const say_ = (timeZone) => new Intl.DateTimeFormat("en-GB", { ...how, timeZone }).format(at);
    place.textContent = `${say_($("#time_zone").value)} = ${say_("UTC")} UTC${moment.is_past ? ". This is in the past, so it would be sent at once." : ""}`;
  }

  function told(parts) {
    document.querySelector("#check").replaceChildren(...parts);
  }

  function text(tag, content, className = "") {
    const element = document.createElement(tag);
    element.textContent = content;
    if (className) element.className = className;
    return element;
  }

  // --- wiring ------------------------------------------------------------------------------------

  const FIELD_OF = {
    platforms: "target_platforms",
    data_name: "data",
    data_value: "data",
    ttl_number: "ttl",
    ttl_unit: "ttl",
    local_time: "scheduled_at",
    when: "scheduled_at",
  };

  function changed(name) {
    touched.add(FIELD_OF[name] ?? name);
    if (name === "platforms" || name === "segment_id") touched.add("target_platforms");
    refresh();
    saveSoon();
    ask();
  }

  function refresh() {
    for (const field of form.querySelectorAll("[data-most]")) count(field);
    preview();
    schedule();
    pauses();
  }

  // Before the check sees it: an address as people write it, shop.example/sale.
  form.addEventListener("change", ({ target }) => {
    if (target.type !== "url" || !/^[\w-]+(\.[\w-]+)+(?=[/?#]|$)/.test(target.value.trim())) return;
    target.value = `https://${target.value.trim()}`;
    changed(target.name);
  });
  form.addEventListener("input", (event) => {
    if (event.target.name === "test_known_as") $("[name=test_device][value='']").checked = true;
    if (
      event.target.name &&
      event.target.name !== "channel" &&
      !event.target.name.startsWith("test_")
    )
      changed(event.target.name);
  });
  // The page is made anew for another channel. What was written goes there with the draft.
  $("#channel").addEventListener("change", async (event) => {
    await save();
    const draft = $("[name=draft]").value;
    const isSaved = $("#save-state").dataset.tone === "good";
    location.search = new URLSearchParams(isSaved ? { draft } : { channel: event.target.value });
  });
  $("#add-data").addEventListener("click", () => addRow().querySelector("input").focus());
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-remove]");
    if (!button) return;
    button.parentElement.remove();
    changed("data_name");
  });
  document.querySelector("#discard").addEventListener("click", () => {
    sessionStorage.removeItem(draftKey());
    location.reload();
  });
  document.querySelector("#use-aside").addEventListener("click", () => {
    fill(keptIn(asideKey()).fields);
    dropAside();
    refresh();
    saveSoon();
    ask();
  });
  document.querySelector("#drop-aside").addEventListener("click", dropAside);
  $("#preview-theme").addEventListener("click", () => {
    const mockups = document.querySelector("#mockups");
    previewTheme(mockups.dataset.theme === "light");
  });
  // The form posts the version that it shows, so it waits for a save that makes another.
  form.addEventListener("submit", (event) => {
    clearTimeout(saveTimer);
    keepDraft();
    if (!isSaving || event.submitter?.hasAttribute("formaction")) return;
    event.preventDefault();
    saving.then(() => form.requestSubmit(event.submitter));
  });
  once(form);

  const zone = window.pushsvcTimes?.timeZone() ?? "UTC";
  if (!("zoneKept" in form.dataset)) $("#time_zone").value = zone;
  $("#zone-name").textContent = $("#time_zone").value;
  previewTheme(document.documentElement.classList.contains("dark"));
  restoreDraft();
  refresh();
  check();

  // --- ignores a second click on a button that sends ------------------------------------------

  function once(sent) {
    let isSent = false;
    sent.addEventListener("submit", (event) => {
      if (event.defaultPrevented) return;
      if (isSent) event.preventDefault();
      isSent = true;
    });
    window.addEventListener("pageshow", () => {
      isSent = false;
    });
  }
})();
