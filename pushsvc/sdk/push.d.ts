/** What /sdk/push.mjs exports, and what /sdk/push.js sets as `pushsvc`. */

export interface Options {
  /** The channel's id. */
  channel: string;
  /** Address of the worker file on the site's own origin, such as "/push-sw.js". */
  serviceWorker: string | URL;
  /** Origin of the service; by default the one that the script came from. */
  baseUrl?: string | URL;
}

/** At most 10, with names of at most 50 characters and texts of at most 255. */
export type Attributes = Record<string, string | number>;

export interface Subscribed {
  subscriptionId: string;
  endpoint: string;
}

export type ErrorCode =
  | "permission_denied"
  | "permission_dismissed"
  | "insecure_context"
  | "private_mode"
  | "ios_needs_install"
  | "unsupported"
  | "no_service_worker"
  | "push_service_unreachable"
  | "storage_blocked"
  | "offline"
  | "refused"
  | "not_subscribed";

/** The answer of the service to what it refused (RFC 9457); `code` is of its docs/errors. */
export interface Problem {
  status: number;
  code?: string;
  title?: string;
  detail?: string;
  errors?: { attr: string; code: string; detail: string }[];
}

export class PushError extends Error {
  readonly code: ErrorCode;
  /** With `refused` only. */
  readonly problem?: Problem;
  /** It is remembered and tried again when the network is back and at the next visit. */
  readonly willRetry: boolean;
  constructor(code: ErrorCode, about?: { cause?: unknown; problem?: Problem; willRetry?: boolean });
}

/** A notification as the worker saw it; `data` is the sender's. */
export interface Shown {
  notification_id?: string;
  title?: string;
  body?: string;
  url?: string;
  data?: Record<string, string>;
}

export interface Events {
  /** The service knows this browser now, and did not before. */
  subscribed: CustomEvent<Subscribed>;
  unsubscribed: CustomEvent<Record<string, never>>;
  /** Another endpoint: the channel's key or the browser's endpoint has changed. */
  changed: CustomEvent<Subscribed & { previousEndpoint: string }>;
  /** What went wrong without a call of yours: at a visit, or when the network came back. */
  error: CustomEvent<PushError>;
  received: CustomEvent<Shown>;
  clicked: CustomEvent<Shown>;
  dismissed: CustomEvent<Shown>;
}

export interface PushClient extends EventTarget {
  readonly permission: NotificationPermission | "unsupported";
  /** Whether the service will reach this browser, as far as both know. Never asks the user. */
  isSubscribed(): Promise<boolean>;
  /**
   * Call it from a click: it asks the user, unless that was done. Safe to repeat. `attributes`
   * replace what is stored; without them that stays. Rejects with a PushError.
   */
  subscribe(options?: { attributes?: Attributes }): Promise<Subscribed>;
  /** Replaces what is stored. Rejects with a PushError. */
  setAttributes(attributes: Attributes): Promise<void>;
  /**
   * Ends it in the browser at once, at the service as soon as that can be reached. Rejects with a
   * PushError.
   */
  unsubscribe(): Promise<void>;
  addEventListener<Name extends keyof Events>(
    type: Name,
    listener: (event: Events[Name]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

/** Once a page. Asks nothing; finishes what an earlier page could not. */
export function init(options: Options): PushClient;

declare global {
  var pushsvc: {
    init: typeof init;
    PushError: typeof PushError;
    origin: string | undefined;
  };
}
