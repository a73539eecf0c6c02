// An app with the sample of the framework FRAMEWORK: starts, and does what DO says.
import { user } from "./vendors.mjs";

const { FRAMEWORK, DO, ARGUMENT } = process.env;
const { startPush } = await import(`./${FRAMEWORK}.js`);

await startPush(
  (url) => console.log("opened", url),
  ({ title, body }, url) => console.log("shown", title, body, url),
);
if (DO === "renew") for (const each of user.renews) await each(ARGUMENT);
if (DO === "tap") for (const each of user.taps) each(JSON.parse(ARGUMENT));
if (DO === "receive") for (const each of user.arrivals) each(JSON.parse(ARGUMENT));
// Node ends when the calls that nobody waits for have ended.
