// The segment builder: groups and conditions on the page, a rule as JSON in the form's hidden field.
// The server checks the rule (docs/segments.md). Its faults are shown beside their conditions.

const known = JSON.parse(document.getElementById("segment-known").textContent);
const form = document.getElementById("segment");
const kindsOf = new Map(known.attributes.map((one) => [one.name, one.kinds]));

const MODES = {
  all: "all of these",
  any: "any of these",
  none: "none of these",
  notall: "not all of these",
};
const TEXT = [
  ["eq", "is"],
  ["ne", "is not"],
  ["in", "is one of"],
  ["contains", "contains"],
  ["starts_with", "starts with"],
  ["exists", "is set"],
  ["missing", "is not set"],
  ["gt", "is after"],
  ["gte", "is at or after"],
  ["lt", "is before"],
  ["lte", "is at or before"],
];
const NUMBER = [
  ["eq", "="],
  ["ne", "≠"],
  ["gt", ">"],
  ["gte", "≥"],
  ["lt", "<"],
  ["lte", "≤"],
  ["in", "is one of"],
  ["exists", "is set"],
  ["missing", "is not set"],
];
const PLATFORM = [
  ["eq", "is"],
  ["ne", "is not"],
];
const TIME = [
  ["gte-days", "in the last … days"],
  ["lt-days", "more than … days ago"],
  ["gte", "on or after"],
  ["lt", "before"],
  ["gt", "after"],
  ["lte", "on or before"],
];
const FIELDS = { platform: "Platform", created_at: "Subscribed", last_seen_at: "Last seen" };

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

// --- from a rule to the page ---------------------------------------------------------------------

function group(rule) {
  const [mode, rules] = opened(rule);
  const rows = element("div", { className: "ps-rules" }, ...rules.map(built));
  const node = element(
    "div",
    { className: "ps-group", role: "group", ariaLabel: "Group of conditions" },
    element(
      "div",
      { className: "ps-group-head" },
      element("span", {}, "Matches"),
      select("How the conditions go together", Object.entries(MODES), mode),
      button(
        "Remove group",
        "✕",
        () => {
          node.remove();
          changed();
        },
        "ps-remove",
      ),
    ),
    rows,
    element(
      "div",
      { className: "ps-actions" },
      button("", "Add condition", () =>
        add(rows, condition({ attribute: "", operator: "eq", value: "" })),
      ),
      button("", "Add group", () =>
        add(rows, group({ any: [{ attribute: "", operator: "eq", value: "" }] })),
      ),
    ),
  );
  return node;
}

function opened(rule) {
  if (rule.all) return ["all", rule.all];
  if (rule.any) return ["any", rule.any];
  if (rule.not?.any) return ["none", rule.not.any];
  if (rule.not?.all) return ["notall", rule.not.all];
  return rule.not ? ["none", [rule.not]] : ["all", [rule]];
}

const built = (rule) => (rule.all || rule.any || rule.not ? group(rule) : condition(rule));

function condition(rule) {
  const subject = rule.field ?? "attribute";
  const node = element("div", { className: "ps-rule" });
  const choice = select(
    "What is tested",
    [["attribute", "Attribute"], ...Object.entries(FIELDS)],
    subject,
  );
  choice.dataset.part = "subject";
  choice.addEventListener("change", () => redraw(node, fresh(choice.value)));
  const remove = button(
    "Remove condition",
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

function fresh(subject) {
  if (subject === "attribute") return { attribute: "", operator: "eq", value: "" };
  if (subject === "platform") return { field: subject, operator: "eq", value: "web" };
  return { field: subject, operator: "gte", value: { days_ago: 30 } };
}

function parts(subject, rule, node) {
  if (subject === "attribute") return attributeParts(rule, node);
  if (subject === "platform") return platformParts(rule);
  return timeParts(rule, node);
}

function attributeParts(rule, node) {
  const name = element("input", {
    className: "ps-input",
    value: rule.attribute,
    ariaLabel: "Attribute",
    placeholder: "attribute",
    list: "segment-attributes",
    maxLength: 50,
  });
  name.dataset.part = "attribute";
  const samples = [rule.value].flat();
  const kind = select(
    "Kind of value",
    [
      ["text", "text"],
      ["number", "number"],
    ],
    rule.kind ?? (samples.some(isNumber) ? "number" : "text"),
  );
  kind.dataset.part = "kind";
  name.addEventListener("change", () => {
    const [only, ...others] = kindsOf.get(name.value) ?? [];
    if (only && !others.length) again(node, { kind: only === "number" ? "number" : "text" });
  });
  kind.addEventListener("change", () => again(node, {}));
  const shown = rule.operator === "exists" && rule.value === false ? "missing" : rule.operator;
  const operator = operatorSelect(kind.value === "number" ? NUMBER : TEXT, shown, node);
  const value = element("input", {
    className: "ps-input",
    ariaLabel: "Value",
    value: joined(rule.value),
    inputMode: kind.value === "number" ? "decimal" : "text",
  });
  if (operator.value === "in") value.placeholder = "separated by commas";
  value.dataset.part = "value";
  const needsNone = ["exists", "missing"].includes(operator.value);
  return needsNone ? [name, operator] : [name, kind, operator, value];
}

const isNumber = (value) => typeof value === "number" || isUnfinished(value);
const isUnfinished = (value) => typeof value?.number === "string";
const joined = (value) => [value].flat().map(shownAs).join(", ");
const shownAs = (value) =>
  isUnfinished(value) ? value.number : typeof value === "boolean" ? "" : String(value ?? "");

function platformParts(rule) {
  const chosen = new Set(rule.operator === "in" ? rule.value : [rule.value]);
  const operator = select("Comparison", PLATFORM, rule.operator === "ne" ? "ne" : "eq");
  operator.dataset.part = "operator";
  const boxes = known.platforms.map((name) => {
    const box = element("input", { type: "checkbox", value: name, checked: chosen.has(name) });
    box.dataset.part = "platform";
    return element("label", {}, box, ` ${name}`);
  });
  return [operator, element("span", { className: "ps-choices" }, ...boxes)];
}

function timeParts(rule, node) {
  const days = rule.value?.days_ago;
  const shown =
    days === undefined ? rule.operator : rule.operator.startsWith("g") ? "gte-days" : "lt-days";
  const operator = operatorSelect(TIME, shown, node);
  const value = operator.value.endsWith("-days")
    ? element("input", {
        className: "ps-input",
        type: "number",
        min: 1,
        max: 36500,
        value: days ?? 30,
        ariaLabel: "Days",
      })
    : element("input", {
        className: "ps-input",
        type: "datetime-local",
        value: local(rule.value),
        ariaLabel: "Date and time (UTC)",
        title: "UTC",
      });
  value.dataset.part = "value";
  return operator.value.endsWith("-days") ? [operator, value] : [operator, value, "UTC"];
}

const local = (value) =>
  typeof value === "string" ? new Date(value).toISOString().slice(0, 16) : "";

function operatorSelect(options, value, node) {
  const made = select(
    "Comparison",
    options,
    options.some(([key]) => key === value) ? value : options[0][0],
  );
  made.dataset.part = "operator";
  made.addEventListener("change", () => again(node, {}));
  return made;
}

// The condition drawn anew from what it says, for a choice that changes its other fields. The kind is
// handed on, because a value that is still empty does not tell it.
function again(node, { kind }) {
  const chosen = kind ?? node.querySelector("[data-part=kind]")?.value;
  if (kind) node.querySelector("[data-part=kind]").value = kind;
  redraw(node, { ...read(node), kind: chosen });
}

// The focus stays at the field that was changed.
function redraw(node, rule) {
  const part = node.contains(document.activeElement) && document.activeElement.dataset.part;
  const drawn = condition(rule);
  if ("left" in node.dataset) drawn.dataset.left = "";
  node.replaceWith(drawn);
  if (part) drawn.querySelector(`[data-part=${part}]`)?.focus();
  changed();
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

function add(rows, node) {
  rows.append(node);
  node.querySelector("input, select")?.focus();
  changed();
}

// --- from the page to a rule ---------------------------------------------------------------------

function read(node) {
  if (node.classList.contains("ps-group")) return readGroup(node);
  const subject = node.querySelector("select").value;
  const part = (name) => node.querySelector(`[data-part=${name}]`);
  const operator = part("operator").value;
  if (subject === "attribute") return readAttribute(part, operator);
  if (subject === "platform") return readPlatform(node, operator);
  return readTime(subject, part("value"), operator);
}

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

function readAttribute(part, operator) {
  const attribute = part("attribute").value.trim();
  if (operator === "exists" || operator === "missing")
    return { attribute, operator: "exists", value: operator === "exists" };
  const text = part("value")?.value ?? "";
  const one = part("kind")?.value === "number" ? number : (each) => each;
  const value = operator === "in" ? text.split(",").map((each) => one(each.trim())) : one(text);
  return { attribute, operator, value };
}

// The server refuses what is not a number yet, and hands it back as it is.
const number = (text) =>
  text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : { number: text };

function readPlatform(node, operator) {
  const chosen = [...node.querySelectorAll("[data-part=platform]:checked")].map((box) => box.value);
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
  const isDays = input.type === "number";
  if (operator.endsWith("-days"))
    return {
      field: subject,
      operator: name,
      value: { days_ago: isDays ? Number(input.value) : 30 },
    };
  return {
    field: subject,
    operator: name,
    value: isDays ? "" : input.value && `${input.value}:00Z`,
  };
}

// --- live ----------------------------------------------------------------------------------------

const rule = () => read(document.querySelector("#segment-builder > .ps-group"));
let timer;
let latest = 0;

function changed() {
  document.getElementById("segment-rule").value = JSON.stringify(rule());
  clearTimeout(timer);
  timer = setTimeout(preview, 300);
}

async function preview() {
  const turn = ++latest;
  const answer = await fetch(form.dataset.preview, {
    method: "POST",
    body: new FormData(form),
    headers: { "HX-Request": "true" },
  });
  if (turn !== latest) return;
  const place = document.getElementById("segment-preview");
  if (answer.ok) place.innerHTML = await answer.text();
  else place.textContent = "The preview could not be loaded. Reload the page.";
  if (turn === latest) showFaults(place);
}

// --- faults --------------------------------------------------------------------------------------

// Beside the conditions that the user has left: nobody is told of a fault while still at it.
function showFaults(source) {
  for (const old of document.querySelectorAll("#segment-builder .ps-fault")) old.remove();
  for (const each of document.querySelectorAll("#segment-builder [aria-invalid]")) mark(each, null);
  for (const { dataset, textContent } of source.querySelectorAll("[data-path]")) {
    const node = placeOf(dataset.path);
    if ("left" in node.dataset) showFault(node, textContent);
  }
}

function showFault(node, words) {
  const said = element("p", {
    className: "ps-fault",
    id: `fault-${document.querySelectorAll(".ps-fault").length}`,
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

// The condition or group that a path such as rule.all.1.not.any.0.value leads to.
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

document
  .getElementById("segment-attributes")
  .append(...known.attributes.map((one) => new Option(one.name, one.name)));
const start =
  known.rule && typeof known.rule === "object"
    ? known.rule
    : { all: [{ attribute: "", operator: "eq", value: "" }] };
const root = group(start);
root.querySelector(".ps-remove").remove();
root.dataset.left = "";
const builder = document.getElementById("segment-builder");
builder.append(root);
form.addEventListener("input", changed);
form.addEventListener("submit", changed);
builder.addEventListener("focusout", leave);
if (known.rule) {
  for (const node of builder.querySelectorAll(".ps-rule, .ps-group")) node.dataset.left = "";
  showFaults(form);
  changed();
}
