// The picker of a schedule's recurrence. It writes the rule into the field #repeat_rule, and shows
// the field itself for a rule that it cannot show.
(() => {
  const rule = document.querySelector("#repeat_rule");
  const picker = document.querySelector("#repeat-picker");
  if (!rule || !picker) return;

  const own = (name) => picker.querySelector(`[data-repeat="${name}"]`);
  const weekdays = [...picker.querySelectorAll('[data-repeat="weekday"]')];
  const [interval, frequency, place, day, placed, month] = [
    "interval",
    "frequency",
    "place",
    "day",
    "placed",
    "month",
  ].map(own);
  const named = (options, at) =>
    new Intl.DateTimeFormat(window.pushsvcLocale, { ...options, timeZone: "UTC" }).format(at);

  for (const each of picker.querySelectorAll("[data-weekday]")) {
    // 1 January 2024 was a Monday.
    const at = Date.UTC(2024, 0, 1 + Number(each.dataset.weekday));
    each.textContent = named({ weekday: "long" }, at);
  }
  for (let number = 1; number <= 31; number++) day.add(new Option(number, number));
  day.add(new Option(translated("the last"), -1));
  for (let number = 1; number <= 12; number++)
    month.add(new Option(named({ month: "long" }, Date.UTC(2024, number - 1)), number));

  function parts() {
    const pairs = rule.value.split(";").map((part) => part.split("="));
    return Object.fromEntries(pairs.filter((pair) => pair.length === 2));
  }

  // Shows the rule in the picker. False if the picker has no place for a part of it.
  function read() {
    const { FREQ, INTERVAL = "1", BYDAY = "", BYMONTHDAY = "", BYMONTH = "", ...more } = parts();
    if (Object.keys(more).length || !/^\d{1,3}$/.test(INTERVAL)) return false;
    const days = BYDAY ? BYDAY.split(",") : [];
    const isMonthly = FREQ === "MONTHLY" || FREQ === "YEARLY";
    if (!isMonthly && !["DAILY", "WEEKLY"].includes(FREQ)) return false;
    if (isMonthly) {
      if (FREQ === "YEARLY" ? !has(month, BYMONTH) : BYMONTH) return false;
      const found = /^(-?\d)([A-Z]{2})$/.exec(BYDAY);
      const isPlaced = found && has(place, found[1]) && !BYMONTHDAY;
      if (!isPlaced && (BYDAY || !has(day, BYMONTHDAY))) return false;
      place.value = isPlaced ? found[1] : "day";
      if (isPlaced) placed.value = found[2];
      else day.value = BYMONTHDAY;
      if (FREQ === "YEARLY") month.value = BYMONTH;
    } else {
      const known = weekdays.map((each) => each.value);
      if (BYMONTHDAY || BYMONTH || !days.every((each) => known.includes(each))) return false;
      for (const each of weekdays) each.checked = days.includes(each.value);
    }
    interval.value = INTERVAL;
    frequency.value = FREQ;
    return true;
  }

  function has(select, value) {
    return [...select.options].some((option) => option.value === value);
  }

  function write() {
    const chosen = weekdays.filter((each) => each.checked).map((each) => each.value);
    const found = [`FREQ=${frequency.value}`];
    if (Number(interval.value) !== 1) found.push(`INTERVAL=${interval.value}`);
    if (frequency.value === "DAILY" || frequency.value === "WEEKLY") {
      if (chosen.length) found.push(`BYDAY=${chosen.join(",")}`);
    } else {
      if (frequency.value === "YEARLY") found.push(`BYMONTH=${month.value}`);
      found.push(
        place.value === "day" ? `BYMONTHDAY=${day.value}` : `BYDAY=${place.value}${placed.value}`,
      );
    }
    rule.value = found.join(";");
  }

  function show() {
    for (const part of picker.querySelectorAll("[data-repeat-for]"))
      part.hidden = !part.dataset.repeatFor.split(" ").includes(frequency.value);
    day.hidden = place.value !== "day";
    placed.hidden = place.value === "day";
    document.querySelector("#repeat-as-text").hidden = frequency.value !== "";
  }

  // Before the listeners of the page, which send the form's values.
  picker.addEventListener("input", () => {
    if (frequency.value) write();
    show();
  });
  if (!read()) frequency.value = "";
  picker.hidden = false;
  show();
})();
