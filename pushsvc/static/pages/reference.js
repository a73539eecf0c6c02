// /docs: shows /openapi.json by Swagger UI.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  tryItOutEnabled: true,
  validatorUrl: null,
  // The key is entered once, as it was issued: the scheme's word is added here.
  requestInterceptor(request) {
    const given = request.headers.Authorization;
    if (given && !given.startsWith("Key ")) request.headers.Authorization = `Key ${given}`;
    return request;
  },
});
