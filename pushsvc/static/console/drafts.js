// Saves what one composes as a draft, and keeps over a reload what is not saved yet.
(() => {
  const NOT_KEPT = new Set([
    "csrfmiddlewaretoken",
    "channel",
    "draft",
    "version",
    "time_zone",
    "preview_as",
    "test_device",
    "test_known_as",
  ]);

  // Where a tab keeps the text of this address. A form and its review have the same address.
  function placeOf(form) {
    return `pushsvc.draft ${form.dataset.user} ${location.pathname}${location.search}`;
  }

  // `fill(fields)` fills the form in; `shown()` follows what was filled in.
  function draftsOf(form, { fill, shown }) {
    const $ = (selector) => form.querySelector(selector);
    const page = (selector) => document.querySelector(selector);
    let saveTimer = 0;
    let saving = Promise.resolve();
    let isSaving = false;

    function saveSoon() {
      keep();
      tell("Saving…");
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
      const place = placeOf(form);
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
        // What is newer is saved soon, with the draft's new address and version.
        if (isNewer) keep();
        else tell("Saved", "good");
      } catch (error) {
        tell(`Not saved: ${error.message}`, "bad");
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

    function tell(words, tone = "") {
      const place = $("#save-state");
      place.dataset.tone = tone;
      if (place.textContent !== words) place.textContent = words;
    }

    // What a reload could not restore, because the draft was changed meanwhile.
    function aside() {
      return `${placeOf(form)} aside`;
    }

    function fields() {
      return [...new FormData(form)].filter(([name]) => !NOT_KEPT.has(name));
    }

    function keep() {
      const kept = { version: $("[name=version]").value, fields: fields() };
      sessionStorage.setItem(placeOf(form), JSON.stringify(kept));
    }

    function keptIn(place) {
      return JSON.parse(sessionStorage.getItem(place) ?? "null");
    }

    function restore() {
      if ("posted" in form.dataset) return;
      const kept = keptIn(placeOf(form));
      if (kept?.fields && JSON.stringify(kept.fields) !== JSON.stringify(fields())) {
        if (kept.version === $("[name=version]").value) refill(kept);
        else putAside();
      }
      page("#set-aside").hidden = !keptIn(aside());
    }

    function refill(kept) {
      fill(kept.fields);
      page("#restored").hidden = false;
      saveSoon();
    }

    // The page shows what somebody else wrote. Saving would overwrite it.
    function putAside() {
      sessionStorage.setItem(aside(), sessionStorage.getItem(placeOf(form)));
      sessionStorage.removeItem(placeOf(form));
    }

    function dropAside() {
      sessionStorage.removeItem(aside());
      page("#set-aside").hidden = true;
    }

    page("#discard").addEventListener("click", () => {
      sessionStorage.removeItem(placeOf(form));
      location.reload();
    });
    page("#use-aside").addEventListener("click", () => {
      fill(keptIn(aside()).fields);
      dropAside();
      shown();
      saveSoon();
    });
    page("#drop-aside").addEventListener("click", dropAside);
    // The form posts the version that it shows, so it waits for a save that makes another.
    form.addEventListener("submit", (event) => {
      clearTimeout(saveTimer);
      keep();
      if (!isSaving || event.submitter?.id === "delete-draft") return;
      event.preventDefault();
      saving.then(() => form.requestSubmit(event.submitter));
    });
    return { restore, save, saveSoon, isKept: (name) => !NOT_KEPT.has(name) };
  }

  // A sent notification leaves no text of its own in the tab; the texts of others stay.
  const SENT = "pushsvc.sent";

  function forget() {
    const place = sessionStorage.getItem(SENT);
    for (const key of [SENT, place, `${place} aside`]) sessionStorage.removeItem(key);
  }

  window.pushsvcDrafts = {
    draftsOf,
    forget,
    noteSent: (review) => sessionStorage.setItem(SENT, placeOf(review)),
  };
})();
