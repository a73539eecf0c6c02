/**
 * A template of a path, whose values are each one part of it.
 *
 * @param {TemplateStringsArray} texts
 * @param {...string} parts
 */
export function path(texts: TemplateStringsArray, ...parts: string[]): string;
/** @param {number} milliseconds */
export function sleep(milliseconds: number): Promise<any>;
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
export const VERSION: "1.0.0";
/**
 * The service answered with an error (RFC 9457). Decide by `code`, which is stable. `requestId`
 * finds the request in the service's log.
 */
export class Refused extends Error {
    /**
     * @param {number} status
     * @param {string} text
     * @param {Headers} headers
     */
    constructor(status: number, text: string, headers: Headers);
    status: number;
    code: string;
    detail: string;
    /** @type {FieldError[]} */
    errors: FieldError[];
    requestId: string;
    /** Seconds that the service says to wait. */
    retryAfter: number | undefined;
}
/** No answer came, after all retries. */
export class Unreachable extends Error {
}
export class Calls {
    /**
     * Throws a TypeError for an address without a scheme, and for a channel that is not a UUID.
     *
     * @param {string} url
     * @param {ClientOptions} options
     */
    constructor(url: string, options: ClientOptions);
    channel: string;
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
    request(method: string, path: string, options?: RequestOptions): Promise<any>;
    /**
     * The entries of all pages of a list or an export, or the first `limit` of them.
     *
     * @param {string} path
     * @param {Record<string, unknown> & {limit?: number}} query
     * @param {number} [largest] page
     * @returns {AsyncGenerator<any, void, void>}
     */
    pages(path: string, query: Record<string, unknown> & {
        limit?: number;
    }, largest?: number): AsyncGenerator<any, void, void>;
    #private;
}
export type Schemas = import("./schema.d.ts").components["schemas"];
export type FieldError = Schemas["FieldError"];
export type Answer = {
    status: number;
    headers: Headers;
    text: string;
} | Unreachable;
export type ClientOptions = {
    /**
     * the channel's id
     */
    channel: string;
    /**
     * an API key of the channel
     */
    key: string;
    /**
     * how often a call is repeated at most
     */
    retries?: number | undefined;
    /**
     * for an answer
     */
    timeoutMs?: number | undefined;
    /**
     * if the service asks for a longer wait, a call is not repeated
     */
    longestWaitMs?: number | undefined;
};
export type RequestOptions = {
    /**
     * sent as JSON
     */
    body?: unknown;
    /**
     * sent as it is, with its `contentType`
     */
    text?: string | undefined;
    contentType?: string | undefined;
    query?: Record<string, unknown> | undefined;
    idempotencyKey?: string | undefined;
    /**
     * whether a repeat does what one request does
     */
    isRepeatable?: boolean | undefined;
};
