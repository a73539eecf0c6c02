import { PushError } from "./errors.js";

/**
 * @typedef {import("../push").ErrorCode} ErrorCode
 * @typedef {import("./record.js").Reported} Reported
 */

const WORKER_MS = 10_000;
export const SHORT_MS = 2_000; // for a worker that may not be ours
const PUSH_SERVICE_MS = 20_000; // some browsers without one never answer
const NO_ADDRESS_MS = [250, 500, 1_000, 2_000, 0]; // waits after attempts

/**
 * The code of what prevents push on this page, whatever the user answers, or undefined.
 *
 * @returns {ErrorCode | undefined}
 */
export const obstacle = () => {
  if (typeof window === "undefined") return "unsupported"; // a server that renders the page
  if (!isSecureContext) return "insecure_context";
  const hasWorkers = "serviceWorker" in navigator;
  if (hasWorkers && "PushManager" in window && "Notification" in window) return undefined;
  if (canBeInstalled() && !navigator.standalone) return "ios_needs_install";
  return !hasWorkers && /Firefox\//.test(navigator.userAgent) ? "private_mode" : "unsupported";
};

/**
 * Whether this is a browser of iOS 16.4 or newer, whose installed web apps have push. The pages that
 * other apps show cannot be installed, and do not call themselves Safari.
 */
const canBeInstalled = () => {
  const { userAgent, platform, maxTouchPoints } = navigator;
  // An iPad calls itself a Mac, but no Mac has a touch screen.
  const isIos = /iP(hone|ad|od)/.test(userAgent) || (platform === "MacIntel" && maxTouchPoints > 1);
  const [, major, minor] = /(?:Version\/| OS )(\d+)[._](\d+)/.exec(userAgent) ?? [];
  return isIos && /Safari\//.test(userAgent) && Number(major) + Number(minor) / 100 >= 16.04;
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

export const askPermission = async () => {
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
export const introduce = (worker, about, ms = WORKER_MS) => {
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

/**
 * Whether the worker is ours and answers soon.
 *
 * @param {ServiceWorker | null | undefined} worker
 * @param {object} about
 */
export const answers = async (worker, about) =>
  Boolean(worker && (await introduce(worker, about, SHORT_MS).catch(() => false)));

/**
 * The scopes where our worker may be: its folder, and one without pages, beside another worker.
 *
 * @param {URL} worker
 */
export const scopesOf = (worker) => {
  const folder = new URL("./", worker).href;
  return { folder, beside: `${folder}pushsvc-push-scope/` };
};

/** @param {string} scope */
export const registrationAt = async (scope) => {
  const registration = await navigator.serviceWorker.getRegistration(scope);
  return registration?.scope === scope ? registration : undefined;
};

/**
 * Registers the worker in its folder. If another script is there it stays, because a site that
 * registers it at each visit would replace ours again. It serves us if it has the importScripts
 * line. Otherwise ours is registered beside it, and `rival` is the other's address.
 *
 * @param {URL} worker
 * @param {WorkerType} type
 * @param {string | undefined} former the address of our worker when it was registered last
 * @param {object} about
 * @returns {Promise<{ registration: ServiceWorkerRegistration, rival?: string }>}
 */
export const register = async (worker, type, former, about) => {
  const { folder, beside } = scopesOf(worker);
  const here = await registrationAt(folder);
  const newest = here?.installing ?? here?.waiting ?? here?.active;
  if (!here || !newest || [worker.href, former].includes(newest.scriptURL)) {
    return { registration: await navigator.serviceWorker.register(worker, { type }) };
  }
  if (await answers(newest, about)) return { registration: here };
  const rival = newest.scriptURL;
  try {
    return {
      registration: await navigator.serviceWorker.register(worker, { type, scope: beside }),
      rival,
    };
  } catch (cause) {
    throw Object.assign(new Error(`${rival} is there. ${cause.message}`), { rival });
  }
};

/**
 * Introduces us to the worker of this registration. If the active one is from before the site added
 * the importScripts line, its successor takes over at once. Otherwise it would wait until all tabs
 * of the site are closed.
 *
 * @param {ServiceWorkerRegistration} registration
 * @param {object} about
 */
export const greet = async (registration, about) => {
  const { active, waiting, installing } = registration;
  const worker = await activated(/** @type {ServiceWorker} */ (active ?? waiting ?? installing));
  try {
    return await introduce(worker, about, SHORT_MS);
  } catch {
    await registration.update().catch(() => {});
    const next = registration.installing ?? registration.waiting;
    if (!next) return introduce(worker, about); // which may only be slow
    const reported = await introduce(next, { ...about, takeOver: true });
    await activated(next);
    return reported;
  }
};

/**
 * The key that the subscription is for, in base64url.
 *
 * @param {PushSubscription} subscription
 */
export const keyOf = ({ options: { applicationServerKey: key } }) =>
  key &&
  btoa(String.fromCharCode(...new Uint8Array(key)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/**
 * Chromium after `unsubscribe()`, and Edge on Android always, give out
 * `https://permanently-removed.invalid/…`. The service never gets it.
 *
 * @param {PushSubscription | null | undefined} subscription
 */
export const hasAddress = (subscription) =>
  !!subscription && !/\.invalid$/.test(new URL(subscription.endpoint).hostname);

/**
 * The browser's subscription for this key. Ends any other that may be ended, and with `isRefused`
 * this one.
 *
 * @param {PushManager} manager
 * @param {string} key
 * @param {(subscription: PushSubscription) => unknown} mayEnd
 */
export const browserSubscribe = async (manager, key, mayEnd, isRefused = false) => {
  const known = await manager.getSubscription();
  if (known && hasAddress(known)) {
    const isRight = keyOf(known) === key;
    if (isRight && !isRefused) return known;
    if (!isRight && !mayEnd(known)) throw new PushError("foreign_subscription");
  }
  await known?.unsubscribe();
  for (const ms of NO_ADDRESS_MS) {
    const subscription = await newSubscription(manager, key);
    if (hasAddress(subscription)) return subscription;
    await subscription.unsubscribe();
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
  throw new PushError("no_address");
};

/**
 * @param {PushManager} manager
 * @param {string} key
 */
const newSubscription = async (manager, key) => {
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

/** Where and in which language the visitor is, as far as the browser tells. */
export const locale = () => ({
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  language: navigator.language,
});
