/** What /sdk/push.mjs exports, and what /sdk/push.js sets as `pushsvc`. */

export interface Options {
  /** The channel's id. */
  channel: string;
  /** Address of the worker file on the site's own origin, such as "/push-sw.js". */
  serviceWorker: string | URL;
  /** Whether the worker file is a classic script, by default, or a module with `import`. */
  workerType?: "classic" | "module";
  /** Origin of the service; by default the one that the script came from. */
  baseUrl?: string | URL;
  /** Whether the service learns the browser's time zone and language. */
  sendLocale?: boolean;
}

/** At most 10, with names of at most 50 characters and texts of at most 255. */
export type Attributes = Record<string, string | number>;

export interface Subscribed {
  subscriptionId: string;
  endpoint: string;
}

/** A kind of message that the visitor may want or not. */
export interface Category {
  key: string;
  name: string;
  description: string;
  /** The visitor's choice, or the channel's default. */
  chosen: boolean;
}

/** By the category's key; `null` goes back to the channel's default. */
export type Choices = Record<string, boolean | null>;

/** A message as this browser would show it now. */
export interface InboxMessage {
  notification_id: string;
  sent_at: string;
  title: string;
  body: string;
  /** Of the page to open, or "". It may be a path of the site. */
  url: string;
  icon: string;
  image: string;
  actions: { id: string; title: string; url?: string }[];
  data: Record<string, string>;
  /** Whether it arrived. */
  received: boolean;
  clicked: boolean;
  dismissed: boolean;
  /** For `report`. */
  token: string;
}

export interface Inbox {
  messages: InboxMessage[];
  /** How many of all messages were neither clicked nor dismissed. */
  unread: number;
}

export type ErrorCode =
  | "permission_denied"
  | "permission_dismissed"
  | "insecure_context"
  | "private_mode"
  | "ios_needs_install"
  | "unsupported"
  | "no_service_worker"
  | "worker_replaced"
  | "foreign_subscription"
  | "push_service_unreachable"
  | "no_address"
  | "storage_blocked"
  | "offline"
  | "refused"
  | "not_subscribed";

/** The service's answer to a refused request (RFC 9457). docs/errors.md explains `code`. */
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
  /** Whether the SDK tries again by itself: when the network is back, and at the next visit. */
  readonly willRetry: boolean;
  constructor(code: ErrorCode, about?: { cause?: unknown; problem?: Problem; willRetry?: boolean });
}

/** A notification as the worker saw it. `data` is the sender's own. */
export interface Shown {
  notification_id?: string;
  title?: string;
  body?: string;
  url?: string;
  data?: Record<string, string>;
  /** Of `clicked`: the id of the button. */
  action?: string;
}

export interface Events {
  /** The service now knows this browser. It did not before. */
  subscribed: CustomEvent<Subscribed>;
  unsubscribed: CustomEvent<Record<string, never>>;
  /** Another endpoint: the channel's key or the browser's endpoint has changed. */
  changed: CustomEvent<Subscribed & { previousEndpoint: string }>;
  /** An error outside of your calls: at a visit, or when the network came back. */
  error: CustomEvent<PushError>;
  received: CustomEvent<Shown>;
  clicked: CustomEvent<Shown>;
  dismissed: CustomEvent<Shown>;
  /** The page is asked to open `url`. preventDefault() says that it does so itself. */
  open: CustomEvent<Shown & { url: string }>;
}

export interface PushClient extends EventTarget {
  readonly permission: NotificationPermission | "unsupported";
  /** Whether this browser is subscribed, and its worker can show messages. Never asks the user. */
  isSubscribed(): Promise<boolean>;
  /**
   * Call it from a click, because it asks the user for permission if nobody has yet. Safe to
   * repeat. `attributes` replace the stored ones; without them the stored ones stay. `takeOver`:
   * whether it may end a subscription of another push service. Rejects with a PushError.
   */
  subscribe(options?: { attributes?: Attributes; takeOver?: boolean }): Promise<Subscribed>;
  /** Replaces the stored attributes. Rejects with a PushError. */
  setAttributes(attributes: Attributes): Promise<void>;
  /**
   * Says who is signed in. `token` is the `identity_token` that your backend made for `externalId`.
   * Before `subscribe` it is kept and sent with that. A repeat calls the service only if needed, so
   * call it on every page. Rejects with a PushError.
   */
  login(externalId: string, token?: string): Promise<void>;
  /** Says that nobody is signed in any more. Rejects with a PushError. */
  logout(): Promise<void>;
  /** At most 100 for a browser, each of at most 64 of `A-Za-z0-9_.:-`. Rejects with a PushError. */
  addTags(tags: string | string[]): Promise<void>;
  removeTags(tags: string | string[]): Promise<void>;
  /** The channel's categories, and which of them the visitor wants. Rejects with a PushError. */
  preferences(): Promise<Category[]>;
  /** Stores choices, of the person if one is signed in, and answers as `preferences`. */
  setPreferences(choices: Choices): Promise<Category[]>;
  /**
   * What this browser was sent lately, the newest first, also what it missed. `limit`: 1 to 50, 20
   * by default; `before`: the last `notification_id` of the page before. Rejects with a PushError.
   */
  inbox(page?: { limit?: number; before?: string }): Promise<Inbox>;
  /** Reports what the visitor did with a message of the inbox. Safe to repeat. */
  report(token: string, event: "received" | "clicked" | "dismissed"): Promise<void>;
  /** Shows how many messages are unread on the app's icon, where the browser can, and resolves to
   * that number. */
  badge(): Promise<number>;
  /**
   * Ends the subscription: in the browser at once, at the service as soon as it can be reached.
   * Rejects with a PushError.
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

/**
 * Call it on each page. It asks the user nothing, and completes what an earlier page could not. For
 * a channel it returns the same client each time, and throws a TypeError for other options.
 */
export function init(options: Options): PushClient;

declare global {
  var pushsvc: {
    init: typeof init;
    PushError: typeof PushError;
    origin: string | undefined;
  };
}
