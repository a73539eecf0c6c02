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
    importSubscriptions(rows: Rows, query: ImportQuery): Promise<Schemas["ImportOutput"]>;
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
export type Rows = import("./imports.js").Rows;
export type ImportQuery = NonNullable<import("./schema.d.ts").operations["import_subscriptions"]["parameters"]["query"]>;
import { Methods } from "./operations.js";
export { Refused, Unreachable, VERSION } from "./calls.js";
export { InvalidWebhook, verifyWebhook } from "./webhooks.js";
