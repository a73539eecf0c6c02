/**
 * Requests, and the rule by which one is repeated. It runs in Node.js 20 and newer, not in browsers:
 * it holds an API key.
 */

/** @typedef {import("./schema.d.ts").components["schemas"]} Schemas */
/** @typedef {Schemas["FieldError"]} FieldError */
/** @typedef {{status: number, headers: Headers, text: string} | Unreachable} Answer */
/**
 * @typedef {object} ClientOptions
 * @property {string} channel the channel's id
 * @property {string} key an API key of the channel
 * @property {number} [retries] how often a call is repeated at most
 * @property {number} [timeoutMs] for an answer
 * @property {number} [longestWaitMs] if the service asks for a longer wait, a call is not repeated
 */
/**
 * @typedef {object} RequestOptions
 * @property {unknown} [body] sent as JSON
 * @property {string} [text] sent as it is, with its `contentType`
 * @property {string} [contentType]
 * @property {Record<string, unknown>} [query]
 * @property {string} [idempotencyKey]
 * @property {boolean} [isRepeatable] whether a repeat does what one request does
 */

export const VERSION = "1.0.0";
const LARGEST_PAGE = 100;
// What docs/errors.md of the service says may be repeated as it is.
const REPEATABLE = new Set([408, 429, 500, 502, 503, 504]);
const TOO_MANY_REQUESTS = 429;
const IN_FLIGHT = "idempotency_key_in_flight";
const SAFE = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]); // to repeat, by RFC 9110
const NOT_CONNECTED = new Set([
  "ECONNREFUSED",
  "EAI_AGAIN",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
]);
const ADDRESS = /^https?:\/\/[^/]/i;
const CHANNEL_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/**
 * The service answered with an error (RFC 9457). Decide by `code`, which is stable. `requestId`
 * finds the request in the service's log.
 */
export class Refused extends Error {
  name = "Refused";

  /**
   * @param {number} status
   * @param {string} text
   * @param {Headers} headers
   */
  constructor(status, text, headers) {
    const said = asProblem(text);
    super(`${status} ${textOf(said)}`);
    this.status = status;
    this.code = said.code ?? "";
    this.detail = said.detail ?? "";
    /** @type {FieldError[]} */
    this.errors = said.errors ?? [];
    this.requestId = said.request_id ?? headers.get("X-Request-ID") ?? "";
    /** Seconds that the service says to wait. */
    this.retryAfter = retryAfter(headers);
  }
}

/** No answer came, after all retries. */
export class Unreachable extends Error {
  name = "Unreachable";
}

export class Calls {
  #url;
  #headers;
  #retries;
  #timeoutMs;
  #longestWaitMs;

  /**
   * Throws a TypeError for an address without a scheme, and for a channel that is not a UUID.
   *
   * @param {string} url
   * @param {ClientOptions} options
   */
  constructor(url, options) {
    if (!ADDRESS.test(url)) {
      throw new TypeError(`"${url}" is no address: write it as https://push.example.com`);
    }
    if (!CHANNEL_ID.test(options.channel)) {
      const why = "it is a UUID, and the console shows it";
      throw new TypeError(`"${options.channel}" is no channel id: ${why}`);
    }
    this.channel = options.channel;
    this.#url = url.replace(/\/+$/, "");
    this.#headers = {
      Authorization: `Key ${options.key}`,
      "X-Channel-ID": options.channel,
      "User-Agent": `pushsvc-client-typescript/${VERSION}`,
    };
    this.#retries = options.retries ?? 4;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#longestWaitMs = options.longestWaitMs ?? 60_000;
  }

  /**
   * Make a request that has no method, for example to a newer service. It is repeated as those of
   * the methods. A POST or PATCH without an `idempotencyKey` is repeated only if the service did
   * nothing yet.
   *
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async request(method, path, options = {}) {
    const { text, headers } = await this.#answer(method, path, options);
    return text ? JSON.parse(text) : (headers.get("Location") ?? undefined);
  }

  /**
   * The entries of all pages of a list or an export, or the first `limit` of them.
   *
   * @param {string} path
   * @param {Record<string, unknown> & {limit?: number}} query
   * @param {number} [largest] page
   * @returns {AsyncGenerator<any, void, void>}
   */
  async *pages(path, query, largest = LARGEST_PAGE) {
    let left = query.limit ?? Number.POSITIVE_INFINITY;
    /** @type {Record<string, unknown> | undefined} */
    let page = left === 0 ? undefined : { ...query, limit: Math.min(left, largest) };
    while (page) {
      const answer = await this.#answer("GET", path, { query: page });
      const entries = entriesOf(answer).slice(0, left);
      yield* entries;
      left -= entries.length;
      page = left > 0 ? following(answer.headers) : undefined;
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {RequestOptions} options
   */
  async #answer(method, path, options) {
    const { body, text, contentType, query = {}, idempotencyKey, isRepeatable } = options;
    const content = body === undefined ? text : JSON.stringify(body, refuseInvalidDates);
    const headers = new Headers(this.#headers);
    if (content !== undefined) headers.set("Content-Type", contentType ?? "application/json");
    if (idempotencyKey) headers.set("Idempotency-Key", idempotencyKey);
    const request = new Request(`${this.#url}${path}${written(query)}`, {
      method,
      headers,
      redirect: "manual",
      ...(content === undefined ? {} : { body: content }),
    });
    const mayRepeat = isRepeatable ?? (SAFE.has(method) || Boolean(idempotencyKey));
    const answer = await this.#persist(request, mayRepeat);
    if (answer instanceof Error) throw answer;
    const isClick = answer.status === 302 && path.startsWith("/c/"); // others redirect elsewhere
    if (answer.status < 300 || isClick) return answer;
    throw new Refused(answer.status, answer.text, answer.headers);
  }

  /**
   * The first answer that is good or final.
   *
   * @param {Request} request
   * @param {boolean} isRepeatable
   */
  async #persist(request, isRepeatable) {
    for (let attempt = 0; ; attempt++) {
      const answer = await ask(request.clone(), this.#timeoutMs);
      const wait = pauseMs(answer, attempt);
      if (attempt >= this.#retries || wait > this.#longestWaitMs) return answer;
      if (!helps(answer, isRepeatable)) return answer;
      await sleep(wait);
    }
  }
}

/**
 * @param {Request} request
 * @param {number} timeoutMs
 * @returns {Promise<Answer>}
 */
async function ask(request, timeoutMs) {
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(timeoutMs) });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  } catch (cause) {
    return new Unreachable(`no answer from ${new URL(request.url).origin}`, { cause });
  }
}

/**
 * Whether a repeat may help, and does nothing twice.
 *
 * @param {Answer} answer
 * @param {boolean} isRepeatable
 */
function helps(answer, isRepeatable) {
  if (answer instanceof Error) return isRepeatable || NOT_CONNECTED.has(codeOf(answer));
  if (!isRepeatable) return answer.status === TOO_MANY_REQUESTS;
  if (REPEATABLE.has(answer.status)) return true;
  return answer.status === 409 && asProblem(answer.text).code === IN_FLIGHT;
}

/** @param {any} error of fetch, which tells the reason as the cause of its cause */
function codeOf(error) {
  return error.cause?.cause?.code ?? "";
}

/**
 * As long as the service says; else longer each time, and never the same for all clients.
 *
 * @param {Answer} answer
 * @param {number} attempt
 */
function pauseMs(answer, attempt) {
  const told = answer instanceof Error ? undefined : retryAfter(answer.headers);
  if (told !== undefined) return 1_000 * told;
  const most = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
  return most * (0.5 + Math.random() / 2);
}

/** @param {Headers} headers */
function retryAfter(headers) {
  const told = headers.get("Retry-After") ?? "";
  return /^\d+$/.test(told) ? Number(told) : undefined;
}

/**
 * The query of the next page.
 *
 * @param {Headers} headers
 */
function following(headers) {
  const address = /<([^>]+)>; *rel="next"/.exec(headers.get("Link") ?? "")?.[1];
  return address ? Object.fromEntries(new URL(address).searchParams) : undefined;
}

/**
 * Those of a page of a list, which is JSON, or of an export, which has an entry a line.
 *
 * @param {Exclude<Answer, Unreachable>} answer
 * @returns {any[]}
 */
function entriesOf({ headers, text }) {
  if (!headers.get("Content-Type")?.startsWith("application/x-ndjson")) return JSON.parse(text);
  const lines = text.split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

/**
 * A template of a path, whose values are each one part of it.
 *
 * @param {TemplateStringsArray} texts
 * @param {...string} parts
 */
export function path(texts, ...parts) {
  return String.raw({ raw: texts }, ...parts.map(encodeURIComponent));
}

/** @param {Record<string, unknown>} query */
function written(query) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (typeof value === "object" && !(value instanceof Date)) {
      throw new TypeError(`${name}: give one value, not ${JSON.stringify(value)}`);
    }
    given.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return given.size > 0 ? `?${given}` : "";
}

/**
 * For JSON.stringify, which writes null for an invalid Date: a send for a time that nobody meant
 * would be sent immediately.
 *
 * @this {any}
 * @param {string} key
 * @param {unknown} value
 */
function refuseInvalidDates(key, value) {
  const given = this[key];
  if (given instanceof Date && Number.isNaN(given.getTime())) {
    throw new RangeError(`${key} is an invalid Date`);
  }
  return value;
}

/**
 * Empty where something between us and the service answered.
 *
 * @param {string} text
 * @returns {Partial<Schemas["Problem"]>}
 */
function asProblem(text) {
  try {
    const found = JSON.parse(text);
    return found !== null && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

/** @param {Partial<Schemas["Problem"]>} problem */
function textOf({ code, detail, errors = [] }) {
  if (!code) return "not from pushsvc: check the address and proxies";
  const each = errors.map((error) => `${error.attr}: ${error.detail}`).join("; ");
  return `${code}: ${each || detail}`;
}

/** @param {number} milliseconds */
export function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
