// Offers a channel's tags while one is typed. The page has the first of them; of a channel with more,
// the service finds those that begin with what is typed.
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
      // What was offered stays, and any tag can be typed.
    }
  }

  document.addEventListener("input", ({ target }) => {
    const { list } = target;
    if (!list?.dataset.find) return;
    clearTimeout(timer);
    timer = setTimeout(() => offer(list, target.value.trim()), 250);
  });
})();
