// In the form of an automation, shows the fields that belong to the chosen event.
(() => {
  const event = document.querySelector("#event");
  if (!event) return;

  function show() {
    for (const part of document.querySelectorAll("[data-event-for]"))
      part.hidden = !part.dataset.eventFor.split(" ").includes(event.value);
  }

  event.addEventListener("change", show);
  show();
})();
