import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, posix, relative, sep } from "node:path";
import { build } from "esbuild";

// The JavaScript of a release: some 90 files in place of 850, which Node would open one by one.

/** The page's own files, which Vite has bundled for browsers. */
const PAGE = join("service", "web", "page");

// decisions: A release is bundled
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
    // bin imports the first
    entryPoints: [...new Set([...exported, "cli/main.js", ...commands, ...programsOf(dist)])],
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

/** A module's path in another one: of the program of a thread or process, or of what is required when it is needed. */
const LOADED = /\b(?:new URL|require)\("(\.[^"]+\.js)"(?:, import\.meta\.url)?\)/g;

/**
 * Modules below a folder that others load by their paths.
 * @param {string} dist
 */
export function programsOf(dist) {
  const paths = readdirSync(dist, { recursive: true, encoding: "utf8" });
  return paths
    .filter((path) => path.endsWith(".js") && !path.startsWith(PAGE))
    .flatMap((path) => {
      const folder = dirname(path).split(sep).join("/");
      const text = readFileSync(join(dist, path), "utf8");
      return Array.from(text.matchAll(LOADED), ([, name]) => posix.join(folder, name));
    });
}

/** A module finds files beside itself by its URL: that of its source below dist, wherever its code lies in a bundle. */
function keepOwnUrls(setup, dist) {
  setup.onLoad({ filter: /\.js$/ }, ({ path }) => {
    const own = JSON.stringify(relative(dist, path).split(sep).join("/"));
    const url = `(import.meta.url.slice(0, import.meta.url.lastIndexOf("/dist/") + 6) + ${own})`;
    return { contents: readFileSync(path, "utf8").replaceAll("import.meta.url", url), loader: "js" };
  });
}

// Packages that a release carries itself, each as one file with its types and licences.

/** Dependencies of which most is sources, tests and variants for other systems. */
export const INLINED = ["csv-parse", "oled-font-5x7", "prom-client", "yaml", "zod"];
/** Entry of the types that our own refer to; only zod's are part of the public ones. */
const TYPES = { zod: { ".": "index.d.ts", "./v4/core": "v4/core/index.d.ts" } };

// decisions: A release is bundled
/**
 * Writes the packages into node_modules below `own`, where npm packs them as `bundleDependencies`: programs and types
 * resolve them as ever, and npm lists them with their versions.
 * @param {{ root: string, own: string }} options
 */
export async function writeInlined({ root, own }) {
  for (const name of INLINED) await writePackage(name, { root, folder: join(own, "node_modules", name) });
}

async function writePackage(name, { root, folder }) {
  const from = join(root, "node_modules", name);
  const { version, license, description, author } = JSON.parse(readFileSync(join(from, "package.json"), "utf8"));
  // names, since an import of a CommonJS file sees only those that stand in its text
  const names = Object.keys(createRequire(join(root, "package.json"))(name));
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    stdin: { contents: `export { ${names} } from ${JSON.stringify(name)};`, resolveDir: root },
    bundle: true,
    format: "cjs",
    platform: "node",
    target: "node20",
    external: INLINED.filter((other) => other !== name),
    minifyWhitespace: true,
    minifySyntax: true,
    keepNames: true,
    legalComments: "inline",
    metafile: true,
    write: false,
    logLevel: "error",
  });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "index.cjs"), outputFiles[0].contents);
  for (const part of packagesOf(metafile)) {
    const file = readdirSync(join(root, part)).find((file) => /^licen[cs]e/i.test(file));
    const suffix = part === relative(root, from) ? "" : `.${part.replace(/^.*node_modules\//, "").replace("/", "-")}`;
    if (file !== undefined) cpSync(join(root, part, file), join(folder, `LICENSE${suffix}`));
  }
  if (!existsSync(join(folder, "LICENSE"))) throw new Error(`${name} has no licence file to pack.`);
  const types = TYPES[name] ?? {};
  if (TYPES[name] !== undefined) copyTypes(from, folder);
  const exports = Object.entries({ ".": undefined, ...types }).map(([key, file]) => [
    key,
    { ...(file && { types: `./${file}` }), ...(key === "." && { default: "./index.cjs" }) },
  ]);
  const manifest = {
    name,
    version,
    description,
    author,
    license,
    type: "module",
    exports: Object.fromEntries(exports),
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Folders of the packages that a bundle has parts of, relative to the checkout. */
function packagesOf({ inputs }) {
  const parts = Object.keys(inputs).map((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  return new Set(parts.filter((part) => part !== undefined));
}

function copyTypes(from, to) {
  for (const path of readdirSync(from, { recursive: true, encoding: "utf8" })) {
    if (!/^(index|v4\/(classic|core|locales)\/.*)\.d\.ts$/.test(path)) continue;
    mkdirSync(dirname(join(to, path)), { recursive: true });
    cpSync(join(from, path), join(to, path));
  }
}
