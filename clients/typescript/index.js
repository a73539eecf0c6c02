/** A client of pushsvc. `Schemas` has the types of what is sent and answered. */
import { sleep } from "./calls.js";
import { Methods } from "./operations.js";

export { Refused, Unreachable, VERSION } from "./calls.js";
export { InvalidWebhook, verifyWebhook } from "./webhooks.js";

/** @typedef {import("./schema.d.ts").components["schemas"]} Schemas */

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
