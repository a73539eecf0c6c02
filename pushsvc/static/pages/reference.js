// /docs: shows /openapi.json with Swagger UI, without loading anything from other hosts.
const isDark = matchMedia("(prefers-color-scheme: dark)");
const setScheme = () => document.documentElement.classList.toggle("dark-mode", isDark.matches);
isDark.addEventListener("change", setScheme);
setScheme();

SwaggerUIBundle({
  dom_id: "#reference",
  url: "/openapi.json",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // The key is entered once, and this browser stores it.
  persistAuthorization: true,
  // The key may be entered as it was issued: the name of the scheme is added here.
  requestInterceptor(request) {
    const given = request.headers.Authorization;
    if (given && !given.startsWith("Key ")) request.headers.Authorization = `Key ${given}`;
    return request;
  },
});
