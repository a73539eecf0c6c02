// /demo: subscribes this browser, sends to it, and shows the counts as they grow.
// Its script element names the channel.

// Adds to the SDK's message where to find things on this machine.
const MORE = {
  insecure_context:
    "Open this page at the address that make run printed, http://127.0.0.1 or http://localhost on the machine itself.",
  push_service_unreachable:
    "Try Firefox, Chrome or Edge. Debian's and other distributions' Chromium has no push service. In Brave, switch on “Use Google services for push messaging” in the privacy settings. Without a network: Firefox can have the sandbox as its push service; docs/webpush.md, “With a real Firefox”, names the two preferences.",
  permission_denied:
    "Click the sign left of the address, allow notifications, and reload this page.",
  no_service_worker:
    "The browser could not use /demo/sw.js: its own words are above. Reload the page, or clear this site's data.",
};
const POLL_MS = 500;
const PATIENT_MS = 15_000;
const WATCH_MS = 10 * 60_000;
const at = (id) => document.getElementById(id);

const push = pushsvc.init({
  channel: document.currentScript.dataset.channel,
  serviceWorker: "/demo/sw.js",
});
let watched = null;

const note = (text) => {
  const line = document.createElement("li");
  const time = document.createElement("time");
  time.textContent = new Date().toLocaleTimeString();
  line.append(time, text);
  at("log").append(line);
};

const explain = (id, ...words) => {
  at(id).hidden = words.length === 0;
  at(id).replaceChildren(
    ...words.filter(Boolean).map((text) => {
      const line = document.createElement("p");
      line.textContent = text;
      return line;
    }),
  );
};

const show = async () => {
  const isSubscribed = await push.isSubscribed();
  at("state").textContent = isSubscribed ? "subscribed" : "not subscribed";
  at("state").classList.toggle("good", isSubscribed);
  at("subscribe").hidden = isSubscribed;
  at("unsubscribe").hidden = !isSubscribed;
  at("send").disabled = !isSubscribed;
};

const attempt = async (button, act) => {
  button.disabled = true;
  at("state").textContent = "waiting for its push service…";
  explain("problem");
  try {
    await act();
  } catch (error) {
    explain("problem", error.message, MORE[error.code]);
  }
  button.disabled = false;
  await show();
};

const ask = async (path, request) => {
  const answer = await fetch(path, request);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.detail);
  return said;
};

const send = async () => {
  explain("send-problem");
  try {
    const { notification_id: id } = await ask("/demo/send", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: "{}",
    });
    watched = id;
    note(`sent, ${id}`);
    await watch(id, performance.now());
  } catch (error) {
    explain("send-problem", error.message);
  }
};

const watch = async (id, since) => {
  let isEnded = false;
  while (watched === id && performance.now() - since < WATCH_MS) {
    const counts = await ask(`/demo/notifications/${id}`);
    for (const name in counts) if (at(name)) at(name).textContent = counts[name];
    const isNow = counts.status === "sent" || counts.status === "failed";
    if (isNow && !isEnded)
      note(`handed over: ${counts.delivered_count} of ${counts.recipient_count} accepted`);
    isEnded = isNow;
    const isLate = !isEnded && performance.now() - since > PATIENT_MS;
    explain(
      "send-problem",
      ...(isLate
        ? [
            "It is still being handed over: the service cannot reach the browser's push service, and goes on trying. var/log/worker-web.log says why.",
          ]
        : []),
    );
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

at("subscribe").onclick = () => attempt(at("subscribe"), () => push.subscribe());
at("unsubscribe").onclick = () => attempt(at("unsubscribe"), () => push.unsubscribe());
at("send").onclick = send;
push.addEventListener("subscribed", () => {
  note("subscribed");
  show();
});
push.addEventListener("changed", () => note("another endpoint, the same subscription"));
push.addEventListener("unsubscribed", () => note("unsubscribed"));
push.addEventListener("error", ({ detail }) =>
  explain("problem", detail.message, MORE[detail.code]),
);
push.addEventListener("received", () => note("arrived, and shown by the worker"));
push.addEventListener("clicked", () => note("clicked"));
push.addEventListener("dismissed", () => note("dismissed"));
show();
