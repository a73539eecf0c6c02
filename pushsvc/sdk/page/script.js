import { init } from "./client.js";
import { PushError } from "./errors.js";

const script = /** @type {HTMLScriptElement | null} */ (document.currentScript)?.src;
globalThis.pushsvc = { origin: script && new URL(script).origin, init, PushError };
