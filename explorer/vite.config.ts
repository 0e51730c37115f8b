import { defineConfig } from "vite";

// One module for the page and the notebook, one style sheet, and the page itself: what ships in the wheel.
export default defineConfig({
  build: {
    lib: { entry: "src/main.ts", formats: ["es"], fileName: () => "explorer.js", cssFileName: "explorer" },
    outDir: "../src/separatrix/explore/static",
    emptyOutDir: true,
    target: "es2022",
    minify: true,
  },
});
