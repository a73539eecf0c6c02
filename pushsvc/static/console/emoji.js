// Inserts emoji into texts.
(() => {
  // The page's picker, for the fields of a form whose buttons [data-emoji] open it.
  function pickerOf(form) {
    const picker = form.querySelector("#emoji");
    let emojiFor = null;

    // After the selection, because a field that was reached with the Tab key is selected as a whole.
    function insert(emoji) {
      const field = form.querySelector(`[name="${emojiFor}"]`);
      const at = field.selectionEnd;
      picker.hidePopover();
      field.focus();
      field.setRangeText(emoji, at, at, "end");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }

    // The Tab key stops once; the arrow keys, Home and End move inside.
    function move(event) {
      const all = [...picker.querySelectorAll("[data-insert]")];
      const at = all.indexOf(document.activeElement);
      if (at < 0) return;
      const to = neighbour(event.key, all, at);
      if (to === undefined) return;
      event.preventDefault();
      all[at].tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    }

    function neighbour(key, all, at) {
      const { offsetLeft, offsetTop } = all[at];
      const inColumn = (each) => each.offsetLeft === offsetLeft;
      switch (key) {
        case "ArrowLeft":
          return all[at - 1];
        case "ArrowRight":
          return all[at + 1];
        case "ArrowUp":
          return all.findLast((each) => inColumn(each) && each.offsetTop < offsetTop);
        case "ArrowDown":
          return all.find((each) => inColumn(each) && each.offsetTop > offsetTop);
        case "Home":
          return all[0];
        case "End":
          return all.at(-1);
      }
    }

    picker.addEventListener("keydown", move);
    picker.addEventListener("toggle", ({ newState }) => {
      if (newState === "open") picker.querySelector("[data-insert][tabindex='0']").focus();
    });
    form.addEventListener("click", ({ target }) => {
      const { emoji, insert: chosen } = target.closest("button")?.dataset ?? {};
      if (emoji) emojiFor = emoji;
      if (chosen) insert(chosen);
    });
  }

  window.pushsvcEmoji = { pickerOf };
})();
