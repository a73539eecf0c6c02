/** The service answered with an error (RFC 9457). Decide by `code`, which is stable. */
export class Refused extends Error {
    /**
     * @param {number} status
     * @param {unknown} problem
     */
    constructor(status: number, problem: unknown);
    status: number;
    code: string;
    detail: string;
    /** @type {FieldError[]} */
    errors: FieldError[];
}
/** No answer came, after all retries. */
export class Unreachable extends Error {
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
    constructor(url: string, { channel, key, retries, timeoutMs }: {
        channel: string;
        key: string;
        retries?: number;
        timeoutMs?: number;
    });
    channel: string;
    /**
     * Every other call of the service, with the same retries.
     *
     * @type {import("openapi-fetch").Client<Paths>}
     */
    api: import("openapi-fetch").Client<Paths>;
    /**
     * Give an `idempotencyKey` of your own where your program may be started again in the middle.
     *
     * @param {Message} message
     * @param {{idempotencyKey?: string}} options
     * @returns {Promise<Sent>}
     */
    send(message: Message, { idempotencyKey }?: {
        idempotencyKey?: string;
    }): Promise<Sent>;
    /**
     * @param {string} id
     * @returns {Promise<Notification>}
     */
    notification(id: string): Promise<Notification>;
    /**
     * Counts by platform, and why recipients bounced.
     *
     * @param {string} id
     * @returns {Promise<NotificationDetails>}
     */
    details(id: string): Promise<NotificationDetails>;
    /**
     * The notification once it is sent, failed or cancelled.
     *
     * @param {string} id
     * @param {{timeoutMs?: number}} options
     * @returns {Promise<Notification>}
     */
    wait(id: string, { timeoutMs }?: {
        timeoutMs?: number;
    }): Promise<Notification>;
    /**
     * Newest first.
     *
     * @param {{limit?: number, offset?: number}} query
     * @returns {Promise<ListedNotification[]>}
     */
    notifications(query?: {
        limit?: number;
        offset?: number;
    }): Promise<ListedNotification[]>;
    /** @param {string} id */
    cancel(id: string): Promise<void>;
    /** @param {string} id */
    pause(id: string): Promise<void>;
    /** @param {string} id */
    resume(id: string): Promise<void>;
    /**
     * Ends it. Recipients that were not sent to bounce.
     *
     * @param {string} id
     */
    stop(id: string): Promise<void>;
    /** @returns {Promise<ChannelStatistics>} */
    statistics(): Promise<ChannelStatistics>;
    /**
     * Subscribers, pauses and credentials of each platform.
     *
     * @returns {Promise<ChannelPlatforms>}
     */
    platforms(): Promise<ChannelPlatforms>;
    /**
     * @param {Device} device a browser's PushSubscription, or `platform` and `provider_token`
     * @returns {Promise<string>} the subscription's id
     */
    subscribe(device: Device): Promise<string>;
    /** @param {KnownDevice} device */
    unsubscribe(device: KnownDevice): Promise<void>;
}
export type Paths = import("./schema.d.ts").paths;
export type Schemas = import("./schema.d.ts").components["schemas"];
export type Message = Schemas["SendInput"];
export type Sent = Schemas["SendOutput"];
export type Notification = Schemas["NotificationOutput"];
export type ListedNotification = Schemas["NotificationListedOutput"];
export type NotificationDetails = Schemas["NotificationDetailsOutput"];
export type ChannelStatistics = Schemas["ChannelStatisticsOutput"];
export type ChannelPlatforms = Schemas["ChannelPlatformsOutput"];
export type Device = Schemas["SubscribeInput"];
export type KnownDevice = Schemas["DeviceInput"];
export type FieldError = Schemas["FieldError"];
export type Answer = Response | Error;
