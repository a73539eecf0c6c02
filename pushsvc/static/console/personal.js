// Placeholders: inserted by a click, and the preview for one of some subscribers.
(() => {
  // `changed()` is called when the service has returned the texts of devices.
  function personalOf(form, changed) {
    const choice = form.querySelector("[name=personalize]");
    const subscribers = form.querySelector("#preview-as");
    let latest = form.querySelector("#body");
    let texts = {};

    function isText(field) {
      const name = field.name?.split(".").at(-1);
      const isButton = /\.actions\./.test(field.name);
      return isButton || ["title", "body", "url", "subtitle"].includes(name);
    }

    function insert(placeholder) {
      const at = latest.selectionEnd;
      latest.focus();
      latest.setRangeText(placeholder, at, at, "end");
      latest.dispatchEvent(new Event("input", { bubbles: true }));
    }

    // The texts that a device of the platform shows for the chosen subscriber; undefined if unknown.
    function textsOn(platform) {
      return choice.checked && subscribers.value ? texts[platform] : undefined;
    }

    function chosen() {
      return textsOn("web") ? subscribers.selectedOptions[0].textContent : "";
    }

    function refresh() {
      for (const place of form.querySelectorAll("[data-personal]")) place.hidden = !choice.checked;
      warn(choice.checked ? [] : literal());
    }

    // What looks like a placeholder in the texts, without those of a newsfeed's entries.
    function literal() {
      const texts = [...form.elements].filter(isText).map((field) => field.value);
      const found = [...new Set(texts.flatMap((text) => text.match(/\{\{.*?\}\}/gs) ?? []))];
      return "entries" in form.dataset ? found.filter((each) => !isOfEntry(each)) : found;
    }

    function isOfEntry(placeholder) {
      return /^\{\{\s*entry\b/.test(placeholder);
    }

    function warn(found) {
      const place = form.querySelector("#literal");
      const braces = found.join(", ");
      place.hidden = !found.length;
      const shown = place.querySelector("strong");
      if (shown.textContent !== braces) shown.textContent = braces;
      place.querySelector("span").textContent = counted(
        "is sent as written, because the notification is not personalized.",
        "are sent as written, because the notification is not personalized.",
        found.length,
      );
    }

    // `found`: the result of the last check; undefined if the form is not personal, or has errors.
    function show(found) {
      texts = found?.texts ?? {};
      if (found) offer(found);
      const told = found?.lacking ?? [];
      form.querySelector("#lacking").replaceChildren(...told.map(note));
      changed();
    }

    // Keeps the choice, even an empty one, and one that was made during the request.
    function offer({ subscribers: some, chosen: first }) {
      const isChosen = subscribers.options.length > 1;
      const kept = subscribers.value;
      const [nobody] = subscribers.options;
      subscribers.replaceChildren(nobody, ...some.map(({ id, words }) => new Option(words, id)));
      subscribers.value = isChosen ? kept : first;
      if (subscribers.selectedIndex < 0) subscribers.value = first;
    }

    function note(words) {
      const place = document.createElement("p");
      place.className = "ps-note";
      place.dataset.tone = "warn";
      place.textContent = words;
      return place;
    }

    form.querySelector("#personalize").addEventListener("click", () => {
      choice.checked = true;
      choice.focus();
      choice.dispatchEvent(new Event("input", { bubbles: true }));
    });
    form.addEventListener("focusin", ({ target }) => {
      if (isText(target)) latest = target;
    });
    form.addEventListener("click", ({ target }) => {
      const { placeholder } = target.closest("button")?.dataset ?? {};
      if (placeholder) insert(placeholder);
    });
    return { refresh, show, textsOn, chosen };
  }

  window.pushsvcPersonal = { personalOf };
})();
