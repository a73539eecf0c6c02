/** A client of pushsvc. `Schemas` has the types of what is sent and answered. */
import { sleep } from "./calls.js";
import { parts } from "./imports.js";
import { Methods } from "./operations.js";

export { Refused, Unreachable, VERSION } from "./calls.js";
export { InvalidWebhook, verifyWebhook } from "./webhooks.js";

/** @typedef {import("./schema.d.ts").components["schemas"]} Schemas */

/** @typedef {import("./imports.js").Rows} Rows */
/** @typedef {NonNullable<import("./schema.d.ts").operations["import_subscriptions"]["parameters"]["query"]>} ImportQuery */

const FINAL = new Set(["sent", "failed", "cancelled"]);
const POLL_MS = 1_000;

/**
 * One channel of a service.
 *
 * Every call is repeated up to `retries` times where the service says that this may help, after the
 * time that it names, unless that is longer than `longestWaitMs`. Rejects with `Refused` or
 * `Unreachable`.
 *
 * Lists are asynchronous iterators, which read the next page when it is needed. `limit`: at most so
 * many entries.
 */
export class Client extends Methods {
  /**
   * Check a send and count its audience. Nothing is stored or sent.
   *
   * @param {Schemas["SendInput"]} body
   * @returns {Promise<Schemas["DryRunOutput"]>}
   */
  dryRun(body) {
    const tried = { ...body, dry_run: true };
    return this.request("POST", "/send-notification", { body: tried, isRepeatable: true });
  }

  /**
   * Import subscribers, as many as there are, in requests of at most 5,000 rows.
   *
   * `rows`: text of a file in pieces of any size, such as a stream of Node.js that is decoded, or
   * objects for the formats of JSON. Resolves to the sum of all requests; refused rows have their
   * lines in the file. Importing rows again changes nothing, so repeat an import that ended early.
   * A dry run knows the rows of one request. See docs/migrating.md.
   *
   * @param {Rows} rows
   * @param {ImportQuery} query
   * @returns {Promise<Schemas["ImportOutput"]>}
   */
  async importSubscriptions(rows, query) {
    const isCsv = query.format.endsWith("_csv");
    const contentType = isCsv ? "text/csv" : "application/x-ndjson";
    /** @type {Schemas["ImportOutput"]} */
    const total = {
      created: 0,
      updated: 0,
      unchanged: 0,
      refused: 0,
      refusals: [],
      attributes_dropped: [],
    };
    for await (const { text, before } of parts(rows, isCsv)) {
      const options = { text, contentType, query, isRepeatable: true };
      const path = `/channel/${encodeURIComponent(this.channel)}/subscriptions/import`;
      add(total, await this.request("POST", path, options).catch(located(before)), before);
    }
    return total;
  }

  /**
   * The notification once it is sent, failed or cancelled.
   *
   * @param {string} id
   * @param {{timeoutMs?: number}} options
   * @returns {Promise<Schemas["NotificationOutput"]>}
   */
  async wait(id, { timeoutMs = 300_000 } = {}) {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const shown = await this.getNotification(id);
      if (FINAL.has(shown.status)) return shown;
      if (performance.now() >= deadline) throw new Error(`notification ${id} is not finished`);
      await sleep(POLL_MS);
    }
  }
}

/**
 * @param {Schemas["ImportOutput"]} total
 * @param {Schemas["ImportOutput"]} found
 * @param {number} before
 */
function add(total, found, before) {
  total.created += found.created;
  total.updated += found.updated;
  total.unchanged += found.unchanged;
  total.refused += found.refused;
  for (const each of found.refusals) total.refusals.push({ ...each, line: each.line + before });
  const dropped = new Set([...total.attributes_dropped, ...found.attributes_dropped]);
  total.attributes_dropped = [...dropped].sort();
}

/**
 * @param {number} before
 * @returns {(error: Error) => never}
 */
function located(before) {
  return (error) => {
    if (before > 0) error.message += ` (add ${before} to a line to get the line of the whole file)`;
    throw error;
  };
}
