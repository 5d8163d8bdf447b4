// Run with --experimental-vm-modules: imports a module with the globals of another context, as jest does its tests. The
// package's own files are evaluated there; Node's modules, its packages and the native core are of this one.
//   node --experimental-vm-modules other-realm.js FILE
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import vm from "node:vm";

/** The globals that jest's environment for Node takes from Node. */
const SHARED = ["ArrayBuffer", "Uint8Array", "console"];
const own = vm.createContext();
const known = new Set<string>(vm.runInContext("Object.getOwnPropertyNames(globalThis)", own) as string[]);
for (const name of Object.getOwnPropertyNames(globalThis)) {
  if (known.has(name) && !SHARED.includes(name)) continue;
  Object.defineProperty(own, name, { value: (globalThis as Record<string, unknown>)[name], configurable: true });
}

const modules = new Map<string, Promise<vm.Module>>();

async function load(url: string): Promise<vm.Module> {
  if (!url.startsWith("file:")) return foreign(url);
  const link = (specifier: string) => found(specifier, url);
  return new vm.SourceTextModule(readFileSync(fileURLToPath(url), "utf8"), {
    identifier: url,
    context: own,
    initializeImportMeta: (meta) => {
      meta.url = url;
    },
    importModuleDynamically: async (specifier) => ready(await link(specifier)),
  });
}

async function foreign(url: string): Promise<vm.Module> {
  const exported = (await import(url)) as Record<string, unknown>;
  const names = Object.keys(exported);
  return new vm.SyntheticModule(
    names,
    function (this: vm.SyntheticModule) {
      for (const name of names) this.setExport(name, exported[name]);
    },
    { identifier: url, context: own },
  );
}

function found(specifier: string, parent: string): Promise<vm.Module> {
  const url = /^\.{0,2}\//.test(specifier) ? new URL(specifier, parent).href : specifier;
  const module = modules.get(url) ?? load(url);
  modules.set(url, module);
  return module;
}

async function ready(module: vm.Module): Promise<vm.Module> {
  if (module.status === "unlinked") await module.link((specifier, { identifier }) => found(specifier, identifier));
  await module.evaluate();
  return module;
}

await ready(await found(pathToFileURL(process.argv[2]!).href, import.meta.url));
