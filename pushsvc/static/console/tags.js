// Offers a channel's tags while the user types. The page has the first tags; if there are more,
// the service finds those that begin with the typed text.
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

  document.addEventListener("input", ({ target }) => {
    const { list } = target;
    if (!list?.dataset.find) return;
    clearTimeout(timer);
    timer = setTimeout(() => offer(list, target.value.trim()), 250);
  });
})();
