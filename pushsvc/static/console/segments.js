// The page of a segment: its rule as JSON in the form's hidden field, checked and counted during
// editing.
(() => {
  const { builderOf, listedErrors, known } = window.pushsvcRules;
  const form = document.getElementById("segment");
  const { rule: stored, ...channel } = known();
  const builder = builderOf(document.getElementById("rule-builder"), channel, changed);
  let timer;
  let latest = 0;

  function changed() {
    write();
    clearTimeout(timer);
    timer = setTimeout(preview, 300);
  }

  function write() {
    document.getElementById("segment-rule").value = JSON.stringify(builder.rule());
  }

  async function preview() {
    const turn = ++latest;
    const answer = await fetch(form.dataset.preview, {
      method: "POST",
      body: new FormData(form),
      headers: { "HX-Request": "true" },
    }).catch(() => null);
    if (turn !== latest) return;
    const place = document.getElementById("segment-preview");
    if (!answer)
      place.textContent = translated("The service could not be reached. The next change retries.");
    else if (answer.redirected) place.textContent = translated("Sign in again in another tab.");
    else if (answer.ok) place.innerHTML = await answer.text();
    else place.textContent = translated("The preview could not be loaded. Reload the page.");
    if (turn === latest) builder.showErrors(listedErrors(place));
  }

  form.addEventListener("submit", write);
  builder.show(stored);
  if (stored) {
    builder.showErrors(listedErrors(form));
    changed();
  }
})();
