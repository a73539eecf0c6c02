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
    const headers = { "HX-Request": "true" };
    const posted = window.pushsvcPost(form.dataset.preview, form, { headers });
    const answer = await posted.catch((error) => error);
    if (turn !== latest) return;
    const place = document.getElementById("segment-preview");
    if (answer.ok) place.innerHTML = await answer.text();
    else
      place.textContent =
        answer.message ?? translated("The preview could not be loaded. Reload the page.");
    if (turn === latest) builder.showErrors(listedErrors(place));
  }

  form.addEventListener("submit", write);
  builder.show(stored);
  if (stored) {
    builder.showErrors(listedErrors(form));
    changed();
  }
})();
