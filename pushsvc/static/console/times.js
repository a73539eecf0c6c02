// Tells the service the browser's time zone, before the page is shown. A page that was written for
// another one is loaded again, once, unless the reader chose its zone.
(() => {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const cookie = `browser-time-zone=${timeZone}`;
  const isKnown = () => document.cookie.split("; ").includes(cookie);
  if (!timeZone || isKnown()) return;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  // biome-ignore lint/suspicious/noDocumentCookie: not every browser has the cookie store
  document.cookie = `${cookie}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
  const { zone, zoneIsChosen, method } = document.documentElement.dataset;
  const isOther = zone && zone !== timeZone && !zoneIsChosen;
  if (isOther && method === "GET" && isKnown()) location.reload();
})();

// <time data-local datetime="…Z">: shows the time in the reader's time zone (zones.py), with UTC as its
// title. data-local="seconds" | "date" | "clock" | "minute" chooses the format.
(() => {
  const date = { day: "numeric", month: "short", year: "numeric" };
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const parts = {
    "": { ...date, ...clock },
    seconds: { ...date, ...clock, second: "2-digit" },
    date,
    clock: { ...clock, second: "2-digit" },
    minute: clock,
  };

  function say(moment, how, timeZone) {
    return new Intl.DateTimeFormat(window.pushsvcLocale, {
      ...(parts[how] ?? parts[""]),
      timeZone,
    }).format(moment);
  }

  function localise(element) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) return;
    const how = element.dataset.local;
    const utc = `${say(moment, how, "UTC")} UTC`;
    element.textContent = say(moment, how, timeZone());
    element.title = translated("%(utc)s · shown in %(zone)s", { utc, zone: timeZone() });
  }

  function localiseAll(root) {
    root.querySelectorAll("time[data-local]").forEach(localise);
  }

  function timeZone() {
    const { zone } = document.documentElement.dataset;
    return zone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  }

  // Such as 2026-11-23T23:30, for an input of the type datetime-local.
  function onClock(at, zone = timeZone()) {
    const minutes = { dateStyle: "short", timeStyle: "short", timeZone: zone };
    return new Intl.DateTimeFormat("sv-SE", minutes).format(at).replace(" ", "T");
  }

  // The moment of such a text, such as 2026-11-24T07:30:00Z. "" for no text.
  function utcOf(text) {
    const wanted = new Date(`${text}Z`).getTime();
    if (Number.isNaN(wanted)) return "";
    let at = wanted;
    for (const _ of [1, 2]) at += wanted - new Date(`${onClock(at)}Z`).getTime();
    return `${new Date(at).toISOString().slice(0, 16)}:00Z`;
  }

  window.pushsvcTimes = { timeZone, localiseAll, onClock, utcOf };
  document.addEventListener("DOMContentLoaded", () => localiseAll(document));
  document.addEventListener("htmx:afterSwap", () => localiseAll(document));
})();
