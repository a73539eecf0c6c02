// Drags a scheduled notification to another day. The page that this opens shows both times and asks.
(() => {
  let moved = null;

  function dayOf(event) {
    const cell = event.target.closest("[data-day]");
    return moved && cell && !cell.contains(moved) ? cell : null;
  }

  function mark(cell) {
    for (const each of document.querySelectorAll("[data-drop]")) {
      if (each !== cell) delete each.dataset.drop;
    }
    if (cell) cell.dataset.drop = "";
  }

  document.addEventListener("dragstart", (event) => {
    moved = event.target.closest?.("[data-move]") ?? null;
    if (!moved) return;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", moved.textContent.trim());
  });

  document.addEventListener("dragover", (event) => {
    const cell = dayOf(event);
    if (moved) mark(cell);
    if (cell) event.preventDefault();
  });

  document.addEventListener("drop", (event) => {
    const cell = dayOf(event);
    if (!cell) return;
    event.preventDefault();
    location.href = `${moved.dataset.move}?day=${cell.dataset.day}`;
  });

  document.addEventListener("dragend", () => {
    moved = null;
    mark(null);
  });
})();
