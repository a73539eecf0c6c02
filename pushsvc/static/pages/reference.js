// /docs: shows /openapi.json with Scalar, without loading anything from other hosts.
Scalar.createApiReference("#reference", {
  url: "/openapi.json",
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  telemetry: false,
  withDefaultFonts: false,
  hideClientButton: true,
  // Only the languages of examples/.
  hiddenClients: [
    ...["c", "clojure", "csharp", "dart", "fsharp", "http", "java", "js", "julia"],
    ...["kotlin", "objc", "ocaml", "powershell", "r", "rust", "swift"],
  ],
  // The key is entered once, and this browser stores it.
  persistAuth: true,
  authentication: { preferredSecurityScheme: "ApiKey" },
  // The key may be entered as it was issued: the name of the scheme is added here.
  onRequestBuilt({ request }) {
    const given = request.headers.get("Authorization");
    if (given && !given.startsWith("Key ")) request.headers.set("Authorization", `Key ${given}`);
  },
});
