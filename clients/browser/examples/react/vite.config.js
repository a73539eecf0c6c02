import { defineConfig } from "vite";

// The worker is built beside the page, under a name that stays the same.
export default defineConfig({
  build: {
    rollupOptions: {
      input: { index: "index.html", "push-sw": "push-sw.js" },
      output: {
        entryFileNames: ({ name }) =>
          name === "push-sw" ? "[name].js" : "assets/[name]-[hash].js",
      },
    },
  },
});
