// The JavaScript of a release: some 90 files in place of 850, which Node would open one by one.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { build } from "esbuild";

/** Modules that are loaded by their paths, beside the exports: from bin, and programs of threads and processes. */
export const PROGRAMS = [
  "cli/main.js",
  "cli/reproducible/child.js",
  "host/checkpoint/host.js",
  "host/checkpoint/listing-host.js",
  "host/checkpoint/reports/header-thread.js",
  "host/checkpoint/runtime/child.js",
  "host/checkpoint/runtime/remote/thread.js",
  "native/cuda/trial.js",
  "render/threads/thread.js",
  "service/hooks/comfy/classic/pictures/picture-thread.js",
  "service/web/inspect-thread.js",
];
/** The page's own files, which Vite has bundled for browsers. */
const PAGE = join("service", "web", "page");

// decision 292
/**
 * Replaces the JavaScript of `dist` by bundles of its exports and programs; they share what they have in common.
 * Packages stay outside.
 * @param {{ dist: string, exported: readonly string[] }} options exported: paths below dist
 */
export async function bundle({ dist, exported }) {
  // the command line loads each by its path
  const commands = readdirSync(join(dist, "cli/commands"))
    .filter((name) => name.endsWith(".js"))
    .map((name) => `cli/commands/${name}`);
  const { outputFiles } = await build({
    absWorkingDir: dist,
    entryPoints: [...exported, ...PROGRAMS, ...commands],
    outdir: dist,
    outbase: dist,
    chunkNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    packages: "external",
    write: false,
    logLevel: "silent",
    plugins: [{ name: "own-url", setup: (setup) => keepOwnUrls(setup, dist) }],
  });
  for (const path of readdirSync(dist, { recursive: true, encoding: "utf8" }))
    if (path.endsWith(".js") && !path.startsWith(PAGE)) rmSync(join(dist, path));
  for (const { path, contents } of outputFiles) writeFileSync(path, contents);
}

/** A module finds files beside itself by its URL: that of its source below dist, wherever its code lies in a bundle. */
function keepOwnUrls(setup, dist) {
  setup.onLoad({ filter: /\.js$/ }, ({ path }) => {
    const own = JSON.stringify(relative(dist, path).split(sep).join("/"));
    const url = `(import.meta.url.slice(0, import.meta.url.lastIndexOf("/dist/") + 6) + ${own})`;
    return { contents: readFileSync(path, "utf8").replaceAll("import.meta.url", url), loader: "js" };
  });
}
