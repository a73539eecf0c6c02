// A provider of OpenID Connect (the npm package oidc-provider, which is certified) with one client.
// Arguments: the folder of node_modules, the port, the client's secret and its redirect URI.
// Whoever signs in as "name|address|true" is "name|address|true", and has that address, verified.

import { pathToFileURL } from "node:url";

const [home, port, secret, redirect] = process.argv.slice(2);
const entry = pathToFileURL(`${home}/node_modules/oidc-provider/lib/index.js`);
const { Provider } = await import(entry.href);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "pushsvc", client_secret: secret, redirect_uris: [redirect] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  pkce: { required: () => true },
  cookies: { keys: ["only for tests"] },
  findAccount(_, id) {
    const [, email, verified] = id.split("|");
    return {
      accountId: id,
      claims: () => ({ sub: id, email, email_verified: verified === "true" }),
    };
  },
});
provider.listen(Number(port), "127.0.0.1", () => process.stdout.write("ready\n"));
