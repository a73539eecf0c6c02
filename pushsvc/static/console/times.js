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
// title. data-local="seconds" | "date" | "clock" | "minute" chooses the format; "both" adds UTC.
(() => {
  const date = { day: "numeric", month: "short", year: "numeric" };
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const parts = {
    "": { ...date, ...clock },
    both: { ...date, ...clock },
    seconds: { ...date, ...clock, second: "2-digit" },
    date,
    clock: { ...clock, second: "2-digit" },
    minute: clock,
  };

  function say(moment, how, timeZone) {
    return new Intl.DateTimeFormat("en-GB", { ...(parts[how] ?? parts[""]), timeZone }).format(
      moment,
    );
  }

  function localise(element) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) return;
    const how = element.dataset.local;
    const utc = `${say(moment, how, "UTC")} UTC`;
    const own = say(moment, how, timeZone());
    element.textContent = how === "both" && timeZone() !== "UTC" ? `${own} (${utc})` : own;
    element.title = `${utc} · shown in ${timeZone()}`;
  }

  function localiseAll(root) {
    root.querySelectorAll("time[data-local]").forEach(localise);
  }

  function timeZone() {
    const { zone } = document.documentElement.dataset;
    return zone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  }

  window.pushsvcTimes = { timeZone, localiseAll };
  document.addEventListener("DOMContentLoaded", () => localiseAll(document));
  document.addEventListener("htmx:afterSwap", () => localiseAll(document));
})();
