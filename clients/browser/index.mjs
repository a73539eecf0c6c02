export { init } from "./sdk/client.js";
export { PushError } from "./sdk/errors.js";
