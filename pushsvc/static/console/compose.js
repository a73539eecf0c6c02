// The pages on which a notification is written, reviewed and edited.
(() => {
  const form = document.querySelector("#compose");
  const confirm_ = document.querySelector("#confirm");
  if (confirm_) {
    once(confirm_);
    confirm_.addEventListener("submit", ({ submitter }) => {
      if (["send", "ask"].includes(submitter?.value)) window.pushsvcDrafts.noteSent(confirm_);
    });
  }
  if (document.querySelector("#composed")) window.pushsvcDrafts.forget();
  if (!form) return;

  const $ = (selector) => form.querySelector(selector);
  const touched = new Set();
  const content = window.pushsvcContent.contentOf(form);
  const conditions = ruleBuilder($("#rule"));
  const drafts = form.dataset.save ? window.pushsvcDrafts.draftsOf(form, { fill, shown }) : null;

  // --- fills the form in -----------------------------------------------------------------------------

  function fill(kept) {
    const values = grouped(kept);
    for (const field of form.elements) {
      if (
        !field.name ||
        !drafts.isKept(field.name) ||
        field.type === "hidden" ||
        field.type === "submit"
      )
        continue;
      if (field.name.startsWith("data_")) continue;
      const given = (values.get(field.name) ?? []).map(([, value]) => value);
      if (field.type === "checkbox" || field.type === "radio")
        field.checked = given.includes(field.value) && !field.disabled;
      else if (given.length) choose(field, given[0]);
    }
    const names = values.get("data_name") ?? [];
    const texts = values.get("data_value") ?? [];
    content.setRows(names.map(([, name], index) => [name, texts[index]?.[1] ?? ""]));
    conditions?.follow();
  }

  // Without its option, a deleted segment would become all subscribers.
  function choose(field, value) {
    field.value = value;
    if (field.type === "select-one" && field.value !== value)
      field.add(new Option(translated("No longer exists"), value, true, true));
  }

  function grouped(pairs) {
    const groups = new Map();
    for (const pair of pairs) groups.set(pair[0], [...(groups.get(pair[0]) ?? []), pair]);
    return groups;
  }

  // --- updates after changes -------------------------------------------------------------------------

  function schedule() {
    const choice = $("[name=when][value=later]");
    if (!choice) return;
    $("#schedule").hidden = !choice.checked;
    $("#local_time").required = choice.checked;
    $("#of-zone").hidden = $("[name=is_zoned]").checked;
  }

  function quietHours() {
    const choice = $("#quiet");
    if (choice) $("#own-quiet").hidden = choice.value !== "own";
  }

  function audience() {
    const chosen = $("#audience")?.value;
    if (chosen === undefined) return;
    for (const place of form.querySelectorAll("[data-audience]"))
      place.hidden = !place.dataset.audience.split(" ").includes(chosen);
  }

  // Shows the builder instead of the field, which contains the rule as JSON. Keeps the field if its
  // text is no rule.
  function ruleBuilder(rule) {
    if (!rule) return null;
    const { builderOf, known, listedErrors } = window.pushsvcRules;
    const place = $("#rule-builder");
    const builder = builderOf(place, known(), () => {
      write();
      changed("rule");
    });
    const write = () => {
      rule.value = JSON.stringify(builder.rule());
    };
    const follow = () => builder.show(parsed(rule.value));
    try {
      follow();
    } catch {
      return null;
    }
    builder.showErrors(listedErrors(form));
    $("#rule-as-text").hidden = true;
    place.hidden = false;
    return { follow, write, showErrors: builder.showErrors };
  }

  function parsed(text) {
    try {
      return JSON.parse(text);
    } catch {
      return null;
    }
  }

  // A platform's pause is shown only if the notification targets the platform.
  function pauses() {
    for (const note of form.querySelectorAll("[data-pause]")) {
      note.hidden = !$(`[name=platforms][value="${note.dataset.pause}"]`).checked;
    }
  }

  // The zone in which a send is planned: the channel's, or if it has none the reader's.
  function planningZone() {
    return form.dataset.zone || (window.pushsvcTimes?.timeZone() ?? "UTC");
  }

  // Converts a time of the form from UTC to that zone. Undefined for the second of two equal times.
  function local(utc) {
    const at = new Date(`${utc}Z`).getTime();
    const say = (moment) => window.pushsvcTimes.onClock(moment, planningZone());
    const isSecond = [30, 60].some((ago) => say(at - ago * 60_000) === say(at));
    return isSecond ? undefined : say(at);
  }

  function localise() {
    const ofReader = $("[name=is_zoned]")?.checked ? [] : [$("#local_time")];
    const times = [...ofReader, $("#expires_local")].filter((field) => field?.value);
    const found = times.map((field) => local(field.value));
    if (found.includes(undefined)) return false;
    times.forEach((field, index) => {
      field.value = found[index];
    });
    return true;
  }

  function chooseZone() {
    if (!$("#time_zone")) return;
    const isKept = "zoneKept" in form.dataset || ("inUtc" in form.dataset && !localise());
    if (!isKept) $("#time_zone").value = planningZone();
    for (const place of form.querySelectorAll("[data-zone]"))
      place.textContent = $("#time_zone").value;
  }

  // --- checks by the service ------------------------------------------------------------------------

  let asking = null;
  let timer = 0;

  function ask() {
    if (!form.dataset.check) return;
    clearTimeout(timer);
    timer = setTimeout(check, 350);
  }

  async function check() {
    asking?.abort();
    asking = new AbortController();
    let found;
    try {
      const answer = await window.pushsvcPost(form.dataset.check, form, {
        signal: asking.signal,
        headers: { Accept: "application/json" },
      });
      if (!answer.ok)
        throw new Error(
          translated("The service responded with %(status)s.", { status: answer.status }),
        );
      found = await answer.json();
    } catch (error) {
      if (error.name !== "AbortError") told([text("p", error.message, "ps-error")]);
      return;
    }
    show(found);
  }

  function show(found) {
    const { errors, rule_errors, personal, languages, platforms, moment, timed } = found;
    const { unknown, missed } = found;
    for (const place of form.querySelectorAll("[data-error]")) {
      const name = place.dataset.error;
      if (!touched.has(name)) continue;
      place.replaceChildren(...(errors[name] ?? []).map((error) => text("p", error)));
    }
    conditions?.showErrors(rule_errors);
    content.showPersonal(personal);
    content.showShares(languages);
    told(
      platforms.length
        ? [...reach(platforms, errors), ...named(unknown ?? [], missed)]
        : [text("p", uncounted(errors), "ps-quiet")],
    );
    showMoment(moment, timed);
    showPace(found);
  }

  // A template has no rate.
  function showPace({ unreached, pace, capped }) {
    if ($("#capped")) $("#capped").textContent = capped || "";
    const place = $("#pace");
    if (!place) return;
    place.textContent = unreached || pace || "";
    place.classList.toggle("ps-error", Boolean(unreached));
  }

  function uncounted(errors) {
    return errors.target_platforms
      ? translated("Choose a platform to count its subscribers.")
      : translated("Choose an audience to count its subscribers.");
  }

  function reach(platforms, errors) {
    const total = platforms.reduce((sum, each) => sum + each.audience, 0);
    const isEstimated = platforms.some((each) => each.estimated);
    const size = counted("%(count)s subscriber", "%(count)s subscribers", total);
    const words = isEstimated ? translated("about %(number)s", { number: size }) : size;
    const heavy = [
      ...(errors.target_platforms ?? []),
      ...platforms.flatMap((each) => each.too_large),
    ].map((error) => text("p", error, "ps-error"));
    return [
      text("p", words, "ps-compose-total"),
      ...platforms.map(platformLine),
      ...heavy,
      text(
        "p",
        isEstimated
          ? translated("Estimated from a sample of the segment.")
          : translated("Exact, as of now."),
        "ps-help",
      ),
    ];
  }

  // The entered ids that receive nothing.
  function named(unknown, missed) {
    const more = translated("%(count)s more", { count: unknown.length - 20 });
    const shown = [...unknown.slice(0, 20), ...(unknown.length > 20 ? [more] : [])].join(", ");
    const words = translated("Unknown and ignored: %(ids)s", { ids: shown });
    return [unknown.length ? words : "", missed]
      .filter(Boolean)
      .map((each) => text("p", each, "ps-error"));
  }

  function platformLine(each) {
    const line = text("div", "", "ps-compose-platform");
    const badge = text("span", each.name, "ps-badge");
    badge.dataset.tone = each.platform;
    const number = window.pushsvcNumber(each.audience);
    const audience = each.estimated ? translated("about %(number)s", { number }) : number;
    const [bytes, most] = [each.payload_bytes, each.most_bytes].map(
      (n) => n && window.pushsvcNumber(n),
    );
    const size = bytes ? translated("%(bytes)s of %(most)s bytes", { bytes, most }) : "";
    line.append(badge, text("span", audience, "ps-strong"), text("span", size, "ps-quiet"));
    return line;
  }

  function showMoment(moment, timed) {
    const place = $("#moment");
    if (!place) return;
    $("#quiet-words").textContent = $("[name=is_zoned]").checked ? "" : timed;
    place.classList.toggle("ps-error", Boolean(moment?.is_past));
    if (!moment) {
      place.textContent = $("[name=is_zoned]").checked ? timed : "";
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
    const say_ = (timeZone) =>
      new Intl.DateTimeFormat(window.pushsvcLocale, { ...how, timeZone }).format(at);
    const own = $("#time_zone").value;
    const readers = window.pushsvcTimes?.timeZone() ?? "UTC";
    const other =
      readers === own
        ? ""
        : translated(" = %(moment)s in %(zone)s", { moment: say_(readers), zone: readers });
    const past = translated(". This is in the past, so it would be sent at once.");
    place.textContent = `${say_(own)}${other}${moment.is_past ? past : ""}`;
  }

  function told(parts) {
    document.querySelector("#check")?.replaceChildren(...parts);
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
    is_zoned: "local_at",
    quiet: "quiet_hours",
    quiet_from: "quiet_hours",
    quiet_to: "quiet_hours",
    expires_local: "expires_at",
    tag: "rule",
    test_share: "test",
    test_minutes: "test",
    test_metric: "test",
    test_inconclusive: "test",
  };

  function changed(name) {
    touched.add(FIELD_OF[name] ?? name);
    if (name === "local_time") touched.add("local_at");
    if (name === "audience") conditions?.write();
    if (name === "ids") touched.add("external_ids").add("subscription_ids");
    if (["platforms", "segment_id", "audience"].includes(name)) touched.add("target_platforms");
    shown();
    drafts?.saveSoon();
  }

  function shown() {
    refresh();
    ask();
  }

  function refresh() {
    content.refresh();
    schedule();
    quietHours();
    audience();
    pauses();
  }

  form.addEventListener("input", ({ target }) => {
    if (target.name === "test_known_as") $("[name=test_device][value='']").checked = true;
    if (target.closest("#rule-builder")) return;
    const name = target.name ?? "data_name"; // a row of data was removed
    if (name?.startsWith("preview_")) return shown();
    if (name && name !== "channel" && !["test_device", "test_known_as"].includes(name))
      changed(name);
  });
  // For another channel, the page is loaded again. The draft keeps the text; if it could not be
  // saved, the page stays at its channel.
  const channel = $("select#channel");
  const current = channel?.value;
  channel?.addEventListener("change", async () => {
    await drafts.save();
    const isSaved = $("#save-state").dataset.tone !== "bad";
    if (isSaved) location.search = new URLSearchParams({ draft: $("[name=draft]").value });
    else channel.value = current;
  });
  // Test devices that are added in another tab are offered when the user returns, and the newly
  // added one is chosen.
  let isAddingDevice = false;
  form.addEventListener("click", ({ target }) => {
    if (target.closest("[data-adds-device]")) isAddingDevice = true;
  });
  const offeredDevices = () => [...$("#test-devices").querySelectorAll("[name=test_device]")];
  const offerDevices = async () => {
    if (!isAddingDevice || document.hidden) return;
    const before = offeredDevices();
    const known = new Set(before.map(({ value }) => value));
    const chosen = before.find(({ checked }) => checked)?.value;
    const typed = $("#test_known_as")?.value;
    await window.htmx.ajax("get", $("#test-devices").dataset.url, {
      source: "#test-devices",
      target: "#test-devices",
      select: "#test-devices",
      swap: "outerHTML",
    });
    const offered = offeredDevices();
    const wanted =
      offered.find(({ value }) => !known.has(value)) ??
      offered.find(({ value }) => value === chosen);
    if (wanted) wanted.checked = true;
    if (typed) $("#test_known_as").value = typed;
  };
  window.addEventListener("focus", offerDevices); // from another window
  document.addEventListener("visibilitychange", offerDevices); // from another tab
  once(form);

  chooseZone();
  content.begin();
  drafts?.restore();
  refresh();
  if (form.dataset.check) check();

  // --- ignores a second click on a button that sends ------------------------------------------

  function once(sent) {
    let isSent = false;
    sent.addEventListener("submit", (event) => {
      if (event.defaultPrevented) return;
      if (isSent) event.preventDefault();
      isSent = true;
    });
    const again = () => {
      isSent = false;
    };
    window.addEventListener("pageshow", again);
    window.navigation?.addEventListener("navigateerror", again); // stopped, as by Esc
  }
})();
