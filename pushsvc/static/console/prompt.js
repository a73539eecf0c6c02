// The preview on the page of a channel's prompt: prompt.mjs with the options of the form beside it.

const form = /** @type {HTMLFormElement} */ (document.getElementById("prompt-form"));
const preview = /** @type {HTMLElement} */ (document.getElementById("prompt-preview"));
const problem = /** @type {HTMLElement} */ (document.getElementById("prompt-problem"));
const TEXTS = ["title", "body", "allow", "later"];
const COLORS = ["accent", "background", "text"];
const CATEGORIES = [
  { key: "news", name: "News", description: "Example" },
  { key: "offers", name: "Offers", description: "Example", chosen: false },
];

// Subscribes nobody.
const push = Object.assign(new EventTarget(), {
  permission: "denied", // so that it appears only when the preview shows it
  isSubscribed: async () => false,
  subscribe: async () => {},
  setPreferences: async () => [],
});

/**
 * The values of these fields that are not empty. A form that may not be changed is disabled, so
 * FormData has none of them.
 *
 * @param {string[]} names
 */
const filled = (names) => {
  const fields = names.map((name) => /** @type {HTMLInputElement} */ (form.elements[name]));
  return Object.fromEntries(
    fields.map(({ name, value }) => [name, value.trim()]).filter(([, value]) => value),
  );
};

const { addPrompt } = await import(/** @type {string} */ (preview.dataset.module));
/** @type {any} */
let shown;

const show = () => {
  const { kind, scheme, lang } = filled(["kind", "scheme", "lang"]);
  shown?.remove();
  problem.textContent = "";
  try {
    shown = addPrompt(push, {
      channel: "preview",
      kind,
      scheme,
      lang,
      texts: { [lang]: filled(TEXTS) },
      colors: { ...filled(COLORS), accentText: filled(["accent_text"]).accent_text },
      categories: CATEGORIES,
      target: preview,
      count: false,
    });
    shown.show();
  } catch (error) {
    problem.textContent = error.message;
  }
};

form.addEventListener("input", show);
show();
