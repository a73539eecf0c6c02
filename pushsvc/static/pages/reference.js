// /docs: shows /openapi.json by Scalar, without anything from other hosts.
Scalar.createApiReference("#reference", {
  url: "/openapi.json",
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  telemetry: false,
  withDefaultFonts: false,
  hideClientButton: true,
  // The languages of examples/ stay.
  hiddenClients: [
    ...["c", "clojure", "csharp", "dart", "fsharp", "http", "java", "js", "julia"],
    ...["kotlin", "objc", "ocaml", "powershell", "r", "rust", "swift"],
  ],
  // The key is entered once, and this browser keeps it.
  persistAuth: true,
  authentication: { preferredSecurityScheme: "ApiKey" },
  // As it was issued, too: the scheme's word is added here.
  onRequestBuilt({ request }) {
    const given = request.headers.get("Authorization");
    if (given && !given.startsWith("Key ")) request.headers.set("Authorization", `Key ${given}`);
  },
});
