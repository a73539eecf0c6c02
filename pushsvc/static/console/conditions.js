// A condition of a rule: its fields on the page, and their values.
(() => {
  const { isNumber, joined, asLines, momentIn, number, showMoment, showSkipped, texts, valuesIn } =
    window.pushsvcValues;
  const zone = window.pushsvcTimes.timeZone();
  const TEXT = [
    ["eq", translated("is")],
    ["ne", translated("is not")],
    ["in", translated("is one of")],
    ["contains", translated("contains")],
    ["starts_with", translated("starts with")],
    ["exists", translated("is set")],
    ["missing", translated("is not set")],
    ["gt", translated("is after")],
    ["gte", translated("is at or after")],
    ["lt", translated("is before")],
    ["lte", translated("is at or before")],
  ];
  const NUMBER = [
    ["eq", "="],
    ["ne", "≠"],
    ["gt", ">"],
    ["gte", "≥"],
    ["lt", "<"],
    ["lte", "≤"],
    ["in", translated("is one of")],
    ["exists", translated("is set")],
    ["missing", translated("is not set")],
  ];
  const PLATFORM = [
    ["eq", translated("is")],
    ["ne", translated("is not")],
  ];
  const TIME = [
    ["gte-days", translated("in the last … days")],
    ["lt-days", translated("more than … days ago")],
    ["gte", translated("on or after")],
    ["lt", translated("before")],
    ["gt", translated("after")],
    ["lte", translated("on or before")],
  ];
  const CLICK = [
    ["gte-days", translated("in the last … days")],
    ["none-days", translated("not in the last … days")],
    ["exists", translated("at any time")],
    ["missing", translated("never")],
    ...TIME.slice(1),
  ];
  const LANGUAGE = [
    ["eq", translated("is")],
    ["ne", translated("is not")],
    ["in", translated("is one of")],
    ["starts_with", translated("starts with")],
  ];
  const TIMEZONE = [
    ["eq", translated("is")],
    ["in", translated("is one of")],
  ];
  const COUNTRY = [
    ["eq", translated("is")],
    ["ne", translated("is not")],
    ["in", translated("is one of")],
  ];
  const VERSION = [
    ["lt", translated("is before")],
    ["gte", translated("is at least")],
    ["eq", translated("is")],
    ["ne", translated("is not")],
    ["gt", translated("is after")],
    ["lte", translated("is at most")],
    ["exists", translated("is set")],
    ["missing", translated("is not set")],
  ];
  const PERSON = [
    ["exists", translated("belongs to a person")],
    ["missing", translated("belongs to no person")],
  ];
  const OUTCOME = [
    ["not_clicked", translated("was delivered and not clicked")],
    ["clicked", translated("was clicked")],
    ["not_received", translated("was delivered and not reported as received")],
    ["received", translated("was received")],
    ["delivered", translated("was delivered")],
    ["bounced", translated("bounced")],
  ];
  const SUBJECTS = {
    attribute: translated("Attribute"),
    tag: translated("Tag"),
    platform: translated("Platform"),
    created_at: translated("Subscribed"),
    last_seen_at: translated("Last seen"),
    last_clicked_at: translated("Clicked"),
    language: translated("Language"),
    timezone: translated("Time zone"),
    country: translated("Country"),
    app_version: translated("App version"),
    external_id: translated("Person"),
    notification: translated("Earlier notification"),
  };

  // Fields whose value is text: their comparisons, their name, and an example.
  const TEXTS = {
    language: [LANGUAGE, translated("Language"), "de"],
    timezone: [TIMEZONE, translated("Time zone"), "Europe/Berlin"],
    country: [COUNTRY, translated("Country"), "DE"],
    app_version: [VERSION, translated("App version"), "2.10"],
  };

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name in made && name !== "list") made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function select(label, options, value) {
    const made = element("select", { className: "ps-input", ariaLabel: label });
    for (const [key, title] of options) made.add(new Option(title, key, false, key === value));
    return made;
  }

  function button(label, text, act, extra = "") {
    const made = element("button", {
      type: "button",
      className: `ps-button ${extra}`,
      textContent: text,
    });
    if (label) made.ariaLabel = label;
    made.addEventListener("click", act);
    return made;
  }

  // Whether a rule is "not clicked in the last … days", which is one condition on the page.
  const isIdle = (rule) => {
    const { field, operator, value } = rule.not ?? {};
    return field === "last_clicked_at" && operator === "gte" && value?.days_ago !== undefined;
  };

  const needsNone = (operator) => operator === "exists" || operator === "missing";

  function subjectOf(rule) {
    if (isIdle(rule)) return "last_clicked_at";
    if ("tag" in rule) return "tag";
    if ("notification" in rule) return "notification";
    return rule.field ?? "attribute";
  }

  function fresh(subject) {
    if (subject === "attribute") return { attribute: "", operator: "eq", value: "" };
    if (subject === "tag") return { tag: "" };
    if (subject === "notification") return { notification: "", outcome: "not_clicked" };
    if (subject === "platform") return { field: subject, operator: "eq", value: "web" };
    if (subject === "external_id") return { field: subject, operator: "exists", value: true };
    if (subject in TEXTS) return { field: subject, operator: TEXTS[subject][0][0][0], value: "" };
    return { field: subject, operator: "gte", value: { days_ago: 30 } };
  }

  // `known`: the channel's attributes and platforms. `changed()`: called when a condition was redrawn or
  // removed.
  function conditionEditor(known, { changed }) {
    const kindsOf = new Map(known.attributes.map((one) => [one.name, one.kinds]));

    function condition(rule) {
      const subject = subjectOf(rule);
      const node = element("div", { className: "ps-rule" });
      node.dataset.subject = subject;
      const choice = select(translated("What is tested"), Object.entries(SUBJECTS), subject);
      choice.dataset.part = "subject";
      choice.addEventListener("change", () => redraw(node, fresh(choice.value)));
      const remove = button(
        translated("Remove condition"),
        "✕",
        () => {
          node.remove();
          changed();
        },
        "ps-remove",
      );
      node.append(choice, ...parts(subject, rule, node), remove);
      return node;
    }

    function parts(subject, rule, node) {
      if (subject === "attribute") return attributeParts(rule, node);
      if (subject === "platform") return platformParts(rule);
      if (subject === "tag") return [tagInput(rule.tag)];
      if (subject === "notification") return notificationParts(rule);
      if (subject === "external_id")
        return [operatorSelect(PERSON, rule.value ? "exists" : "missing", node)];
      if (subject in TEXTS) return textParts(TEXTS[subject], rule, node);
      return isIdle(rule)
        ? timeParts({ ...rule.not, operator: "none" }, node)
        : timeParts(rule, node);
    }

    function textInput(part, label, value, placeholder) {
      const input = element("input", {
        className: "ps-input",
        ariaLabel: label,
        value,
        placeholder,
      });
      input.dataset.part = part;
      return input;
    }

    function tagInput(value) {
      const input = textInput("tag", translated("Tag"), value, "team-7");
      input.setAttribute("list", "rule-tags");
      return input;
    }

    function notificationParts(rule) {
      const outcome = select(translated("Outcome"), OUTCOME, rule.outcome);
      outcome.dataset.part = "outcome";
      const id = textInput(
        "notification",
        translated("Notification id"),
        rule.notification,
        translated("its id"),
      );
      return [id, outcome];
    }

    function textParts([comparisons, label, example], rule, node) {
      const shown = rule.operator === "exists" && rule.value === false ? "missing" : rule.operator;
      const operator = operatorSelect(comparisons, shown, node);
      if (needsNone(operator.value)) return [operator];
      const value = typeof rule.value === "boolean" ? "" : rule.value;
      return [operator, valueInput(operator.value, label, value, example)];
    }

    function valueInput(operator, label, value, example = "") {
      if (operator !== "in") {
        const input = textInput("value", label, joined(value), example);
        if (Array.isArray(value)) input.dataset.list = JSON.stringify(value);
        return input;
      }
      const lines = asLines(value);
      const input = element("textarea", {
        className: "ps-input",
        ariaLabel: label,
        value: lines.join("\n"),
        rows: Math.min(Math.max(lines.length, 2), 8),
        placeholder: translated("one in each line"),
        spellcheck: false,
      });
      input.dataset.part = "value";
      return element("span", { className: "ps-lines" }, input, adder(input, label));
    }

    // A field that offers the channel's values, because browsers offer none for lines.
    function adder(lines, label) {
      const name = translated("Add: %(label)s", { label });
      const input = textInput("add", name, "", translated("add a value"));
      const add = () => {
        const value = input.value.trim();
        if (!value) return;
        const kept = lines.value.split("\n").filter((line) => line.trim());
        const [line] = asLines(value);
        if (!kept.includes(line)) kept.push(line);
        lines.value = kept.join("\n");
        lines.rows = Math.min(Math.max(kept.length, 2), 8);
        input.value = "";
        lines.dispatchEvent(new Event("input", { bubbles: true }));
      };
      input.addEventListener("change", add);
      input.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault(); // which would save the segment
        add();
      });
      return input;
    }

    function attributeParts(rule, node) {
      const name = element("input", {
        className: "ps-input",
        value: rule.attribute,
        ariaLabel: translated("Attribute"),
        placeholder: "attribute",
        list: "rule-attributes",
        maxLength: 50,
      });
      name.dataset.part = "attribute";
      const samples = [rule.value].flat();
      const kind = select(
        translated("Kind of value"),
        [
          ["text", translated("text")],
          ["number", translated("number")],
        ],
        rule.kind ?? (samples.some(isNumber) ? "number" : "text"),
      );
      kind.dataset.part = "kind";
      name.addEventListener("change", () => {
        const [only, ...others] = kindsOf.get(name.value) ?? [];
        const fitting = only === "number" ? "number" : "text";
        const isKnown = Boolean(only) && !others.length;
        if (isKnown && kind.value !== fitting) again(node, { kind: fitting });
      });
      kind.addEventListener("change", () => again(node, {}));
      const shown = rule.operator === "exists" && rule.value === false ? "missing" : rule.operator;
      const operator = operatorSelect(kind.value === "number" ? NUMBER : TEXT, shown, node);
      const value = valueInput(operator.value, translated("Value"), rule.value);
      value.inputMode = kind.value === "number" && operator.value !== "in" ? "decimal" : "text";
      return needsNone(operator.value) ? [name, operator] : [name, kind, operator, value];
    }

    function platformParts(rule) {
      const chosen = new Set(rule.operator === "in" ? rule.value : [rule.value]);
      const operator = select(
        translated("Comparison"),
        PLATFORM,
        rule.operator === "ne" ? "ne" : "eq",
      );
      operator.dataset.part = "operator";
      const boxes = known.platforms.map((name) => {
        const box = element("input", { type: "checkbox", value: name, checked: chosen.has(name) });
        box.dataset.part = "platform";
        return element("label", {}, box, ` ${name}`);
      });
      return [operator, element("span", { className: "ps-choices" }, ...boxes)];
    }

    function timeParts(rule, node) {
      const operator = operatorSelect(
        node.dataset.subject === "last_clicked_at" ? CLICK : TIME,
        shownTime(rule),
        node,
      );
      if (needsNone(operator.value)) return [operator];
      const days = rule.value?.days_ago;
      const value = operator.value.endsWith("-days")
        ? element("input", {
            className: "ps-input",
            type: "number",
            min: 1,
            max: 36500,
            value: days ?? 30,
            ariaLabel: translated("Days"),
          })
        : element("input", {
            className: "ps-input",
            type: "datetime-local",
            ariaLabel: translated("Date and time (%(zone)s)", { zone }),
            title: zone,
          });
      value.dataset.part = "value";
      if (operator.value.endsWith("-days")) return [operator, value];
      showMoment(value, rule.value);
      value.addEventListener("blur", showSkipped);
      return [operator, value, zone];
    }

    // The operator on the page. `none`: of "not in the last … days".
    function shownTime({ operator, value }) {
      if (value === false) return "missing";
      if (value?.days_ago === undefined) return operator;
      if (operator === "none") return "none-days";
      return operator.startsWith("g") ? "gte-days" : "lt-days";
    }

    function operatorSelect(options, value, node) {
      const made = select(
        translated("Comparison"),
        options,
        options.some(([key]) => key === value) ? value : options[0][0],
      );
      made.dataset.part = "operator";
      made.addEventListener("change", () => again(node, {}));
      return made;
    }

    // Redraws the condition from its values, after a choice that changes its other fields. The kind is
    // passed on, because an empty value does not show it.
    function again(node, { kind }) {
      const chosen = kind ?? node.querySelector("[data-part=kind]")?.value;
      if (kind) node.querySelector("[data-part=kind]").value = kind;
      const rule = read(node);
      // The value of "is set" and "is not set" is true or false, not a text.
      const isText = typeof rule.value !== "boolean";
      const list = isText && valuesIn(node.querySelector("[data-part=value]"));
      redraw(node, { ...rule, ...(list && { value: list }), kind: chosen });
    }

    // Keeps the focus on the changed field.
    function redraw(node, rule) {
      const part = node.contains(document.activeElement) && document.activeElement.dataset.part;
      const drawn = condition(rule);
      if ("left" in node.dataset) drawn.dataset.left = "";
      node.replaceWith(drawn);
      if (part) drawn.querySelector(`[data-part=${part}]`)?.focus();
      changed();
    }

    function read(node) {
      const { subject } = node.dataset; // as drawn, because a choice may have changed since
      const part = (name) => node.querySelector(`[data-part=${name}]`);
      if (subject === "tag") return { tag: part("tag").value.trim() };
      if (subject === "notification")
        return { notification: part("notification").value.trim(), outcome: part("outcome").value };
      const operator = part("operator").value;
      if (subject === "attribute") return readAttribute(part, operator);
      if (subject === "platform") return readPlatform(node, operator);
      if (subject === "external_id")
        return { field: subject, operator: "exists", value: operator === "exists" };
      if (needsNone(operator))
        return { field: subject, operator: "exists", value: operator === "exists" };
      if (subject in TEXTS)
        return { field: subject, operator, value: texts(operator, part("value")) };
      return readTime(subject, part("value"), operator);
    }

    function readAttribute(part, operator) {
      const attribute = part("attribute").value.trim();
      if (operator === "exists" || operator === "missing")
        return { attribute, operator: "exists", value: operator === "exists" };
      const one = part("kind")?.value === "number" ? number : (each) => each;
      return { attribute, operator, value: texts(operator, part("value"), one) };
    }

    function readPlatform(node, operator) {
      const chosen = [...node.querySelectorAll("[data-part=platform]:checked")].map(
        (box) => box.value,
      );
      if (operator === "eq") return { field: "platform", operator: "in", value: chosen };
      if (chosen.length === 1) return { field: "platform", operator: "ne", value: chosen[0] };
      return {
        field: "platform",
        operator: "in",
        value: known.platforms.filter((one) => !chosen.includes(one)),
      };
    }

    function readTime(subject, input, operator) {
      const name = operator.replace("-days", "");
      const isDays = input?.type === "number";
      if (name === "none") return { not: readTime(subject, input, "gte-days") };
      if (operator.endsWith("-days"))
        return {
          field: subject,
          operator: name,
          value: { days_ago: isDays ? Number(input.value) : 30 },
        };
      return {
        field: subject,
        operator: name,
        value: isDays || !input ? "" : momentIn(input),
      };
    }

    return { condition, read };
  }

  window.pushsvcConditions = { conditionEditor, element, select, button, isIdle };
})();
