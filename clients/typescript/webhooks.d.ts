/**
 * What a webhook says. `id` is the same in every repeat of a message, so that you can ignore
 * repeats.
 *
 * @typedef {{id: string, type: string, timestamp: string, data: Record<string, any>}} Webhook
 */
/**
 * What the request says, if the owner of `secret` signed it in the last five minutes.
 *
 * `body` is what was received, byte by byte. Rejects with `InvalidWebhook` for a request that is
 * forged, changed, old or malformed.
 *
 * @param {Uint8Array | string} body
 * @param {Headers | Record<string, string | string[] | undefined>} headers
 * @param {string} secret
 * @returns {Promise<Webhook>}
 */
export function verifyWebhook(body: Uint8Array | string, headers: Headers | Record<string, string | string[] | undefined>, secret: string): Promise<Webhook>;
/** The request is forged, changed, old or malformed. Respond with 400. */
export class InvalidWebhook extends Error {
}
/**
 * What a webhook says. `id` is the same in every repeat of a message, so that you can ignore
 * repeats.
 */
export type Webhook = {
    id: string;
    type: string;
    timestamp: string;
    data: Record<string, any>;
};
