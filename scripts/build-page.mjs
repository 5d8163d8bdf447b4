#!/usr/bin/env node
// Builds the page of the service: src/service/web/page into dist/service/web/page, files with hashed names in "page".
import { join } from "node:path";
import { build } from "vite";
import { root } from "./setup.mjs";

const source = join(root, "src/service/web/page");

await build({
  root: source,
  configFile: false,
  logLevel: "warn",
  // below whatever prefix a proxy puts it
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    outDir: join(root, "dist/service/web/page"),
    emptyOutDir: true,
    assetsDir: "page",
    // a data: address would not be a separate file
    assetsInlineLimit: 0,
    modulePreload: false,
    target: "es2022",
  },
});
