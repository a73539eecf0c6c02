// Makes one call by clients/typescript, and prints its pauses without making them.
import { Client } from "pushsvc-client";

const { URL: url, RETRIES: retries, CALL: call, CHANNEL: channel, OPTIONS: options } = process.env;
const later = globalThis.setTimeout;
globalThis.setTimeout = (run, milliseconds) => {
  console.log("pause", milliseconds);
  return later(run, 0);
};

const push = new Client(url, { channel, key: "psk_x", retries: Number(retries) });
try {
  console.log((await push[call]({ body: "Once" }, JSON.parse(options))).notification_id);
} catch (error) {
  console.log(error.name, error.code ?? "");
}
