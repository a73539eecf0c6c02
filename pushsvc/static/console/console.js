// Shared by the pages of the console. Pages also have their own file; no page has code in its HTML.

// <button data-copy="#id-of-an-element">: puts that element's text (or value) on the clipboard. Otherwise
// selects it.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  const isCopied = await copy(source.value ?? source.textContent);
  button.focus();
  if (!isCopied) getSelection().selectAllChildren(source);
  button.dataset.label ??= button.textContent; // a second click finds it copied
  button.textContent = isCopied ? translated("Copied") : translated("Selected: copy it now");
  setTimeout(() => {
    button.textContent = button.dataset.label;
  }, 1500);
});

// Without https, as on another machine's address, there is no navigator.clipboard.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = Object.assign(document.createElement("textarea"), {
      value: text,
      readOnly: true,
    });
    field.className = "sr-only";
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}

// [data-shown-once] is in the response to a form, which a reload would send again.
document.addEventListener("DOMContentLoaded", () => {
  if (document.querySelector("[data-shown-once]")) history.replaceState(null, "", location.href);
});

// <form data-confirm="…">, or a button in it: confirms before the form is sent, and before other scripts
// get the event.
document.addEventListener(
  "submit",
  (event) => {
    const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
    if (!question || window.confirm(question)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

// The second click of a double click sends no form, because it can come after the next page has loaded. Nor
// does it count in [data-once], where another button takes the place of the one that was clicked.
document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest("button, input");
    const isGuarded = (button?.form && button.type === "submit") || button?.closest("[data-once]");
    if (event.detail < 2 || !isGuarded) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

// Posts the form for a script. Without a response of the service, raises an error with words for the
// user. A new sign-in in another tab replaces the token of forms, so a refused token is renewed once.
window.pushsvcPost = async (address, form, options = {}) => {
  const signal = window.pushsvcLimit(options.signal);
  const post = () =>
    fetch(address, { ...options, signal, method: "POST", body: new FormData(form) });
  let answer;
  try {
    answer = await post();
    if (answer.status === 403 && (await renewed(form.elements.csrfmiddlewaretoken, signal)))
      answer = await post();
  } catch {
    if (signal.aborted) throw signal.reason;
    throw new Error(translated("The service could not be reached. The next change retries."));
  }
  if (answer.redirected) throw new Error(translated("Sign in again in another tab."));
  return answer;
};

// Ends a request that takes too long, with words for the user, and with the `other` signal.
window.pushsvcLimit = (other) => {
  const limit = new AbortController();
  other?.addEventListener("abort", () => limit.abort(other.reason));
  const words = translated(
    "The service did not respond. Your input is kept. The next change retries.",
  );
  setTimeout(() => limit.abort(new Error(words)), 30_000);
  return limit.signal;
};

async function renewed(field, signal) {
  const answer = await fetch(location.href, { signal });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const token = page.querySelector("[name=csrfmiddlewaretoken]")?.value;
  if (answer.redirected || !token) return false;
  for (const each of document.getElementsByName(field.name)) each.value = token;
  return true;
}

// Shows why a part of the page that the user requested could not be loaded: an error, no response, or
// a redirect to the sign-in page. Parts that refresh themselves stay as they are.
const tellFailure = ({ detail }, words) => {
  if (detail.requestConfig?.triggeringEvent) detail.target.textContent = words;
};
document.addEventListener("htmx:responseError", (event) => {
  const { status } = event.detail.xhr;
  tellFailure(event, translated("The service responded with %(status)s.", { status }));
});
document.addEventListener("htmx:sendError", (event) => {
  tellFailure(event, translated("The service cannot be reached."));
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, requestConfig } = event.detail;
  const asked = new URL(requestConfig.path, location.href).pathname;
  if (!xhr.responseURL || new URL(xhr.responseURL).pathname === asked) return;
  event.detail.shouldSwap = false;
  tellFailure(event, translated("Sign in again in another tab."));
});

// The theme's search field has only a placeholder and no label.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("#searchbar")?.setAttribute("aria-label", translated("Search"));
});

// The theme marks no landmarks, and the only name of its controls is the name of an icon in a font.
const ROLES = {
  "#header-inner": ["banner"],
  "#nav-sidebar": ["navigation", translated("Pages of the console")],
  "#main > .px-4:has(> div > ul) > div": ["status"],
  "#content": ["main"],
  ".lg\\:backdrop-blur-xs": ["navigation", translated("Pages of the list")],
};
const NAMES = {
  "#searchbar-submit": translated("Search"),
  "#nav-sidebar a.bg-primary-600": translated("Dashboard"),
};

const name = () => {
  for (const [selector, [role, label]] of Object.entries(ROLES)) {
    const part = document.querySelector(selector);
    part?.setAttribute("role", role);
    if (label) part?.setAttribute("aria-label", label);
  }
  for (const [selector, label] of Object.entries(NAMES)) {
    document.querySelector(selector)?.setAttribute("aria-label", label);
  }
  // For the script that makes it scrollable, which runs later.
  const sideBar = document.querySelector("#nav-sidebar-apps");
  sideBar?.setAttribute("data-simplebar-aria-label", translated("Scrolling part of the side bar"));
  document.querySelector("#content")?.setAttribute("tabindex", "-1"); // the target of the skip link
  for (const icon of document.querySelectorAll(".material-symbols-outlined")) {
    icon.ariaHidden = "true";
  }
};

document.addEventListener("DOMContentLoaded", name);
addEventListener("load", name); // for elements that the theme's scripts have added since
document.addEventListener("htmx:afterSwap", name);
