// Calls of push.js alone: DO is a list of [function, arguments].
import { readFileSync, writeFileSync, existsSync } from "node:fs";
import * as push from "./push.js";

const { STORE, DO } = process.env;
const storage = {
  get: async () => (existsSync(STORE) ? readFileSync(STORE, "utf8") : null),
  set: async (text) => writeFileSync(STORE, text),
};

for (const [name, ...values] of JSON.parse(DO)) {
  const isOfDevice = name !== "report";
  try {
    await push[name](...(isOfDevice ? [storage, ...values] : values));
    console.log("ok");
  } catch (error) {
    console.log(error.message);
  }
}
