// Images of a channel: a file that is too large is refused before it is sent, and the forms that
// write a notification choose an image for a field.
(() => {
  const tooLarge = (input) => {
    const [file] = input.files;
    const most = Number(input.dataset.most);
    return file && file.size > most
      ? translated("The file has more than %(most)s MB.", { most: most >> 20 })
      : "";
  };

  for (const input of document.querySelectorAll("input[type=file][data-most]")) {
    const refuse = (event) => {
      const error = tooLarge(input);
      show(input, error);
      if (!error) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    input.addEventListener("change", (event) => {
      event.stopImmediatePropagation(); // the theme's listener expects another form
      show(input, tooLarge(input));
    });
    input.form.addEventListener("submit", refuse, true);
  }

  function show(input, error) {
    const field = input.closest(".ps-field");
    let place = field.querySelector(".ps-error");
    if (!place) {
      place = document.createElement("p");
      place.className = "ps-error";
      place.setAttribute("role", "alert");
      field.append(place);
    }
    place.textContent = error;
  }

  const chooser = document.querySelector("#images");
  const form = document.querySelector("#compose");
  if (!chooser || !form) return;
  const shown = chooser.querySelector("#images-shown");
  const upload = chooser.querySelector("#image-upload");
  const file = chooser.querySelector("#image-file");
  let field = null;

  form.addEventListener("click", ({ target }) => {
    const name = target.closest("[data-choose]")?.dataset.choose;
    if (!name) return;
    field = form.querySelector(`[name="${name}"]`);
    upload.querySelector("[name=use]").value = name;
  });
  chooser.addEventListener("toggle", ({ newState }) => {
    if (newState === "open") window.htmx.trigger(shown, "refresh");
  });
  chooser.addEventListener("click", ({ target }) => {
    const address = target.closest("[data-address]")?.dataset.address;
    if (address) choose(address);
  });
  shown.addEventListener("htmx:afterSwap", () => {
    const added = shown.querySelector("[data-new]")?.dataset.address;
    if (!added) return;
    upload.reset();
    choose(added);
  });
  // Said at the field, and not instead of the images.
  upload.addEventListener("htmx:responseError", (event) => {
    event.stopPropagation();
    const words = {
      413: translated("The file is too large."),
      429: translated("Too many uploads. Wait a minute."),
    };
    show(file, words[event.detail.xhr.status] ?? translated("The upload failed. Try again."));
  });
  upload.addEventListener("htmx:sendError", (event) => {
    event.stopPropagation();
    show(file, translated("The service cannot be reached."));
  });

  function choose(address) {
    field.value = address;
    chooser.hidePopover();
    field.focus();
    for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
  }
})();
