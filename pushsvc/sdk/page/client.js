import {
  answers,
  askPermission,
  browserSubscribe,
  greet,
  hasAddress,
  introduce,
  keyOf,
  locale,
  obstacle,
  register,
  registrationAt,
  SHORT_MS,
  scopesOf,
} from "./browser.js";
import { PushError } from "./errors.js";
import { NOTHING_UNSAID, PushRecord, personKnown, withTags } from "./record.js";
import { callService } from "./service.js";

/**
 * @typedef {import("../push").Category} Category
 * @typedef {import("../push").Choices} Choices
 * @typedef {import("../push").Events} Events
 * @typedef {import("../push").Inbox} Inbox
 * @typedef {import("../push").Options} Options
 * @typedef {import("../push").Subscribed} Subscribed
 * @typedef {import("../push").Attributes} Attributes
 * @typedef {import("./record.js").Login} Login
 * @typedef {import("./record.js").Reported} Reported
 * @typedef {import("./record.js").State} State
 * @typedef {State | ((record: State) => State)} Change
 * @typedef {{ subscribed?: Subscribed, refusal?: PushError }} Settled `refusal`: of the login alone
 */

// After this time a visit registers again, in case the service took the browser for gone.
const SETTLED_FOR_MS = 12 * 3600 * 1000;

/**
 * @typedef {{ channel: string, base: string, worker: string, type: WorkerType,
 *   sendLocale: boolean }} Settings
 */

class PushClient extends EventTarget {
  #channel;
  #base;
  #worker;
  #workerType;
  #sendLocale;
  #stored;
  #resumed;
  #hasErrorListener = false;

  /** @param {Settings} settings */
  constructor({ channel, base, worker, type, sendLocale }) {
    super();
    this.#channel = channel;
    this.#base = base;
    this.#worker = new URL(worker);
    this.#workerType = type;
    this.#sendLocale = sendLocale;
    this.#stored = new PushRecord(channel);
    if (obstacle()) return;
    navigator.serviceWorker.addEventListener("message", (event) => this.#relay(event));
    this.#stored.onTold((type, detail, cause) => {
      const error = { ...detail, cause: cause && new Error(cause) };
      this.#fire(type, type === "error" ? new PushError(detail.code, error) : detail);
    });
    addEventListener("online", () => {
      this.#resumed = this.#resume();
    });
    this.#resumed = this.#resume();
  }

  /** @param {Parameters<EventTarget["addEventListener"]>} given */
  addEventListener(...given) {
    if (given[0] === "error") this.#hasErrorListener = true;
    super.addEventListener(...given);
  }

  get permission() {
    return globalThis.Notification?.permission ?? "unsupported";
  }

  async isSubscribed() {
    await this.#recall();
    if (obstacle() || !this.#record.id) return false;
    if (await this.#isReceiving()) return true;
    await this.#resumed; // which repairs what it can
    return this.#isReceiving();
  }

  /** @param {{ attributes?: Attributes, takeOver?: boolean }} options */
  async subscribe({ attributes, takeOver } = {}) {
    const code = obstacle();
    if (code) throw new PushError(code);
    await askPermission(); // first, because the click allows the question only for a moment
    await this.#recall();
    const wish = { isWanted: true, takeOver, ...(attributes && { attributes }) };
    const settled = await this.#settle(wish);
    return /** @type {Subscribed} */ (settled);
  }

  /** @param {Attributes} attributes */
  async setAttributes(attributes) {
    this.#demandWanted();
    await this.#settle({ attributes });
  }

  /**
   * @param {string} externalId
   * @param {string} [token]
   */
  login(externalId, token) {
    // As text, so that a missing id is refused, and never taken for a logout.
    return this.#identify({ external_id: String(externalId), identity_token: token });
  }

  logout() {
    return this.#identify({ external_id: null });
  }

  /** @param {string | string[]} tags */
  async addTags(tags) {
    this.#demandWanted();
    await this.#settle(({ add_tags, remove_tags }) => {
      const [added, removed] = withTags([tags].flat(), add_tags, remove_tags);
      return { add_tags: added, remove_tags: removed };
    });
  }

  /** @param {string | string[]} tags */
  async removeTags(tags) {
    this.#demandWanted();
    await this.#settle(({ add_tags, remove_tags }) => {
      const [removed, added] = withTags([tags].flat(), remove_tags, add_tags);
      return { add_tags: added, remove_tags: removed };
    });
  }

  preferences() {
    return this.#prefer();
  }

  /** @param {Choices} choices */
  setPreferences(choices) {
    return this.#prefer(choices);
  }

  /** @param {{ limit?: number, before?: string }} page */
  async inbox({ limit, before } = {}) {
    this.#demandWanted();
    const { endpoint, keys } = (await this.#subscription())?.toJSON() ?? {};
    const page = await this.#call("/inbox", { endpoint, keys, limit, before });
    return /** @type {Inbox} */ (page);
  }

  /**
   * @param {string} token
   * @param {"received" | "clicked" | "dismissed"} event
   */
  async report(token, event) {
    await this.#call("/events", { events: [{ token, event }] });
  }

  async badge() {
    const { unread } = await this.inbox({ limit: 1 });
    await (unread ? navigator.setAppBadge?.(unread) : navigator.clearAppBadge?.());
    return unread;
  }

  async unsubscribe() {
    if (obstacle()) return;
    try {
      await this.#settle({ isWanted: false });
    } catch (error) {
      if (!error.willRetry) throw error; // the browser has left, and the service is told later
    }
    this.#emit("unsubscribed", {});
  }

  /** At a visit, and when the network is back: does what is left to do. Asks the user nothing. */
  async #resume() {
    try {
      await this.#recall();
      if (await this.#isDue()) await this.#settle({});
    } catch (error) {
      this.#emit("error", error);
    }
  }

  async #isDue() {
    const { isWanted, isPending, settledAt, endpoint } = this.#record;
    if (!isWanted) return isPending;
    if (this.permission !== "granted") return false;
    if (isPending || !(Date.now() - (settledAt ?? 0) < SETTLED_FOR_MS)) return true;
    return (await this.#subscription())?.endpoint !== endpoint || !(await this.#isReceiving());
  }

  /** Whether the subscription is the channel's, and its worker is ours and answers. */
  async #isReceiving() {
    const { id, hasLeft } = this.#record;
    if (this.permission !== "granted" || !id || hasLeft) return false;
    const isOwn = this.#isOwn(await this.#subscription());
    return isOwn && answers((await this.#registration())?.active, this.#about);
  }

  /** @param {PushSubscription | null | undefined} subscription */
  #isOwn(subscription) {
    const { endpoint, key } = this.#record;
    return !!subscription && (subscription.endpoint === endpoint || keyOf(subscription) === key);
  }

  /** Learns from the worker what the site has cleared, with the user's data for example. */
  async #recall() {
    if (this.permission !== "granted" || "isWanted" in this.#record) return;
    for (const scope of Object.values(scopesOf(this.#worker))) {
      try {
        const { active, pushManager } = /** @type {any} */ (await registrationAt(scope));
        const { endpoint } = /** @type {any} */ (await pushManager.getSubscription());
        const known = await introduce(active, this.#about, SHORT_MS);
        if (known.endpoint === endpoint) this.#stored.note({ ...known, isWanted: true, scope });
      } catch {
        // no such worker or subscription
      }
    }
  }

  #demandWanted() {
    if (!this.#record.isWanted) throw new PushError("not_subscribed");
  }

  /**
   * Before `subscribe` it is only kept, and goes to the service with that. If the service knows it,
   * nothing is called: sites say on every page who is signed in.
   *
   * @param {Login} login
   */
  async #identify(login) {
    await this.#recall();
    const { isWanted, login: unsaid, externalId } = this.#record;
    if (!isWanted) return this.#stored.note({ login });
    if (!unsaid && externalId === login.external_id) return;
    const { refusal } = await this.#synchronize({ login });
    if (refusal) throw refusal;
  }

  /**
   * The categories, after the choices if there are some.
   *
   * @param {Choices} [choices]
   */
  async #prefer(choices) {
    this.#demandWanted();
    if (await this.#isDue()) await this.#settle({}); // the service keeps no choices of a stranger
    const { endpoint, keys } = (await this.#subscription())?.toJSON() ?? {};
    const { categories } = await this.#call("/preferences", { endpoint, keys, choices });
    return /** @type {Category[]} */ (categories);
  }

  /**
   * Synchronizes. A login that is refused there is no failure of this call: `error` tells it.
   *
   * @param {Change} change
   */
  async #settle(change) {
    const { subscribed, refusal } = await this.#synchronize(change);
    if (refusal) this.#emit("error", refusal);
    return subscribed;
  }

  /**
   * Runs once at a time in all of the site's tabs and in its worker.
   *
   * @param {Change} change
   * @returns {Promise<Settled>}
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

  /** @param {Change} change */
  async #synchronizeAlone(change) {
    const changed = typeof change === "function" ? change(this.#record) : change;
    this.#stored.note({ ...changed, isPending: true });
    try {
      return await (this.#record.isWanted ? this.#join() : this.#leave());
    } catch (error) {
      const { isWanted, id, hasLeft } = this.#record;
      const willRetry = error.willRetry === true;
      const isKnown = Boolean(id) && !hasLeft;
      // What the service refuses is not sent again, or the next call would fail by it too.
      if (error.code === "refused" && !willRetry) this.#stored.note(NOTHING_UNSAID);
      // A first attempt that failed permanently is not repeated at a visit. If the service does
      // not know yet that the browser left, it is still told.
      this.#stored.note({
        isPending: willRetry || Boolean(isWanted && hasLeft),
        isWanted: isWanted && (willRetry || isKnown),
      });
      throw error;
    }
  }

  /**
   * @param {{ isNew: boolean }} [refused] if the browser's subscription has another key
   * @returns {Promise<Settled>}
   */
  async #join(refused) {
    const { registration, reported, rival } = await this.#registered();
    const { public_key: key, retired_keys: retired = [] } = await this.#call("/web-push-key");
    const left = await registration.pushManager.getSubscription();
    // Of a browser that was imported, no page has stored the address that the service knows.
    if (left && !this.#record.id && retired.includes(keyOf(left))) {
      this.#stored.note({ endpoint: left.endpoint, auth: left.toJSON().keys?.auth });
    }
    const record = this.#record;
    /** @param {PushSubscription} known */
    const mayEnd = (known) =>
      record.takeOver ||
      this.#isOwn(known) ||
      known.endpoint === reported.endpoint ||
      [key, ...retired].includes(keyOf(known));
    const isRefused = Boolean(refused);
    const { pushManager, scope } = registration;
    const subscription = await browserSubscribe(pushManager, key, mayEnd, isRefused);
    const isNew = refused?.isNew ?? Boolean(!record.id || record.hasLeft);
    // The worker may have moved the subscription since a page stored its endpoint. Another id is
    // another subscription, which the worker made because it had no proof.
    const isMoved = scope !== (record.scope ?? scope);
    const isNewer = !isMoved && reported.id && reported.id === (record.id ?? reported.id);
    const { id, endpoint: before, auth } = isNewer ? reported : record;
    const { endpoint, keys } = subscription.toJSON();
    const isChanged = before !== undefined && before !== endpoint;
    const { answer, refusal } = await this.#register(record, {
      endpoint,
      keys,
      vapid_public_key: key,
      ...(isChanged && { previous_endpoint: before, previous_auth: auth }),
      previous_subscription_id: id, // proof that this browser is the one from before
    });
    const known = { id: answer.subscriptionId, endpoint, auth: keys?.auth };
    this.#stored.note({
      ...NOTHING_UNSAID,
      ...known,
      key,
      scope,
      worker: this.#worker.href,
      externalId: personKnown(record, known.id, refusal),
      takeOver: undefined,
      hasLeft: undefined,
      isPending: false,
      settledAt: Date.now(),
    });
    const worker = /** @type {ServiceWorker} */ (registration.active);
    await introduce(worker, { ...this.#about, ...known }).catch(() => {});
    if (answer.resubscribe && !refused) {
      const settled = await this.#join({ isNew });
      return { ...settled, refusal: settled.refusal ?? refusal };
    }
    const subscribed = { subscriptionId: answer.subscriptionId, endpoint: subscription.endpoint };
    await this.#leaveOther(scope, mayEnd);
    if (isNew) this.#emit("subscribed", subscribed);
    else if (isChanged) this.#emit("changed", { ...subscribed, previousEndpoint: before });
    if (rival && isMoved && !isNew) this.#emit("error", this.#replaced(`${rival} is there.`, true));
    return { subscribed, refusal };
  }

  /**
   * Ends what the browser keeps of our worker in another scope than this.
   *
   * @param {string} scope
   * @param {(subscription: PushSubscription) => unknown} mayEnd
   */
  async #leaveOther(scope, mayEnd) {
    const { folder, beside } = scopesOf(this.#worker);
    const other = await registrationAt(scope === folder ? beside : folder);
    const subscription = await other?.pushManager.getSubscription();
    if (subscription && mayEnd(subscription)) await subscription.unsubscribe();
    if (other?.scope === beside) await other.unregister();
  }

  /**
   * A login that the service refuses must not cost the subscription, which is then registered
   * without it.
   *
   * @param {State} record
   * @param {object} device
   */
  async #register({ attributes, add_tags, remove_tags, login }, device) {
    const about = { ...device, attributes, add_tags, remove_tags };
    try {
      return { answer: await this.#registerHere({ ...about, ...login }) };
    } catch (refusal) {
      if (!login || refusal.willRetry) throw refusal;
      return { refusal, answer: await this.#registerHere(about) };
    }
  }

  /**
   * A browser may know time zones and languages that the service does not know. They must not cost
   * the subscription.
   *
   * @param {object} about
   */
  async #registerHere(about) {
    /** @type {Record<string, string>} */
    const here = this.#sendLocale ? locale() : {};
    try {
      return await this.#call("/subscribe", { ...about, ...here });
    } catch (refusal) {
      const refused = (refusal.problem?.errors ?? []).filter(
        (/** @type {any} */ { attr }) => attr in here,
      );
      if (!refused.length) throw refusal;
      for (const { attr } of refused) delete here[attr];
      return this.#call("/subscribe", { ...about, ...here });
    }
  }

  /** @returns {Promise<Settled>} */
  async #leave() {
    const registration = await this.#registration();
    const subscription = await this.#subscription();
    const isOwn = this.#isOwn(subscription);
    const endpoint = isOwn ? subscription?.endpoint : this.#record.endpoint;
    if (isOwn) await subscription?.unsubscribe();
    this.#stored.note({ endpoint, hasLeft: true }); // keeps the id, which is proof until the service knows
    if (endpoint) await this.#call("/unsubscribe", { endpoint });
    const nothing = { endpoint: undefined, id: undefined, auth: undefined };
    this.#stored.note({
      ...NOTHING_UNSAID,
      ...nothing,
      login: this.#record.login, // said before the next subscribe
      externalId: undefined,
      hasLeft: undefined,
      isPending: false,
    });
    if (registration?.active) {
      introduce(registration.active, { ...this.#about, ...nothing }).catch(() => {});
    }
    return {};
  }

  /** The registration, and what its worker reported last. */
  async #registered() {
    try {
      const made = await register(this.#worker, this.#workerType, this.#record.worker, this.#about);
      return { ...made, reported: await greet(made.registration, this.#about) };
    } catch (cause) {
      const isOffline = !navigator.onLine;
      if (cause.rival && !isOffline) throw this.#replaced(cause.message);
      const code = isOffline ? "offline" : "no_service_worker";
      throw new PushError(code, { cause, willRetry: isOffline });
    }
  }

  /**
   * @param {string} words
   * @param {boolean} [willRetry]
   */
  #replaced(words, willRetry) {
    const line = `importScripts("${this.#base}/sdk/push-sw.js");`;
    const cause = new Error(`${words} The line: ${line}`);
    return new PushError("worker_replaced", { cause, willRetry });
  }

  /** The subscription that the browser has now. One without an address is none. */
  async #subscription() {
    const subscription = await (await this.#registration())?.pushManager.getSubscription();
    return hasAddress(subscription) ? subscription : undefined;
  }

  /** The registration of our worker. A worker of a wider scope is another one. */
  #registration() {
    return registrationAt(this.#record.scope ?? scopesOf(this.#worker).folder);
  }

  /**
   * @param {string} path
   * @param {object} [body]
   */
  #call(path, body) {
    return callService(this.#base + path, this.#channel, body);
  }

  get #about() {
    return { baseUrl: this.#base, channel: this.#channel };
  }

  get #record() {
    return this.#stored.read();
  }

  /**
   * Passes on what the worker saw. It tells every page of the site.
   *
   * @param {MessageEvent} message
   */
  #relay({ data, ports }) {
    const { pushsvc: event, channel, notification } = data ?? {};
    if (channel !== this.#channel) return;
    if (event === "open" || event === "navigate") {
      ports[0].onmessage = ({ data: href }) => location.assign(href);
      ports[0].postMessage(event === "open" && !this.#fire("open", notification));
    }
    if (["received", "clicked", "dismissed"].includes(event)) this.#fire(event, notification);
  }

  /**
   * Fires an event in all tabs of the site.
   *
   * @template {keyof Events & string} Name
   * @param {Name} type
   * @param {Events[Name]["detail"]} detail
   */
  #emit(type, detail) {
    this.#stored.tell(type, detail);
    this.#fire(type, detail);
  }

  /**
   * An error to which no page listens is written to the console, unless nothing needs to be done.
   *
   * @template {keyof Events & string} Name
   * @param {Name} type
   * @param {Events[Name]["detail"]} detail
   * @returns whether no listener has called preventDefault()
   */
  #fire(type, detail) {
    if (detail instanceof PushError && !this.#hasErrorListener) {
      const isSilent = detail.willRetry && detail.code !== "worker_replaced"; // which loses messages
      if (!isSilent) console.warn(`pushsvc: ${detail.message}`);
    }
    return this.dispatchEvent(new CustomEvent(type, { detail, cancelable: type === "open" }));
  }
}

/** @type {Map<string, { client: PushClient, settings: string }>} by channel */
const clients = new Map();

/**
 * The page's client for a channel. Repeated with the same options it is the same one.
 *
 * @param {Options} options
 */
export const init = ({
  channel,
  serviceWorker,
  baseUrl = globalThis.pushsvc?.origin,
  workerType: type = "classic",
  sendLocale = false,
}) => {
  if (!channel || !serviceWorker || !baseUrl) {
    throw new TypeError(
      "pushsvc.init needs `channel` and `serviceWorker`, and `baseUrl`" +
        " if push.js is not a script of the page.",
    );
  }
  const here = globalThis.location?.href ?? baseUrl; // a server that renders pages has no location
  const base = new URL(baseUrl, here).origin;
  const worker = new URL(serviceWorker, here).href;
  const made = { channel, base, worker, type, sendLocale };
  const settings = JSON.stringify(made);
  const { client, settings: before } = clients.get(channel) ?? {};
  if (client && before === settings) return client;
  if (client) {
    throw new TypeError(
      `pushsvc.init has already been called for this channel with other options: ${before}`,
    );
  }
  const first = new PushClient(made);
  clients.set(channel, { client: first, settings });
  return first;
};
