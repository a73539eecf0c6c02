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
    dryRun(body: Schemas["SendInput"]): Promise<Schemas["DryRunOutput"]>;
    /**
     * The notification once it is sent, failed or cancelled.
     *
     * @param {string} id
     * @param {{timeoutMs?: number}} options
     * @returns {Promise<Schemas["NotificationOutput"]>}
     */
    wait(id: string, { timeoutMs }?: {
        timeoutMs?: number;
    }): Promise<Schemas["NotificationOutput"]>;
}
export type Schemas = import("./schema.d.ts").components["schemas"];
import { Methods } from "./operations.js";
export { Refused, Unreachable, VERSION } from "./calls.js";
export { InvalidWebhook, verifyWebhook } from "./webhooks.js";
