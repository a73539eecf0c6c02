// The parts of the dashboard that refresh themselves.
(() => {
  // Announces changed progress to screen readers, in a region that is not replaced.
  function announce() {
    const live = document.getElementById("dashboard-live");
    const status = document.getElementById("dashboard-status");
    if (live && status && status.textContent !== live.dataset.status)
      status.textContent = live.dataset.status;
  }

  document.addEventListener("htmx:afterSwap", announce);
  // Sends a signed-out user to the sign-in page, instead of showing it inside this page.
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
