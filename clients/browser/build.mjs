// Copies the SDK's modules from the service's source into sdk/. npm runs it before `npm pack`.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const source = new URL("../../pushsvc/sdk/", import.meta.url);
const target = new URL("./sdk/", import.meta.url);

rmSync(target, { recursive: true, force: true });
mkdirSync(target);
for (const name of ["errors", "record", "service", "browser", "client"]) {
  cpSync(new URL(`page/${name}.js`, source), new URL(`${name}.js`, target));
}
cpSync(new URL("push-sw.js", source), new URL("push-sw.js", target));

// A bundled module has the site's origin, so the page must give the service's.
const prompt = readFileSync(new URL("prompt.mjs", source), "utf8");
const bundled = prompt.replace("baseUrl: import.meta.url,", 'baseUrl: "",');
if (bundled === prompt) throw new Error("prompt.mjs has another default of baseUrl");
writeFileSync(new URL("prompt.mjs", target), bundled);

// The package sets no global, and its types import each other by the names of modules.
const types = (name) => readFileSync(new URL(`${name}.d.ts`, source), "utf8");
const write = (name, text) => writeFileSync(new URL(`${name}.d.mts`, target), text);
write("push", types("push").split("\ndeclare global")[0]);
write(
  "prompt",
  types("prompt").replace("  baseUrl?:", "  baseUrl:").replaceAll('"./push"', '"./push.mjs"'),
);
