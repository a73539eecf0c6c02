// The `web-push` package of npm, for bench/. bench/peers/__init__.py says how such a program is
// called.
"use strict";

const { readFileSync } = require("node:fs");
const { Agent } = require("node:https");
const { createInterface } = require("node:readline");
const webpush = require("web-push");

const [, path, count, inFlight] = process.argv.slice(2);
const given = JSON.parse(readFileSync(path, "utf8"));
const vapidDetails = {
  subject: given.vapid.subject,
  publicKey: given.vapid.public,
  privateKey: given.vapid.private,
};
const agent = new Agent({ keepAlive: true, maxSockets: Number(inFlight) });
let next = 0;
let failed = 0;

async function sendOn() {
  while (next < Number(count)) {
    const { endpoint, p256dh, auth } = given.web[next++];
    try {
      const device = { endpoint, keys: { p256dh, auth } };
      await webpush.sendNotification(device, given.payload, { agent, vapidDetails, TTL: 3600 });
    } catch (error) {
      if (failed++ === 0) console.error(error);
    }
  }
}

async function main() {
  const orders = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  console.log("ready");
  await orders.next();
  await Promise.all(Array.from({ length: Number(inFlight) }, sendOn));
  console.log(`failed ${failed}`);
  await orders.next();
  process.exit();
}

main();
