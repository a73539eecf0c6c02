/*
 * pushsvc in the service worker: shows what arrives, opens it, reports it. A site's own worker
 * file, on the site's own origin, has this line:
 *
 *   importScripts("https://push.example.com/sdk/push-sw.js");
 *
 * or, in a worker of type "module":
 *
 *   import "https://push.example.com/sdk/push-sw.mjs";
 *
 * push.js tells it once which service and which channel it is for. The worker stores that in
 * IndexedDB, because it runs only for seconds at a time. Without it the worker still shows
 * notifications, and only reports nothing.
 */
(() => {
  "use strict";

  const CALL_MS = 10_000;
  const ANSWER_MS = 300; // Firefox lets a worker open a page for a second after a click
  const REPORTS_A_CALL = 20;
  const REPORTS_KEPT = 100;
  const NO_ADDRESS_MS = [250, 500, 1_000, 2_000, 0]; // waits after attempts
  /** @type {Kept} */
  const NOBODY = {}; // the record before push.js has said anything

  /**
   * @typedef {{ baseUrl?: string, channel?: string, endpoint?: string, id?: string,
   *   auth?: string, reports?: Report[] }} Kept `auth`: the subscription's, which proves its endpoint
   * @typedef {{ token: string, event: string, action?: string }} Report
   */

  /** The site's part of the scope; push.js has a scope without pages beside another worker. */
  const home = registration.scope.replace(/pushsvc-push-scope\/$/, "");

  /** @param {unknown} value */
  const text = (value) => (typeof value === "string" ? value : undefined);

  // --- the record: { baseUrl, channel, endpoint, id, auth, reports }, one record for each scope ---

  let memory = NOBODY; // if IndexedDB is blocked

  /**
   * @param {IDBTransactionMode} mode
   * @param {(store: IDBObjectStore) => IDBRequest} act
   * @returns {Promise<any>}
   */
  const stored = (mode, act) =>
    new Promise((resolve, reject) => {
      const opening = indexedDB.open("pushsvc", 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("scopes");
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => {
        const database = opening.result;
        const transaction = database.transaction("scopes", mode);
        const request = act(transaction.objectStore("scopes"));
        transaction.oncomplete = () => resolve(request.result);
        transaction.onabort = () => reject(transaction.error);
        database.close(); // once the transaction is over
      };
    });

  /** @returns {Promise<Kept>} */
  const load = async () => {
    try {
      return (await stored("readonly", (store) => store.get(registration.scope))) ?? memory;
    } catch {
      return memory;
    }
  };

  /** @param {Kept} record */
  const save = async (record) => {
    memory = record;
    await stored("readwrite", (store) => store.put(record, registration.scope)).catch(() => {});
  };

  /** A queue. It runs the functions that it is given one after another. */
  const queue = () => {
    let last = Promise.resolve();
    /** @param {() => Promise<void>} act */
    return (act) => {
      last = last.then(act).catch(() => {});
      return last;
    };
  };

  const inTurn = queue();

  /**
   * Stores what `next` makes of the record. No network call runs in this queue.
   *
   * @param {(record: Kept) => Kept} next
   */
  const change = (next) => inTurn(async () => save(next(await load())));

  // --- calls to the service ---

  /**
   * @param {string} url
   * @param {RequestInit} request
   */
  const call = (url, request) =>
    fetch(url, {
      credentials: "omit",
      cache: "no-store",
      signal: AbortSignal.timeout?.(CALL_MS),
      ...request,
    });

  const reporting = queue();

  /**
   * Reports that could not be sent are sent with the next ones. text/plain needs no preflight.
   *
   * @param {Report[]} more
   */
  const report = (...more) =>
    reporting(async () => {
      const { baseUrl, reports: kept = [] } = await load();
      const reports = [...kept, ...more].slice(-REPORTS_KEPT);
      if (!baseUrl || !reports.length) return;
      const left = await sent(baseUrl, reports);
      if (left.length || kept.length) await change((record) => ({ ...record, reports: left }));
    });

  /**
   * @param {string} baseUrl
   * @param {Report[]} reports
   */
  const sent = async (baseUrl, reports) => {
    try {
      const { ok, status } = await call(`${baseUrl}/events`, {
        method: "POST",
        keepalive: true,
        headers: { "Content-Type": "text/plain" },
        body: JSON.stringify({ events: reports.slice(0, REPORTS_A_CALL) }),
      });
      const isRefused = status >= 400 && status < 500 && status !== 429;
      return ok || isRefused ? reports.slice(REPORTS_A_CALL) : reports;
    } catch {
      return reports;
    }
  };

  /**
   * Tells the site's open pages.
   *
   * @param {string} event
   * @param {object} notification
   */
  const tell = async (event, notification) => {
    const { channel } = await load();
    const pages = await clients.matchAll({ type: "window", includeUncontrolled: true });
    for (const page of pages) page.postMessage({ pushsvc: event, channel, notification });
  };

  /**
   * `data` is what `show` put into the notification. It never rejects.
   *
   * @param {string} event
   * @param {any} data
   * @param {string} [action] the id of the button that was clicked
   */
  const announce = (event, { token, pushsvc, actions, click, ...notification }, action) =>
    Promise.allSettled([
      text(token) && report({ token, event, action }),
      tell(event, action ? { ...notification, action } : notification),
    ]);

  // --- showing ---

  /**
   * The payload of a notification that Safari proposes, which has the rest in its `data`.
   *
   * @param {any} notification
   */
  const proposed = ({ title, body, navigate, data }) => ({ ...data, title, body, url: navigate });

  /**
   * The payload as an object, whatever the event holds. Of a declarative message a browser may
   * give the notification that it would show by itself, and no data.
   *
   * @param {any} event
   */
  const read = ({ data, notification }) => {
    try {
      const message = data || !notification ? data?.json() : proposed(notification);
      return typeof message === "object" && message !== null ? message : {};
    } catch {
      return { body: data?.text() };
    }
  };

  /**
   * A message's buttons as browsers want them.
   *
   * @param {any} actions
   */
  const buttons = (actions = []) =>
    actions.map((/** @type {any} */ { id, title, icon }) => ({ action: id, title, icon }));

  /**
   * The number on the web app's icon. Browsers without it have no such function.
   *
   * @param {any} count
   */
  const setBadge = async (count) => {
    if (!Number.isInteger(count) || count < 0) return;
    /** @type {any} */
    const badging = navigator;
    await (count ? badging.setAppBadge?.(count) : badging.clearAppBadge?.());
  };

  /**
   * Shows first and reports afterwards. A site whose push shows nothing loses its permission.
   *
   * @param {any} message
   */
  const show = async (message) => {
    const title = text(message.title) || location.hostname;
    const body = text(message.body) ?? (text(message.title) ? "" : "You have a new message.");
    /** @type {any} */
    const data = { pushsvc: true, title, body, data: message.data, actions: message.actions };
    for (const name of ["notification_id", "url", "token", "click"])
      data[name] = text(message[name]);
    const options = { body, data, tag: data.notification_id }; // a repeat replaces itself
    try {
      await registration.showNotification(title, {
        ...options,
        icon: text(message.icon),
        image: text(message.image),
        actions: buttons(message.actions),
        ...message.options, // the sender's own tag, badge and so on
        body,
        data,
      });
    } catch {
      await registration.showNotification(title, options);
    }
    await Promise.allSettled([setBadge(message.app_badge), announce("received", data)]);
  };

  /**
   * Whether the service made this message, by the mark that docs/webpush.md promises.
   *
   * @param {any} message
   */
  const isMarked = ({ token, notification_id }) =>
    /^[\w-]{64}$/.test(token) && Boolean(text(notification_id));

  /** Whether only the service can send to this worker: the subscription is the one it was told. */
  const isOwnSubscription = async () => {
    const { endpoint } = await load();
    if (!endpoint) return false;
    return (await registration.pushManager.getSubscription())?.endpoint === endpoint;
  };

  /**
   * What others send to a worker that also has their handlers, those show.
   *
   * @param {any} message
   */
  const receive = async (message) => {
    if (isMarked(message) || (await isOwnSubscription())) await show(message);
  };

  // --- opening ---

  /**
   * The page to open: the notification's, if it is http or https or a path of this site, else the
   * site's own. `//`, and what browsers read as `//`, begins another host.
   *
   * @param {string} url
   */
  const target = (url) => {
    try {
      const isPath = /^\/(?![/\\\s])/.test(url);
      const { protocol, href } = new URL(url, isPath ? home : undefined);
      if (protocol === "https:" || protocol === "http:") return href;
    } catch {
      // no url, or an invalid one
    }
    return home;
  };

  /**
   * Asks push.js in the page. It answers true if a listener of the site has opened the link, else
   * false; it then navigates the page when `port` is sent the link. Undefined: push.js is not there.
   *
   * @param {WindowClient} page
   * @param {string} href
   * @param {any} data
   * @returns {Promise<{ answer?: boolean, port: MessagePort }>}
   */
  const ask = async (page, href, { token, pushsvc, actions, click, ...notification }) => {
    const { channel } = await load();
    const { port1: port, port2 } = new MessageChannel();
    return new Promise((resolve) => {
      port.onmessage = ({ data: answer }) => resolve({ answer, port });
      setTimeout(resolve, ANSWER_MS, { port });
      const event = click === "focus" ? "open" : "navigate";
      page.postMessage({ pushsvc: event, channel, notification: { ...notification, url: href } }, [
        port2,
      ]);
    });
  };

  /**
   * The site's tabs, the one that had the focus last first. Frames are no tabs.
   *
   * @param {boolean} includeUncontrolled
   */
  const tabs = async (includeUncontrolled) => {
    const pages = await clients.matchAll({ type: "window", includeUncontrolled });
    return pages.filter(({ frameType }) => frameType !== "nested");
  };

  /** @param {WindowClient | undefined} page */
  const focus = async (page) => Boolean(await page?.focus().catch(() => null));

  /**
   * Opens a link of the site in a tab that the visitor already has. Whether it did.
   *
   * A worker may navigate only the pages that it controls, so push.js navigates the others. Chromium
   * lets a worker focus a page or open another one, once for each click.
   *
   * @param {string} href
   * @param {any} data
   * @param {WindowClient} page
   */
  const openInTab = async (href, data, page) => {
    const controlled = await tabs(false);
    const isOwn = controlled.some(({ id }) => id === page.id);
    const isAsked = data.click === "focus" || !isOwn;
    const { answer, port } = isAsked ? await ask(page, href, data) : {};
    const tab = isOwn || answer !== undefined ? page : controlled[0];
    if (!(await focus(tab))) return false;
    if (answer === false) port?.postMessage(href);
    else if (!answer) await tab.navigate(href).catch(() => clients.openWindow(href));
    return true;
  };

  /**
   * @param {string} href
   * @param {any} data what `show` put into the notification
   */
  const open = async (href, data) => {
    const pages = await tabs(true);
    if (await focus(pages.find(({ url }) => url === href))) return;
    const isReused = data.click === "navigate" || data.click === "focus";
    if (isReused && pages.length && new URL(href).origin === location.origin) {
      if (await openInTab(href, data, pages[0])) return;
    }
    await clients.openWindow(href);
  };

  // --- another endpoint ---

  /**
   * Chromium after a subscription ended, and Edge on Android always, give out
   * `https://permanently-removed.invalid/…`. The service never gets it.
   *
   * @param {PushSubscription | null} subscription
   */
  const withAddress = (subscription) =>
    subscription && !/\.invalid$/.test(new URL(subscription.endpoint).hostname)
      ? subscription
      : undefined;

  /**
   * A new subscription. Undefined if the browser has no address for it.
   *
   * @param {string} key
   */
  const newSubscription = async (key) => {
    const options = { userVisibleOnly: true, applicationServerKey: key };
    for (const ms of NO_ADDRESS_MS) {
      const subscription = await registration.pushManager.subscribe(options);
      if (withAddress(subscription)) return subscription;
      await subscription.unsubscribe();
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
    return undefined;
  };

  /**
   * Subscribes again, names the endpoint that this replaces, and proves it with values that only
   * this browser was told. push.js repairs what fails here.
   *
   * @param {PushSubscription | null} ended
   */
  const resubscribe = async (ended) => {
    const { baseUrl, channel, endpoint, id, auth } = await load();
    const before = withAddress(ended);
    if (!baseUrl || !channel || !endpoint) return;
    if (before && before.endpoint !== endpoint) return; // another sender's
    await navigator.locks.request(`pushsvc:${channel}`, async () => {
      const headers = { "X-Channel-ID": channel, "Content-Type": "application/json" };
      const answer = await call(`${baseUrl}/web-push-key`, { headers });
      const { public_key: key } = await answer.json();
      const subscription = await newSubscription(key);
      if (!subscription) return;
      const subscribed = await call(`${baseUrl}/subscribe`, {
        method: "POST",
        headers,
        body: JSON.stringify({
          ...subscription.toJSON(),
          vapid_public_key: key,
          previous_endpoint: endpoint,
          previous_auth: before?.toJSON().keys?.auth ?? auth,
          previous_subscription_id: id,
        }),
      });
      if (!subscribed.ok) return;
      const known = {
        endpoint: subscription.endpoint,
        auth: subscription.toJSON().keys?.auth,
        id: (await subscribed.json()).subscriptionId,
      };
      await change((record) => ({ ...record, ...known }));
    });
  };

  // --- events ---

  const clicked = new Set(); // tokens: some browsers call it a dismissal when we close what was clicked

  self.addEventListener("push", (event) => {
    event.waitUntil(receive(read(event)).catch(() => {}));
  });

  self.addEventListener("notificationclick", (event) => {
    const { data } = event.notification;
    if (!data?.pushsvc) return; // another's, of a worker that does more than push
    event.stopImmediatePropagation(); // others open a page at a click on any notification
    const action = event.action || undefined;
    const button = data.actions?.find?.((/** @type {any} */ { id }) => id === action);
    clicked.add(data.token);
    event.notification.close();
    const opened = open(target(button?.url ?? data.url), data);
    event.waitUntil(Promise.allSettled([opened, announce("clicked", data, action)]));
  });

  self.addEventListener("notificationclose", (event) => {
    const { data } = event.notification;
    if (!data?.pushsvc || clicked.delete(data.token)) return;
    event.waitUntil(announce("dismissed", data));
  });

  self.addEventListener("pushsubscriptionchange", (event) => {
    event.waitUntil(resubscribe(event.oldSubscription).catch(() => {}));
  });

  self.addEventListener("message", (event) => {
    const { takeOver, ...about } = event.data?.pushsvc ?? {};
    if (!about.baseUrl) return;
    if (takeOver) skipWaiting();
    event.waitUntil(
      change(({ reports, ...reported }) => {
        const isOwn = reported.channel === about.channel;
        const own = isOwn ? reported : {};
        event.ports[0]?.postMessage({ endpoint: own.endpoint, id: own.id, auth: own.auth });
        // Only a subscription takes the place of another channel's.
        const isKept = !isOwn && reported.endpoint && !about.endpoint;
        return isKept ? { ...reported, reports } : { ...own, reports, ...about };
      }).then(() => report()),
    );
  });
})();
