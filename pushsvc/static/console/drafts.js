// Saves the form as a draft, and keeps unsaved text over a reload.
(() => {
  const NOT_KEPT = new Set([
    "csrfmiddlewaretoken",
    "channel",
    "draft",
    "version",
    "time_zone",
    "preview_as",
    "preview_variant",
    "test_device",
    "test_known_as",
  ]);

  // The key under which a tab stores the text of this address. A form and its review share it.
  function placeOf(form) {
    return `pushsvc.draft ${form.dataset.user} ${location.pathname}${location.search}`;
  }

  // `fill(fields)` fills the form in; `shown()` updates the page after that.
  function draftsOf(form, { fill, shown }) {
    const $ = (selector) => form.querySelector(selector);
    const page = (selector) => document.querySelector(selector);
    let saveTimer = 0;
    let saving = Promise.resolve();
    let isSaving = false;

    function saveSoon() {
      keep();
      tell(translated("Saving…"));
      clearTimeout(saveTimer);
      saveTimer = setTimeout(save, 800);
    }

    // One after the other, because the first save creates the draft that the others change.
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
        // Newer text is saved soon, with the draft's new address and version.
        if (isNewer) keep();
        else tell(translated("Saved"), "good");
      } catch (error) {
        tell(translated("Not saved: %(reason)s", { reason: error.message }), "bad");
      }
      isSaving = false;
    }

    async function posted() {
      const answer = await window.pushsvcPost(form.dataset.save, form);
      const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
      const said = isJson ? await answer.json() : {};
      if (!answer.ok)
        throw new Error(
          said.detail ??
            translated("The service responded with %(status)s.", { status: answer.status }),
        );
      return said;
    }

    function tell(words, tone = "") {
      const place = $("#save-state");
      place.dataset.tone = tone;
      if (place.textContent !== words) place.textContent = words;
    }

    // The text that a reload could not restore, because the draft was changed meanwhile.
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

    // The page shows another user's text. Saving would overwrite it.
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
    // The form posts the version that it shows, so it waits for a running save, which changes the version.
    form.addEventListener("submit", (event) => {
      clearTimeout(saveTimer);
      keep();
      if (!isSaving || event.submitter?.id === "delete-draft") return;
      event.preventDefault();
      saving.then(() => form.requestSubmit(event.submitter));
    });
    return { restore, save, saveSoon, isKept: (name) => !NOT_KEPT.has(name) };
  }

  // Deletes the text of a sent notification from the tab; other texts stay.
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
