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

// <form data-confirm="…">: asks before it is sent.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// The theme's search field has nothing but a placeholder.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("#searchbar")?.setAttribute("aria-label", "Search");
});
