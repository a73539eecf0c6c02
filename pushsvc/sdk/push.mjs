// What push.js cannot hold, being a classic script too: served behind it as /sdk/push.mjs.
globalThis.pushsvc.origin = new URL(import.meta.url).origin;
export const { init, PushError } = globalThis.pushsvc;
