/**
 * A client of pushsvc on openapi-fetch. It runs in Node.js 20 and newer, not in browsers: it holds
 * an API key.
 */
import createClient from "openapi-fetch";

/** @typedef {import("./schema.d.ts").paths} Paths */
/** @typedef {import("./schema.d.ts").components["schemas"]} Schemas */
/** @typedef {Schemas["SendInput"]} Message */
/** @typedef {Schemas["SendOutput"]} Sent */
/** @typedef {Schemas["NotificationOutput"]} Notification */
/** @typedef {Schemas["NotificationListedOutput"]} ListedNotification */
/** @typedef {Schemas["NotificationDetailsOutput"]} NotificationDetails */
/** @typedef {Schemas["ChannelStatisticsOutput"]} ChannelStatistics */
/** @typedef {Schemas["ChannelPlatformsOutput"]} ChannelPlatforms */
/** @typedef {Schemas["SubscribeInput"]} Device */
/** @typedef {Schemas["DeviceInput"]} KnownDevice */
/** @typedef {Schemas["FieldError"]} FieldError */
/** @typedef {Response | Error} Answer */

const FINAL = new Set(["sent", "failed", "cancelled"]);
// What docs/errors.md of the service says may be repeated as it is.
const REPEATABLE = new Set([408, 429, 500, 502, 503, 504]);
const IN_FLIGHT = "idempotency_key_in_flight";
const POLL_MS = 1_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** The service answered with an error (RFC 9457). Decide by `code`, which is stable. */
export class Refused extends Error {
  name = "Refused";

  /**
   * @param {number} status
   * @param {unknown} problem
   */
  constructor(status, problem) {
    const said = asProblem(problem);
    super(`${status} ${said.code ?? ""}: ${said.detail ?? ""}`);
    this.status = status;
    this.code = said.code ?? "";
    this.detail = said.detail ?? "";
    /** @type {FieldError[]} */
    this.errors = said.errors ?? [];
  }
}

/** No answer came, after all retries. */
export class Unreachable extends Error {
  name = "Unreachable";
}

/**
 * One channel of a service.
 *
 * Every call is repeated up to `retries` times where the service says that this may help, after the
 * time that it names. Rejects with `Refused` or `Unreachable`.
 */
export class Client {
  /**
   * @param {string} url
   * @param {{channel: string, key: string, retries?: number, timeoutMs?: number}} options
   */
  constructor(url, { channel, key, retries = 4, timeoutMs = 30_000 }) {
    this.channel = channel;
    /**
     * Every other call of the service, with the same retries.
     *
     * @type {import("openapi-fetch").Client<Paths>}
     */
    this.api = createClient({
      baseUrl: url.replace(/\/+$/, ""),
      headers: { Authorization: `Key ${key}` },
      fetch: (request) => persist(request, retries, timeoutMs),
    });
  }

  /**
   * Give an `idempotencyKey` of your own where your program may be started again in the middle.
   *
   * @param {Message} message
   * @param {{idempotencyKey?: string}} options
   * @returns {Promise<Sent>}
   */
  async send(message, { idempotencyKey = crypto.randomUUID() } = {}) {
    const header = { "Idempotency-Key": idempotencyKey };
    const call = this.api.POST("/send-notification", { body: message, params: { header } });
    return /** @type {Sent} */ (await result(call));
  }

  /**
   * @param {string} id
   * @returns {Promise<Notification>}
   */
  notification(id) {
    const path = { notification_id: id };
    return result(this.api.GET("/notification/{notification_id}", { params: { path } }));
  }

  /**
   * Counts by platform, and why recipients bounced.
   *
   * @param {string} id
   * @returns {Promise<NotificationDetails>}
   */
  details(id) {
    const path = { notification_id: id };
    return result(this.api.GET("/notification/{notification_id}/details", { params: { path } }));
  }

  /**
   * The notification once it is sent, failed or cancelled.
   *
   * @param {string} id
   * @param {{timeoutMs?: number}} options
   * @returns {Promise<Notification>}
   */
  async wait(id, { timeoutMs = 300_000 } = {}) {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const shown = await this.notification(id);
      if (FINAL.has(shown.status)) return shown;
      if (performance.now() >= deadline) throw new Error(`notification ${id} is not finished`);
      await sleep(POLL_MS);
    }
  }

  /**
   * Newest first.
   *
   * @param {{limit?: number, offset?: number}} query
   * @returns {Promise<ListedNotification[]>}
   */
  notifications(query = {}) {
    const path = { channel_id: this.channel };
    return result(this.api.GET("/notifications/{channel_id}", { params: { path, query } }));
  }

  /** @param {string} id */
  async cancel(id) {
    const path = { notification_id: id };
    await result(this.api.DELETE("/cancel-notification/{notification_id}", { params: { path } }));
  }

  /** @param {string} id */
  async pause(id) {
    const path = { notification_id: id };
    await result(this.api.POST("/notification/{notification_id}/pause", { params: { path } }));
  }

  /** @param {string} id */
  async resume(id) {
    const path = { notification_id: id };
    await result(this.api.POST("/notification/{notification_id}/resume", { params: { path } }));
  }

  /**
   * Ends it. Recipients that were not sent to bounce.
   *
   * @param {string} id
   */
  async stop(id) {
    const path = { notification_id: id };
    await result(this.api.POST("/notification/{notification_id}/stop", { params: { path } }));
  }

  /** @returns {Promise<ChannelStatistics>} */
  statistics() {
    const path = { channel_id: this.channel };
    return result(this.api.GET("/channel/{channel_id}", { params: { path } }));
  }

  /**
   * Subscribers, pauses and credentials of each platform.
   *
   * @returns {Promise<ChannelPlatforms>}
   */
  platforms() {
    const path = { channel_id: this.channel };
    return result(this.api.GET("/channel/{channel_id}/platforms", { params: { path } }));
  }

  /**
   * @param {Device} device a browser's PushSubscription, or `platform` and `provider_token`
   * @returns {Promise<string>} the subscription's id
   */
  async subscribe(device) {
    const header = { "X-Channel-ID": this.channel };
    const call = this.api.POST("/subscribe", { body: device, params: { header } });
    return (await result(call)).subscriptionId;
  }

  /** @param {KnownDevice} device */
  async unsubscribe(device) {
    const header = { "X-Channel-ID": this.channel };
    await result(this.api.POST("/unsubscribe", { body: device, params: { header } }));
  }
}

/**
 * @template T
 * @param {Promise<{data?: T, error?: unknown, response: Response}>} call
 */
async function result(call) {
  const { data, error, response } = await call;
  if (!response.ok) throw new Refused(response.status, error);
  return /** @type {T} */ (data);
}

/**
 * The first answer that is good or final. Each call of ours is safe to repeat.
 *
 * @param {Request} request
 * @param {number} retries
 * @param {number} timeoutMs
 */
async function persist(request, retries, timeoutMs) {
  for (let attempt = 0; ; attempt++) {
    const answer = await ask(request.clone(), timeoutMs);
    const isLast = attempt === retries || !(await mayRepeat(answer));
    if (isLast && answer instanceof Error) throw answer;
    if (isLast) return /** @type {Response} */ (answer);
    await sleep(pauseMs(answer, attempt));
  }
}

/**
 * @param {Request} request
 * @param {number} timeoutMs
 * @returns {Promise<Answer>}
 */
async function ask(request, timeoutMs) {
  try {
    return await fetch(request, { signal: AbortSignal.timeout(timeoutMs) });
  } catch (cause) {
    return new Unreachable(`no answer from ${new URL(request.url).origin}`, { cause });
  }
}

/** @param {Answer} answer */
async function mayRepeat(answer) {
  if (answer instanceof Error) return true;
  if (REPEATABLE.has(answer.status)) return true;
  return answer.status === 409 && (await problemOf(answer)).code === IN_FLIGHT;
}

/**
 * As long as the service says; else longer each time, and never the same for all clients.
 *
 * @param {Answer} answer
 * @param {number} attempt
 */
function pauseMs(answer, attempt) {
  const told = answer instanceof Error ? "" : (answer.headers.get("Retry-After") ?? "");
  if (/^\d+$/.test(told)) return 1_000 * Number(told);
  const most = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
  return most * (0.5 + Math.random() / 2);
}

/** @param {Response} answer */
async function problemOf(answer) {
  return asProblem(await answer.clone().text());
}

/**
 * Empty where something between us and the service answered.
 *
 * @param {unknown} said
 * @returns {Partial<Schemas["Problem"]>}
 */
function asProblem(said) {
  try {
    const found = typeof said === "string" ? JSON.parse(said) : said;
    return found !== null && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

/** @param {number} milliseconds */
function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
