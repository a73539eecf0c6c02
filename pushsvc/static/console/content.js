// The parts of a form for the content: texts with their counts and emoji, rows of data,
// languages and the preview.
(() => {
  // Listens to the form for events that only this part needs. `refresh()` updates after changes.
  function contentOf(form) {
    const languages = window.pushsvcLanguages.languagesOf(form, refresh);
    const personal = window.pushsvcPersonal.personalOf(form, refresh);
    const preview = window.pushsvcPreview.previewOf(form, languages, personal);
    window.pushsvcEmoji.pickerOf(form);

    function refresh() {
      for (const field of form.querySelectorAll("[data-most]")) count(field);
      languages.refresh();
      personal.refresh();
      preview.refresh();
    }

    function count(field) {
      const length = [...field.value].length; // code points, as the API counts
      const most = Number(field.dataset.most);
      const shown = document.querySelector(`#count-${field.name}`);
      shown.textContent = translated("%(length)s of %(most)s characters", { length, most });
      shown.classList.toggle("ps-error", length > most);
      field.setAttribute("aria-invalid", String(length > most));
    }

    function addRow(name = "", value = "") {
      const row = document.querySelector("#data-row").content.firstElementChild.cloneNode(true);
      row.querySelector("[name=data_name]").value = name;
      row.querySelector("[name=data_value]").value = value;
      document.querySelector("#data-rows").append(row);
      return row;
    }

    function setRows(rows) {
      document.querySelector("#data-rows").replaceChildren();
      for (const [name, value] of rows) addRow(name, value);
      if (rows.length) form.querySelector("#options").open = true;
    }

    // Sends an input event, so that the form is saved and checked.
    function removeRow(button) {
      const rows = document.querySelector("#data-rows");
      button.parentElement.remove();
      rows.dispatchEvent(new Event("input", { bubbles: true }));
    }

    // Before the check, completes an address as people write it, such as shop.example/sale.
    function completeAddress({ target }) {
      const typed = target.type === "url" ? target.value.trim() : "";
      if (!/^[\w-]+(\.[\w-]+)+(?=[/?#]|$)/.test(typed)) return;
      target.value = `https://${typed}`;
      target.dispatchEvent(new Event("input", { bubbles: true }));
    }

    // A button's id in reports, from its label. The service does the same (extras.py).
    function nameButton({ target }) {
      const [, number] = /^actions\.(\d)\.title$/.exec(target.name) ?? [];
      const id = number && form.querySelector(`[name="actions.${number}.id"]`);
      if (!id || id.value) return;
      const plain = target.value
        .normalize("NFKD")
        .replace(/[^\w\s-]/g, "")
        .toLowerCase()
        .trim();
      const name = plain
        .replace(/[-\s]+/g, "-")
        .slice(0, 32)
        .replace(/^[-_]+|[-_]+$/g, "");
      id.value = target.value.trim() ? name || `button-${Number(number) + 1}` : "";
      id.dispatchEvent(new Event("input", { bubbles: true }));
    }

    form.addEventListener("change", completeAddress, true);
    form.addEventListener("change", nameButton);
    form.querySelector("#add-data").addEventListener("click", () => {
      addRow().querySelector("input").focus();
    });
    form.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-remove]");
      if (button) removeRow(button);
    });
    return {
      begin: languages.begin,
      refresh,
      setRows,
      showPersonal: personal.show,
      showShares: languages.showShares,
    };
  }

  window.pushsvcContent = { contentOf };
})();
