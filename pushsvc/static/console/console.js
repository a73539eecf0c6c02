// What several pages of the console share. Pages add their own file; none has code in its HTML.

// <button data-copy="#id-of-an-element">: puts that element's text (or value) on the clipboard.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  await navigator.clipboard.writeText(source.value ?? source.textContent);
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
});

// Something [data-shown-once] came as the answer to a form: a reload would send that form again.
document.addEventListener("DOMContentLoaded", () => {
  if (document.querySelector("[data-shown-once]")) history.replaceState(null, "", location.href);
});

// <form data-confirm="…">, or a button of it: asks before it is sent, and before any other script
// learns of it.
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

// The theme's search field has nothing but a placeholder.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("#searchbar")?.setAttribute("aria-label", "Search");
});

// The theme marks no landmarks, and gives controls no name but the word by which a font knows an icon.
const ROLES = {
  "#header-inner": ["banner"],
  "#nav-sidebar": ["navigation", "Pages of the console"],
  "#main > .px-4:has(> div > ul) > div": ["status"],
  "#content": ["main"],
  ".lg\\:backdrop-blur-xs": ["navigation", "Pages of the list"],
};
const NAMES = {
  "#searchbar-submit": "Search",
  "#nav-sidebar a.bg-primary-600": "Dashboard",
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
  // For the script that makes it scroll, which runs after this.
  const sideBar = document.querySelector("#nav-sidebar-apps");
  sideBar?.setAttribute("data-simplebar-aria-label", "Scrolling part of the side bar");
  document.querySelector("#content")?.setAttribute("tabindex", "-1"); // where the skip link leads
  for (const icon of document.querySelectorAll(".material-symbols-outlined")) {
    icon.ariaHidden = "true";
  }
};

document.addEventListener("DOMContentLoaded", name);
addEventListener("load", name); // what the theme's own scripts have made meanwhile
document.addEventListener("htmx:afterSwap", name);
