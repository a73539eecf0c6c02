// Previews the notification on devices of the chosen language. The service checks the
// addresses of pictures.
(() => {
  const WORDS = { icon: translated("Icon"), image: translated("Picture") };

  // `languages` and `personal`: of the same form (languages.js, personal.js).
  function previewOf(form, languages, personal) {
    const field = (name) => form.querySelector(`[name="${name}"]`);
    const written = (path) => field(path)?.value.trim() ?? "";
    const { image: checkAt } = form.dataset; // missing if the user may not check: then no picture is shown
    const checks = new Map(); // by address: the result of the service; undefined during the request
    const timers = {};
    const variant = form.querySelector("#preview-variant"); // missing without variants

    // The path of the chosen variant's value.
    function ofVariant(path) {
      return variant ? `variants.${variant.value}.${path}` : "";
    }

    // The value of the chosen variant, or the common one.
    function own(path) {
      return written(ofVariant(path)) || written(path);
    }

    // Whether a platform gets no such text. A variant has no switch for it, only a hidden value.
    function isNone(path) {
      if (field(`${ofVariant(path)}.none`)) return true;
      return Boolean(field(`${path}.none`)?.checked) && !written(ofVariant(path));
    }

    function host(address) {
      try {
        const { host: named, protocol } = new URL(address);
        return /^https?:/.test(protocol) ? named : location.host; // an app's URL has no site
      } catch {
        return location.host;
      }
    }

    // The text of the chosen variant in the chosen language, or the common text.
    function text(name) {
      return languages.text(name, own) || own(name);
    }

    // The text at a place of the preview: the platform's own text, if there is one.
    function shown(place, name) {
      const { platform } = place.closest("[data-platform]").dataset;
      const texts = personal.textsOn(platform);
      if (texts) return texts[name];
      const path = `${platform}.${name}`;
      return isNone(path) ? "" : own(path) || text(name);
    }

    function say(name, words) {
      for (const place of document.querySelectorAll(`[data-preview="${name}"]`))
        place.textContent = words(place);
    }

    function subtitle() {
      const place = document.querySelector("[data-preview=subtitle]");
      place.textContent = personal.textsOn("ios")?.subtitle ?? own("ios.subtitle");
      place.hidden = !place.textContent;
    }

    function buttons() {
      const place = document.querySelector("[data-preview=buttons]");
      const titles = personal.textsOn("web")?.buttons.slice(0, 2) ?? [0, 1].map(writtenButton);
      place.replaceChildren(
        ...titles
          .filter(Boolean)
          .map((title) => Object.assign(document.createElement("b"), { textContent: title })),
      );
      place.hidden = !place.childElementCount;
    }

    function writtenButton(index) {
      const translation = languages.text(`actions.${written(`actions.${index}.id`)}`, own);
      return translation || written(`actions.${index}.title`);
    }

    function refresh() {
      const site = (place) => host(shown(place, "url"));
      say("title", (place) => shown(place, "title") || site(place));
      say("body", (place) => shown(place, "body") || translated("Your text"));
      say("host", (place) =>
        location.host === site(place) ? translated("your site") : site(place),
      );
      subtitle();
      buttons();
      const [one, chosen] = [personal.chosen(), languages.chosen()];
      for (const place of document.querySelectorAll("#preview-language")) {
        const inLanguage = chosen
          ? translated("As shown on devices in %(language)s.", { language: chosen })
          : "";
        place.textContent = one
          ? translated("With the values of %(device)s.", { device: one })
          : inLanguage;
      }
      for (const name of Object.keys(WORDS)) soon(name);
      pictures();
    }

    // --- pictures --------------------------------------------------------------------------------

    function pictures() {
      for (const place of document.querySelectorAll("[data-preview-picture]")) {
        const names = place.dataset.previewPicture.split(" ");
        const address = checkAt && names.map((name) => shown(place, name)).find(Boolean);
        picture(place, address ?? "");
      }
      for (const name of Object.keys(WORDS)) told(name);
    }

    // Shows a picture only after its check; otherwise, why there is none.
    function picture(place, address) {
      const check = checks.get(address);
      const isLarge = place.classList.contains("ps-compose-picture");
      if (isLarge) place.hidden = !address;
      const state = [address, check?.found, check?.error].join(" ");
      if (place.dataset.shown === state) return;
      place.dataset.shown = state;
      place.replaceChildren();
      if (check?.found) place.append(drawn(address, check));
      else if (isLarge && check?.error) place.textContent = translated("No picture");
    }

    function drawn(address, check) {
      const image = new Image();
      image.alt = "";
      image.referrerPolicy = "no-referrer";
      image.addEventListener("error", () => {
        const error = translated("%(kind)s, but your browser cannot show it.", {
          kind: check.found,
        });
        checks.set(address, { error, isUnknown: false });
        pictures();
      });
      image.src = address;
      return image;
    }

    function told(name) {
      const place = form.querySelector(`[data-image="${name}"]`);
      const check = checks.get(written(name));
      const file = check?.found;
      const found = file
        ? translated("%(kind)s found: %(file)s.", { kind: WORDS[name], file })
        : "";
      const words = check?.error || found;
      place.dataset.tone = check?.error ? "warn" : "good";
      if (place.textContent !== words) place.textContent = words;
    }

    // The common address, and the addresses that the preview shows instead.
    function addresses(name) {
      const shownNow = [...document.querySelectorAll(".ps-compose-chrome, .ps-compose-android")];
      const found = [written(name), ...shownNow.map((place) => shown(place, name))];
      return new Set(found.filter(isUnknown));
    }

    // When they have not changed for a while; at once when the user leaves the field.
    function soon(name) {
      clearTimeout(timers[name]);
      const unknown = addresses(name);
      if (unknown.size) timers[name] = setTimeout(() => checkAll(unknown), 900);
    }

    function checkAll(found) {
      for (const address of found) check(address);
    }

    function isUnknown(address) {
      const isWhole = Boolean(address) && !address.includes("{{");
      return isWhole && Boolean(checkAt) && (checks.get(address)?.isUnknown ?? true);
    }

    async function check(address) {
      if (!isUnknown(address)) return;
      checks.set(address, { isUnknown: false });
      try {
        checks.set(address, { ...(await asked(address)), isUnknown: false });
      } catch {
        const error = translated("The address could not be checked. The next change retries.");
        checks.set(address, { error, isUnknown: true });
      }
      pictures();
    }

    async function asked(address) {
      const body = new FormData();
      for (const name of ["csrfmiddlewaretoken", "channel"]) body.set(name, field(name).value);
      body.set("address", address);
      const answer = await fetch(checkAt, { method: "POST", body, signal: window.pushsvcLimit() });
      if (!answer.ok) throw new Error(String(answer.status));
      return await answer.json();
    }

    form.addEventListener("change", ({ target }) => {
      const name = target.name?.split(".").at(-1);
      if (name in WORDS) checkAll(addresses(name));
    });

    // Shows the variant that is being written.
    form.addEventListener("focusin", ({ target }) => {
      const [, number] = /^variants\.(\d+)\./.exec(target.name) ?? [];
      if (!number || variant.value === number) return;
      variant.value = number;
      variant.dispatchEvent(new Event("input", { bubbles: true }));
    });

    // --- colours ---------------------------------------------------------------------------------

    const theme = form.querySelector("#preview-theme");
    const mockups = document.querySelector("#mockups");

    function inColours(isDark) {
      mockups.dataset.theme = isDark ? "dark" : "light";
      theme.setAttribute("aria-pressed", String(isDark));
    }

    theme.addEventListener("click", () => inColours(mockups.dataset.theme === "light"));
    // After the theme's scripts, which run later, have chosen the page's colours.
    document.addEventListener("DOMContentLoaded", () =>
      inColours(document.documentElement.classList.contains("dark")),
    );
    // Open next to the form; on a narrow screen it can be opened above the buttons.
    document.querySelector("#preview-fold").open = matchMedia("(min-width: 64rem)").matches;
    return { refresh };
  }

  window.pushsvcPreview = { previewOf };
})();
