// Converts the value of a condition to text in an input, and back.
(() => {
  const isNumber = (value) => typeof value === "number" || isUnfinished(value);
  const isUnfinished = (value) => typeof value?.number === "string";
  const joined = (value) => [value].flat().map(shownAs).join(", ");
  const shownAs = (value) =>
    isUnfinished(value) ? value.number : typeof value === "boolean" ? "" : String(value ?? "");

  // In UTC, even without an offset, which browsers treat as local time. "" for a time that the API
  // can parse but browsers cannot, such as a week date.
  function local(value) {
    if (typeof value !== "string") return "";
    const at = new Date(/(z|[+-]\d\d:\d\d)$/i.test(value) ? value : `${value}Z`);
    return Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 16);
  }

  // The server refuses a text that is not a number yet, and returns it unchanged.
  const number = (text) =>
    text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : { number: text };

  // A list has one value per line. Values that would be parsed differently are quoted.
  const QUOTED = /^".*"$/s;
  const isPlain = (text) => text === text.trim() && !/^$|[\r\n]/.test(text) && !QUOTED.test(text);
  const asLine = (value) =>
    typeof value !== "string" || isPlain(value) ? shownAs(value) : JSON.stringify(value);
  const asLines = (value) => (value === "" ? [] : [value].flat().map(asLine));
  const ofLines = (text) =>
    text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean)
      .map(ofLine);

  function ofLine(line) {
    try {
      return QUOTED.test(line) ? JSON.parse(line) : line;
    } catch {
      return line;
    }
  }

  // The value of an input for this comparison. A single text is a list with this text.
  function texts(operator, input, one = (each) => each) {
    const text = input?.value ?? "";
    if (operator !== "in") return one(text);
    const list = valuesIn(input) ?? (text.trim() ? [text] : []);
    return list.map((each) => one(shownAs(each)));
  }

  // The list in an input, even while another comparison shows it as one text.
  function valuesIn(input) {
    if (input?.matches("textarea")) return ofLines(input.value);
    const list = JSON.parse(input?.dataset.list ?? "null");
    return list && joined(list) === input.value ? list : undefined;
  }

  window.pushsvcValues = { isNumber, joined, asLines, local, number, texts, valuesIn };
})();
