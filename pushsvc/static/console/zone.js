// Before the page is shown, adds the reader's time zone to an address without one.
(() => {
  const address = new URL(location.href);
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (address.searchParams.has("zone") || !timeZone || timeZone === "UTC") return;
  address.searchParams.set("zone", timeZone);
  location.replace(address);
})();
