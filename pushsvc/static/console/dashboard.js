// The parts of the dashboard that refresh themselves.
(() => {
  // Announces progress to screen readers, only when it changed, in a region that stays in the page.
  function announce() {
    const live = document.getElementById("dashboard-live");
    const status = document.getElementById("dashboard-status");
    if (live && status && status.textContent !== live.dataset.status)
      status.textContent = live.dataset.status;
  }

  document.addEventListener("htmx:afterSwap", announce);
  // A signed-out user gets the sign-in page, not that page inside this one.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (
      new URL(event.detail.xhr.responseURL).pathname !==
      new URL(event.detail.requestConfig.path, location.href).pathname
    ) {
      event.detail.shouldSwap = false;
      location.reload();
    }
  });
})();
