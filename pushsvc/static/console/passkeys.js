// Shows that a passkey was not used: the person cancelled, or the browser has none for this site.
"use strict";

document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  const note = document.querySelector("#passkey-failed");
  if (note) note.hidden = false;
});

document.addEventListener("DOMContentLoaded", () => {
  if (window.PublicKeyCredential) return;
  for (const button of document.querySelectorAll("[data-passkey]")) button.hidden = true;
});
