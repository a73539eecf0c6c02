// Copies the SDK's modules from the service's source into sdk/. npm runs it before `npm pack`.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const source = new URL("../../pushsvc/sdk/", import.meta.url);
const target = new URL("./sdk/", import.meta.url);

rmSync(target, { recursive: true, force: true });
mkdirSync(target);
for (const name of ["errors", "record", "service", "browser", "client"]) {
  cpSync(new URL(`page/${name}.js`, source), new URL(`${name}.js`, target));
}
for (const name of ["push-sw.js", "prompt.mjs"]) {
  cpSync(new URL(name, source), new URL(name, target));
}

// The package sets no global, and its types import each other by the names of modules.
const types = (name) => readFileSync(new URL(`${name}.d.ts`, source), "utf8");
const write = (name, text) => writeFileSync(new URL(`${name}.d.mts`, target), text);
write("push", types("push").split("\ndeclare global")[0]);
write("prompt", types("prompt").replaceAll('"./push"', '"./push.mjs"'));
