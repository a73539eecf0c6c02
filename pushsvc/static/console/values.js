// The value of a condition as text in an input, and back.
(() => {
  const isNumber = (value) => typeof value === "number" || isUnfinished(value);
  const isUnfinished = (value) => typeof value?.number === "string";
  const joined = (value) => [value].flat().map(shownAs).join(", ");
  const shownAs = (value) =>
    isUnfinished(value) ? value.number : typeof value === "boolean" ? "" : String(value ?? "");

  // In UTC, also without an offset, which browsers read as their own time. "" for a moment that the API
  // reads and browsers do not, such as one by its week.
  function local(value) {
    if (typeof value !== "string") return "";
    const at = new Date(/(z|[+-]\d\d:\d\d)$/i.test(value) ? value : `${value}Z`);
    return Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 16);
  }

  // The server refuses what is not a number yet, and hands it back as it is.
  const number = (text) =>
    text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : { number: text };

  // A list has one value in each line. What would not read back as it is stands in quotes.
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

  // What an input says for this comparison. One that holds a single text is a list of that text.
  function texts(operator, input, one = (each) => each) {
    const text = input?.value ?? "";
    if (operator !== "in") return one(text);
    const list = valuesIn(input) ?? (text.trim() ? [text] : []);
    return list.map((each) => one(shownAs(each)));
  }

  // The list that an input holds, also while another comparison shows it as one text.
  function valuesIn(input) {
    if (input?.matches("textarea")) return ofLines(input.value);
    const list = JSON.parse(input?.dataset.list ?? "null");
    return list && joined(list) === input.value ? list : undefined;
  }

  window.pushsvcValues = { isNumber, joined, asLines, local, number, texts, valuesIn };
})();
