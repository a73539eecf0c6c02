// Offers a channel's tags while the user types, and the values that its devices have. The page has
// the first tags; if there are more, the service finds those that begin with the typed text.
(() => {
  let timer = 0;
  let asking = null;

  async function offer(list, prefix) {
    asking?.abort();
    asking = new AbortController();
    try {
      const query = new URLSearchParams({ prefix });
      const answer = await fetch(`${list.dataset.find}?${query}`, { signal: asking.signal });
      const { tags } = await answer.json();
      list.replaceChildren(...tags.map((tag) => new Option("", tag)));
    } catch {
      // Keeps the offered tags; any tag can be typed.
    }
  }

  const OFFERED = ["attribute", "tag", "language", "timezone", "country", "app_version"];
  const lists = new Map(); // of values, by the address of the request

  // The most frequent values with the number of their devices, when a field for one gets the focus.
  async function suggest(own, address) {
    try {
      const { values, is_estimated } = await (await fetch(address)).json();
      for (const { value, devices } of values) {
        const option = [...own.options].find((each) => each.value === value);
        const size = counted("%(count)s device", "%(count)s devices", devices);
        const label = is_estimated ? translated("about %(number)s", { number: size }) : size;
        if (option) option.label = label;
        else if (own.id !== "rule-tags") own.append(new Option(label, value));
      }
    } catch {
      // Any value can be typed.
    }
  }

  function listFor(address) {
    if (!lists.has(address)) {
      const own = document.createElement("datalist");
      own.id = `rule-values-${lists.size}`;
      lists.set(address, own.id);
      document.body.append(own);
    }
    return lists.get(address);
  }

  document.addEventListener("focusin", ({ target }) => {
    const node = target.closest(".ps-rule");
    const place = target.closest("[data-values]");
    const { part } = target.dataset;
    if (!node || !place || target.tagName !== "INPUT" || !["value", "add", "tag"].includes(part))
      return;
    const { subject } = node.dataset;
    const name = node.querySelector("[data-part=attribute]")?.value.trim() ?? "";
    if (!OFFERED.includes(subject) || (subject === "attribute" && !name)) return;
    const address = `${place.dataset.values}?${new URLSearchParams({ subject, name })}`;
    const isNew = !lists.has(address);
    if (subject === "tag") lists.set(address, target.list?.id);
    else target.setAttribute("list", listFor(address));
    if (isNew && target.list) suggest(target.list, address);
  });

  document.addEventListener("input", ({ target }) => {
    const { list } = target;
    if (!list?.dataset.find) return;
    clearTimeout(timer);
    timer = setTimeout(() => offer(list, target.value.trim()), 250);
  });
})();
