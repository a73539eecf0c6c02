// <time data-local datetime="…Z">: shows the time in the reader's time zone, with UTC as its
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
    element.textContent = how === "both" ? `${say(moment, how)} (${utc})` : say(moment, how);
    element.title = `${utc} · shown in ${timeZone()}`;
  }

  function localiseAll(root) {
    root.querySelectorAll("time[data-local]").forEach(localise);
  }

  function timeZone() {
    return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  }

  window.pushsvcTimes = { timeZone, localiseAll };
  document.addEventListener("DOMContentLoaded", () => localiseAll(document));
  document.addEventListener("htmx:afterSwap", () => localiseAll(document));
})();
