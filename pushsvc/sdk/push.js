/*
 * pushsvc in the page: subscribes this browser to a channel, and keeps the subscription right.
 *
 *   const push = pushsvc.init({ channel: "<channel id>", serviceWorker: "/push-sw.js" });
 *   button.onclick = () => push.subscribe({ attributes: { plan: "pro" } });
 *
 * This is a classic script, which sets `pushsvc`; the ES module is /sdk/push.mjs, the types are
 * /sdk/push.d.ts. One record for each channel in localStorage says what the site wants and what
 * the service was told last. `#synchronize` makes browser and service agree with it, wherever an
 * earlier attempt ended. So it is always safe to repeat.
 */
(() => {
  "use strict";

  /**
   * @typedef {import("./push").Attributes} Attributes
   * @typedef {import("./push").ErrorCode} ErrorCode
   * @typedef {import("./push").Events} Events
   * @typedef {import("./push").Options} Options
   * @typedef {import("./push").Problem} Problem
   * @typedef {import("./push").Subscribed} Subscribed
   * @typedef {{ id?: string, endpoint?: string, attributes?: Attributes, isWanted?: boolean,
   *   isPending?: boolean, hasLeft?: boolean, settledAt?: number }} State what localStorage holds
   *   for a channel
   * @typedef {{ id?: string, endpoint?: string }} Reported what the service was told last
   */

  // After this time a visit registers again, in case the service took the browser for gone.
  const SETTLED_FOR_MS = 12 * 3600 * 1000;
  const CALL_MS = 15_000;
  const WORKER_MS = 10_000;
  const REPLACED_WORKER_MS = 2_000; // if a newer one waits to take its place
  const PUSH_SERVICE_MS = 20_000; // some browsers without one never answer

  const TODO = {
    permission_denied:
      "Notifications are blocked for this site. Allow them in the browser's settings for this site; some block them in private windows.",
    permission_dismissed:
      "The browser's question was closed without an answer. Ask again at another click.",
    insecure_context: "Push needs https or localhost. Open the page over https.",
    private_mode: "Private windows of this browser have no push. Open the page in a normal one.",
    ios_needs_install:
      "On iPhone and iPad push works only in installed web apps. Tap Share, Add to Home Screen, and open the app from there.",
    unsupported: "This browser has no web push. Update it, or use another.",
    no_service_worker:
      "The service worker does not work. Serve the file that `init` names from this site, as JavaScript, with the importScripts line in it.",
    push_service_unreachable:
      "The browser cannot reach its push service. Check the network; some Chromium builds have no push service, and Brave has it switched off in its settings.",
    storage_blocked:
      "The browser stores no data for this site, and push needs that. Allow cookies and site data in the browser's settings for this site.",
    offline:
      "The service cannot be reached. This is tried again when the network is back, or at the next visit.",
    refused: "The service refused the request.",
    not_subscribed: "This browser is not subscribed. Call subscribe() first.",
  };

  class PushError extends Error {
    /**
     * `problem`: what the service answered (RFC 9457). `willRetry`: nothing needs to be done.
     *
     * @param {ErrorCode} code
     * @param {{ cause?: any, problem?: Problem, willRetry?: boolean }} about
     */
    constructor(code, { cause, problem, willRetry = false } = {}) {
      const words = problem?.detail ?? cause?.message;
      super(words ? `${TODO[code]} (${words})` : TODO[code], { cause });
      this.name = "PushError";
      this.code = code;
      this.problem = problem;
      this.willRetry = willRetry;
    }
  }

  /**
   * The code of what prevents push on this page, whatever the user answers, or undefined.
   *
   * @returns {ErrorCode | undefined}
   */
  const obstacle = () => {
    if (!isSecureContext) return "insecure_context";
    const hasWorkers = "serviceWorker" in navigator;
    if (hasWorkers && "PushManager" in window && "Notification" in window) return undefined;
    // An iPad calls itself a Mac, but no Mac has a touch screen.
    const isIos =
      /iP(hone|ad|od)/.test(navigator.userAgent) ||
      (navigator.platform === "MacIntel" && navigator.maxTouchPoints > 1);
    if (isIos && !navigator.standalone) return "ios_needs_install";
    return !hasWorkers && /Firefox\//.test(navigator.userAgent) ? "private_mode" : "unsupported";
  };

  /**
   * The result of `promise`, or an Error with these words after `ms`.
   *
   * @template T
   * @param {number} ms
   * @param {Promise<T>} promise
   * @param {string} words
   * @returns {Promise<T>}
   */
  const within = (ms, promise, words) =>
    Promise.race([
      promise,
      new Promise((_, reject) => {
        setTimeout(reject, ms, new Error(words));
      }),
    ]);

  const askPermission = async () => {
    const { permission } = Notification;
    const answer = permission === "default" ? await Notification.requestPermission() : permission;
    if (answer === "denied") throw new PushError("permission_denied");
    if (answer !== "granted") throw new PushError("permission_dismissed");
  };

  /**
   * Waits until `worker` is active. `ready` would never end on a page outside of its scope.
   *
   * @param {ServiceWorker} worker
   * @returns {Promise<ServiceWorker>}
   */
  const activated = (worker) =>
    new Promise((resolve, reject) => {
      const look = () => {
        if (/^activat/.test(worker.state)) resolve(worker);
        else if (worker.state === "redundant") reject(new Error("It failed to install."));
      };
      worker.addEventListener("statechange", look);
      look();
    });

  /**
   * Tells the worker what it needs when no page is open. It answers with what the service was told
   * last, if it knows that. Rejects if the worker is not ours.
   *
   * @param {ServiceWorker} worker
   * @param {object} about
   * @returns {Promise<Reported>}
   */
  const introduce = (worker, about, ms = WORKER_MS) => {
    const { port1, port2 } = new MessageChannel();
    const answer = new Promise((resolve) => {
      port1.onmessage = ({ data }) => resolve(data);
    });
    worker.postMessage({ pushsvc: about }, [port2]);
    return within(
      ms,
      answer,
      "It does not answer: the importScripts line is missing, or an old file is still in use.",
    );
  };

  /** @param {ArrayBuffer} buffer */
  const base64url = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replaceAll("+", "-")
      .replaceAll("/", "_")
      .replaceAll("=", "");

  /**
   * The browser's subscription for this key. Ends one for another key.
   *
   * @param {PushManager} manager
   * @param {string} key
   */
  const browserSubscribe = async (manager, key) => {
    const known = await manager.getSubscription();
    const knownKey = known?.options.applicationServerKey;
    if (knownKey && base64url(knownKey) === key) return known;
    await known?.unsubscribe();
    try {
      const options = { userVisibleOnly: true, applicationServerKey: key };
      return await within(PUSH_SERVICE_MS, manager.subscribe(options), "No answer.");
    } catch (cause) {
      if (cause.name === "NotAllowedError") throw new PushError("permission_denied", { cause });
      // Only Chrome's private windows say this; elsewhere it is a NotAllowedError.
      if (/permission denied/.test(cause.message)) throw new PushError("private_mode", { cause });
      const code = navigator.onLine ? "push_service_unreachable" : "offline";
      throw new PushError(code, { cause, willRetry: true });
    }
  };

  class PushClient extends EventTarget {
    #channel;
    #base;
    #worker;
    /** @type {State} the record, if localStorage is blocked */
    #unstored = {};

    /** @param {Options} options */
    constructor({ channel, serviceWorker, baseUrl = globalThis.pushsvc.origin }) {
      super();
      if (!channel || !serviceWorker || !baseUrl) {
        throw new TypeError(
          "pushsvc.init needs `channel` and `serviceWorker`, and `baseUrl`" +
            " if push.js is not a script of the page.",
        );
      }
      this.#channel = channel;
      this.#base = new URL(baseUrl, location.href).origin;
      this.#worker = new URL(serviceWorker, location.href);
      if (obstacle()) return;
      navigator.serviceWorker.addEventListener("message", (event) => this.#relay(event.data));
      addEventListener("online", () => this.#resume());
      this.#resume();
    }

    get permission() {
      return "Notification" in window ? Notification.permission : "unsupported";
    }

    async isSubscribed() {
      const { id, hasLeft } = this.#record;
      if (obstacle() || this.permission !== "granted" || !id || hasLeft) return false;
      return Boolean(await this.#subscription());
    }

    /** @param {{ attributes?: Attributes }} options */
    async subscribe({ attributes } = {}) {
      const code = obstacle();
      if (code) throw new PushError(code);
      await askPermission(); // first, because the click allows the question only for a moment
      const change = { isWanted: true, ...(attributes && { attributes }) };
      return /** @type {Promise<Subscribed>} */ (this.#synchronize(change));
    }

    /** @param {Attributes} attributes */
    async setAttributes(attributes) {
      if (!this.#record.isWanted) throw new PushError("not_subscribed");
      await this.#synchronize({ attributes });
    }

    async unsubscribe() {
      if (obstacle()) return;
      try {
        await this.#synchronize({ isWanted: false });
      } catch (error) {
        if (!error.willRetry) throw error; // the browser has left, and the service is told later
      }
      this.#emit("unsubscribed", {});
    }

    /** At a visit, and when the network is back: does what is left to do. Asks the user nothing. */
    async #resume() {
      try {
        if (await this.#isDue()) await this.#synchronize({});
      } catch (error) {
        this.#emit("error", error);
      }
    }

    async #isDue() {
      const { isWanted, isPending, settledAt, endpoint } = this.#record;
      if (!isWanted) return isPending;
      if (this.permission !== "granted") return false;
      if (isPending || !(Date.now() - (settledAt ?? 0) < SETTLED_FOR_MS)) return true;
      return (await this.#subscription())?.endpoint !== endpoint;
    }

    /**
     * Runs once at a time in all of the site's tabs and in its worker.
     *
     * @param {State} change
     */
    async #synchronize(change) {
      let isAlone = false;
      try {
        return await navigator.locks.request(`pushsvc:${this.#channel}`, () => {
          isAlone = true;
          return this.#synchronizeAlone(change);
        });
      } catch (cause) {
        throw isAlone ? cause : new PushError("storage_blocked", { cause });
      }
    }

    /** @param {State} change */
    async #synchronizeAlone(change) {
      this.#note({ ...change, isPending: true });
      try {
        return await (this.#record.isWanted ? this.#join() : this.#leave());
      } catch (error) {
        const { isWanted, id, hasLeft } = this.#record;
        const willRetry = error.willRetry === true;
        const isKnown = Boolean(id) && !hasLeft;
        // A first attempt that failed permanently is not repeated at a visit. If the service does
        // not know yet that the browser left, it is still told.
        this.#note({
          isPending: willRetry || Boolean(isWanted && hasLeft),
          isWanted: isWanted && (willRetry || isKnown),
        });
        throw error;
      }
    }

    async #join() {
      const { registration, reported } = await this.#registered();
      const { public_key: key } = await this.#call("/web-push-key");
      const subscription = await browserSubscribe(registration.pushManager, key);
      const { attributes, hasLeft, id: ownId } = this.#record;
      // The worker may have moved the subscription since a page stored its endpoint. Another id is
      // another subscription, which the worker made because it had no proof.
      const isNewer = reported.id && reported.id === (ownId ?? reported.id);
      const { id, endpoint: before } = isNewer ? reported : this.#record;
      const { endpoint } = subscription;
      const isChanged = before !== undefined && before !== endpoint;
      const answer = await this.#call("/subscribe", {
        ...subscription.toJSON(),
        vapid_public_key: key,
        attributes,
        previous_endpoint: isChanged ? before : undefined,
        previous_subscription_id: id, // proof that this browser is the one from before
      });
      const result = { subscriptionId: answer.subscriptionId, endpoint };
      this.#note({
        id: answer.subscriptionId,
        endpoint,
        attributes: undefined,
        hasLeft: undefined,
        isPending: false,
        settledAt: Date.now(),
      });
      const known = { endpoint, id: answer.subscriptionId };
      const worker = /** @type {ServiceWorker} */ (registration.active);
      await introduce(worker, { ...this.#about, ...known }).catch(() => {});
      if (!ownId || hasLeft) this.#emit("subscribed", result);
      else if (isChanged) this.#emit("changed", { ...result, previousEndpoint: before });
      return result;
    }

    async #leave() {
      const registration = await this.#registration();
      const subscription = await registration?.pushManager.getSubscription();
      const endpoint = subscription?.endpoint ?? this.#record.endpoint;
      await subscription?.unsubscribe();
      this.#note({ endpoint, hasLeft: true }); // keeps the id, which is proof until the service knows
      if (endpoint) await this.#call("/unsubscribe", { endpoint });
      const nothing = { endpoint: undefined, id: undefined };
      this.#note({ ...nothing, attributes: undefined, hasLeft: undefined, isPending: false });
      if (registration?.active) {
        introduce(registration.active, { ...this.#about, ...nothing }).catch(() => {});
      }
    }

    /** The registration, and what its worker reported last. */
    async #registered() {
      try {
        const registration = await navigator.serviceWorker.register(this.#worker);
        return { registration, reported: await this.#greet(registration) };
      } catch (cause) {
        const isOffline = !navigator.onLine;
        const code = isOffline ? "offline" : "no_service_worker";
        throw new PushError(code, { cause, willRetry: isOffline });
      }
    }

    /**
     * If the active worker is from before the site added the importScripts line, its successor
     * takes over at once. Otherwise it would wait until all tabs of the site are closed.
     *
     * @param {ServiceWorkerRegistration} registration
     */
    async #greet(registration) {
      const { active, waiting, installing } = registration;
      const worker = /** @type {ServiceWorker} */ (active ?? waiting ?? installing);
      try {
        const ms = waiting ? REPLACED_WORKER_MS : WORKER_MS;
        return await introduce(await activated(worker), this.#about, ms);
      } catch (error) {
        await registration.update().catch(() => {});
        const next = registration.installing ?? registration.waiting;
        if (!next) throw error;
        const reported = await introduce(next, { ...this.#about, takeOver: true });
        await activated(next);
        return reported;
      }
    }

    /** The subscription that the browser has now. */
    async #subscription() {
      return (await this.#registration())?.pushManager.getSubscription();
    }

    /** The registration of our worker. A worker of a wider scope is another one. */
    async #registration() {
      const scope = new URL("./", this.#worker).href;
      const registration = await navigator.serviceWorker.getRegistration(scope);
      return registration?.scope === scope ? registration : undefined;
    }

    /**
     * @param {string} path
     * @param {object} [body]
     */
    async #call(path, body) {
      /** @type {Record<string, string>} */
      const headers = { "X-Channel-ID": this.#channel };
      /** @type {RequestInit} */
      const request = { headers, credentials: "omit", cache: "no-store" };
      if (body) {
        headers["Content-Type"] = "application/json";
        Object.assign(request, { method: "POST", body: JSON.stringify(body) });
      }
      let response;
      try {
        response = await fetch(this.#base + path, {
          ...request,
          signal: AbortSignal.timeout?.(CALL_MS),
        });
      } catch (cause) {
        throw new PushError("offline", { cause, willRetry: true });
      }
      const answer = await response.json().catch(() => ({}));
      if (response.ok) return answer;
      const { status } = response;
      const willRetry = status >= 500 || status === 429 || status === 408;
      throw new PushError("refused", { problem: { status, ...answer }, willRetry });
    }

    get #about() {
      return { baseUrl: this.#base, channel: this.#channel };
    }

    /** @returns {State} */
    get #record() {
      try {
        return (
          JSON.parse(localStorage.getItem(`pushsvc:${this.#channel}`) ?? "null") ?? this.#unstored
        );
      } catch {
        return this.#unstored;
      }
    }

    /** @param {State} change */
    #note(change) {
      this.#unstored = { ...this.#record, ...change };
      try {
        localStorage.setItem(`pushsvc:${this.#channel}`, JSON.stringify(this.#unstored));
      } catch {
        // blocked or full: the record lasts as long as this page
      }
    }

    /**
     * Passes on what the worker saw. It tells every page of the site.
     *
     * @param {any} data
     */
    #relay(data) {
      const { pushsvc: event, channel, notification } = data ?? {};
      if (channel !== this.#channel) return;
      if (["received", "clicked", "dismissed"].includes(event)) this.#emit(event, notification);
    }

    /**
     * @template {keyof Events & string} Name
     * @param {Name} type
     * @param {Events[Name]["detail"]} detail
     */
    #emit(type, detail) {
      this.dispatchEvent(new CustomEvent(type, { detail }));
    }
  }

  const script = /** @type {HTMLScriptElement | null} */ (document.currentScript)?.src;
  globalThis.pushsvc = {
    origin: script && new URL(script).origin,
    init: (options) => new PushClient(options),
    PushError,
  };
})();
