// The builder of a rule: groups and conditions on the page (docs/segments.md).
(() => {
  const { conditionEditor, element, select, button, isIdle } = window.pushsvcConditions;
  const MODES = {
    all: translated("all of these"),
    any: translated("any of these"),
    none: translated("none of these"),
    notall: translated("not all of these"),
  };
  const EMPTY = { attribute: "", operator: "eq", value: "" };

  function opened(rule) {
    if (rule.all) return ["all", rule.all];
    if (rule.any) return ["any", rule.any];
    if (rule.not?.any) return ["none", rule.not.any];
    if (rule.not?.all) return ["notall", rule.not.all];
    if (isIdle(rule)) return ["all", [rule]];
    return rule.not ? ["none", [rule.not]] : ["all", [rule]];
  }

  // Fills `place`, an empty element of the page, and calls `changed()` after each change. `known` is
  // the content of #rule-known: the channel's attributes, and the platforms.
  function builderOf(place, known, changed) {
    const conditions = conditionEditor(known, { changed });
    let root;

    // --- from a rule to the page -----------------------------------------------------------------

    function group(rule) {
      const [mode, rules] = opened(rule);
      const rows = element("div", { className: "ps-rules" }, ...rules.map(built));
      const node = element(
        "div",
        { className: "ps-group", role: "group", ariaLabel: translated("Group of conditions") },
        element(
          "div",
          { className: "ps-group-head" },
          element("span", {}, translated("Matches")),
          select(translated("How the conditions are combined"), Object.entries(MODES), mode),
          button(translated("Remove group"), "✕", () => remove(node), "ps-remove"),
        ),
        rows,
        element(
          "div",
          { className: "ps-actions" },
          button("", translated("Add condition"), () => add(rows, conditions.condition(EMPTY))),
          button("", translated("Add group"), () => add(rows, group({ any: [EMPTY] }))),
        ),
      );
      return node;
    }

    const built = (rule) =>
      (rule.all || rule.any || rule.not) && !isIdle(rule)
        ? group(rule)
        : conditions.condition(rule);

    function add(rows, node) {
      rows.append(node);
      node.querySelector("input, select")?.focus();
      changed();
    }

    function remove(node) {
      node.remove();
      changed();
    }

    // A stored or sent rule shows its errors at once. A new rule begins with an empty condition.
    function show(rule) {
      const isGiven = Boolean(rule) && typeof rule === "object";
      root = group(isGiven ? rule : { all: [EMPTY] });
      root.querySelector(".ps-remove").remove();
      place.replaceChildren(root);
      root.dataset.left = "";
      if (!isGiven) return;
      for (const node of place.querySelectorAll(".ps-rule, .ps-group")) node.dataset.left = "";
    }

    // --- from the page to a rule -----------------------------------------------------------------

    const read = (node) =>
      node.classList.contains("ps-group") ? readGroup(node) : conditions.read(node);

    function readGroup(node) {
      const mode = node.querySelector("select").value;
      const rules = [...node.querySelector(".ps-rules").children].map(read);
      return {
        all: { all: rules },
        any: { any: rules },
        none: { not: { any: rules } },
        notall: { not: { all: rules } },
      }[mode];
    }

    // --- errors ----------------------------------------------------------------------------------

    // `errors`: {path, words} of each. They are shown at conditions that the user has left, and
    // not while the user is still editing.
    function showErrors(errors) {
      for (const old of place.querySelectorAll(".ps-error")) old.remove();
      for (const each of place.querySelectorAll("[aria-invalid]")) mark(each, null);
      for (const { path, words } of errors) {
        const node = placeOf(path);
        if ("left" in node.dataset) showError(node, words);
      }
    }

    function showError(node, words) {
      const said = element("p", {
        className: "ps-error",
        id: `error-rule-${place.querySelectorAll(".ps-error").length}`,
        textContent: words,
      });
      node.append(said);
      for (const each of node.querySelectorAll(":scope > .ps-input")) mark(each, said.id);
    }

    function mark(input, id) {
      for (const [name, value] of [
        ["aria-invalid", id && "true"],
        ["aria-describedby", id],
      ]) {
        if (value) input.setAttribute(name, value);
        else input.removeAttribute(name);
      }
    }

    // The condition or group at a path such as rule.all.1.not.any.0.value.
    function placeOf(path) {
      let node = root;
      for (const step of path.split(".").filter((each) => /^\d+$/.test(each))) {
        const rules = node.querySelector(":scope > .ps-rules");
        node = rules?.children[step] ?? node;
      }
      return node;
    }

    function leave({ target, relatedTarget }) {
      const node = target.closest(".ps-rule");
      if (!node || node.contains(relatedTarget)) return;
      node.dataset.left = "";
      changed();
    }

    place.addEventListener("focusout", leave);
    place.addEventListener("input", changed);
    return { show, showErrors, rule: () => read(root) };
  }

  // The errors that a page or a fragment lists, as console/segments/errors.html does.
  function listedErrors(source) {
    return [...source.querySelectorAll("[data-path]")].map(({ dataset, textContent }) => ({
      path: dataset.path,
      words: textContent,
    }));
  }

  const known = () => JSON.parse(document.getElementById("rule-known").textContent);

  window.pushsvcRules = { builderOf, listedErrors, known };
})();
