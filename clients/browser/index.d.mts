import type { PushClient, Options as ServedOptions } from "./sdk/push.mjs";

export * from "./sdk/push.mjs";

export interface Options extends ServedOptions {
  /** Origin of the service. */
  baseUrl: string | URL;
}

export function init(options: Options): PushClient;
