// The texts in several languages: a tab for each, which shows how many texts are missing.
(() => {
  const KEYS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

  // `changed()` is called when another language is chosen.
  function languagesOf(form, changed) {
    const list = form.querySelector("#language-tabs");
    const tabs = [...(list?.children ?? [])];
    const tags = tabs.map((tab) => tab.dataset.language).filter(Boolean);

    function written(path) {
      return form.querySelector(`[name="${path}"]`)?.value.trim() ?? "";
    }

    // Looks a language up as the service does (RFC 4647): de-AT, then de.
    function chain(tag) {
      const parts = tag.toLowerCase().split("-");
      const order = parts.map((_, cut) => parts.slice(0, parts.length - cut).join("-"));
      return order.flatMap((each) => tags.find((known) => known.toLowerCase() === each) ?? []);
    }

    function chosen() {
      return tabs.find((tab) => tab.ariaSelected === "true")?.dataset.language ?? "";
    }

    // The text that devices of the language show instead of the common text; "" for the common text.
    // `read`: the value at a path.
    function text(name, read = written, tag = chosen()) {
      if (!tag) return "";
      const texts = chain(tag).map((each) => read(`translations.${each}.${name}`));
      return texts.find(Boolean) ?? "";
    }

    // The common text for a name such as title or actions.buy.
    function common(name) {
      const [kind, id] = name.split(".");
      if (kind !== "actions") return written(name);
      const place = [0, 1, 2].find((each) => written(`actions.${each}.id`) === id);
      return place === undefined ? "" : written(`actions.${place}.title`);
    }

    function panelOf(tab) {
      return form.querySelector(tab.getAttribute("href"));
    }

    function refresh() {
      for (const tab of tabs) {
        const marks = [...panelOf(tab).querySelectorAll("[data-missing]")];
        for (const mark of marks) {
          const name = mark.dataset.missing;
          mark.hidden = !common(name) || Boolean(text(name, written, tab.dataset.language));
        }
        const missing = marks.filter((mark) => !mark.hidden).length;
        for (const place of tab.querySelectorAll("[data-count]")) {
          place.hidden = !missing;
          place.textContent = translated("%(missing)s missing", { missing });
        }
      }
    }

    function choose(chosenTab) {
      for (const tab of tabs) {
        const isChosen = tab === chosenTab;
        tab.ariaSelected = String(isChosen);
        tab.tabIndex = isChosen ? 0 : -1;
        panelOf(tab).hidden = !isChosen;
      }
      changed();
    }

    function move(event) {
      const at = tabs.indexOf(document.activeElement);
      const step = event.key === " " ? 0 : KEYS[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const to = Number.isFinite(step) ? (at + step + tabs.length) % tabs.length : step;
      const tab = tabs.at(to === Infinity ? -1 : Math.max(to, 0));
      tab.focus();
      choose(tab);
    }

    // Without scripts, the tabs are links to the sections (WAI-ARIA Authoring Practices, Tabs).
    function begin() {
      list.role = "tablist";
      list.ariaLabel = translated("Languages");
      list.hidden = false;
      for (const tab of tabs) {
        const panel = panelOf(tab);
        tab.role = "tab";
        tab.setAttribute("aria-controls", panel.id);
        panel.role = "tabpanel";
        panel.setAttribute("aria-labelledby", tab.id);
        for (const heading of panel.querySelectorAll("h3")) heading.hidden = true;
        if (!panel.querySelector("input, textarea")) panel.tabIndex = 0;
        tab.addEventListener("click", (event) => {
          event.preventDefault();
          choose(tab);
        });
      }
      list.addEventListener("keydown", move);
      choose(tabs.find((tab) => "opened" in tab.dataset) ?? tabs[0]);
    }

    // `shares`: by language; of the audience's devices that get its texts.
    function showShares(shares = {}) {
      for (const tab of tabs) {
        const share = shares[tab.dataset.language ?? ""];
        if (share) tab.querySelector("[data-share]").textContent = share;
      }
    }

    return { begin: list ? begin : changed, chosen, text, refresh, showShares };
  }

  window.pushsvcLanguages = { languagesOf };
})();
