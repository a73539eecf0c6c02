// Converts the value of a condition to text in an input, and back.
(() => {
  const isNumber = (value) => typeof value === "number" || isUnfinished(value);
  const isUnfinished = (value) => typeof value?.number === "string";
  const joined = (value) => [value].flat().map(shownAs).join(", ");
  const shownAs = (value) =>
    isUnfinished(value) ? value.number : typeof value === "boolean" ? "" : String(value ?? "");

  // Shows a moment in the input, on the reader's clock. A time without an offset is in UTC, though
  // browsers treat it as local time. Shows nothing for a time that the API can parse but browsers
  // cannot, such as a week date.
  function showMoment(input, value) {
    if (typeof value !== "string") return;
    const at = new Date(/(z|[+-]\d\d:\d\d)$/i.test(value) ? value : `${value}Z`);
    if (Number.isNaN(at.getTime())) return;
    input.value = window.pushsvcTimes.onClock(at);
    Object.assign(input.dataset, { shown: input.value, utc: `${at.toISOString().slice(0, 19)}Z` });
  }

  // For a time that clocks skip, shows the one that the rule has instead.
  const showSkipped = ({ target }) => showMoment(target, momentIn(target));

  // The moment in UTC. One that was not changed stays as it was, because clocks that go back show a
  // time twice.
  function momentIn({ value, dataset }) {
    return value && value === dataset.shown ? dataset.utc : window.pushsvcTimes.utcOf(value);
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

  window.pushsvcValues = {
    isNumber,
    joined,
    asLines,
    momentIn,
    number,
    showMoment,
    showSkipped,
    texts,
    valuesIn,
  };
})();
