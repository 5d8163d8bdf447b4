import { readFileSync } from "node:fs";
import { join } from "node:path";
import { npm } from "./npm.mjs";

// The parts of a release, as CycloneDX: packages of the lock file, what is compiled in, the platforms' own packages.

/**
 * A bill of materials, without the tools of the build.
 * @param {string} root
 * @param {readonly string[]} packages names of the platforms' packages
 */
export function billOfMaterials(root, packages) {
  // with --omit=dev, npm 11 leaves out packages of users too that a tool depends on as well
  const bill = JSON.parse(npm(["sbom", "--sbom-format=cyclonedx", "--package-lock-only"], root));
  const { component } = bill.metadata;
  const compiled = THIRD_PARTY.map(({ name, version, license, copyright, origin }) => ({
    "bom-ref": `compiled:${name}@${version}`,
    type: "library",
    name,
    version,
    copyright,
    licenses: [license.includes(" ") ? { expression: license } : { license: { id: license } }],
    externalReferences: [{ type: "website", url: origin }],
  }));
  const platforms = packages.map((name) => ({
    "bom-ref": `${name}@${component.version}`,
    type: "library",
    name,
    version: component.version,
    scope: "optional",
    purl: `pkg:npm/${name.replace("@", "%40")}@${component.version}`,
    licenses: [{ license: { id: "Apache-2.0" } }],
  }));
  const nameOf = ([path, { name = path.replace(/^.*node_modules\//, "") }]) => name;
  const installed = new Set(installedPackages(root).map((entry) => `${nameOf(entry)}@${entry[1].version}`));
  const components = [...bill.components.filter((part) => installed.has(part["bom-ref"])), ...compiled, ...platforms];
  const refs = new Set(components.map((part) => part["bom-ref"]));
  const own = [...compiled, ...platforms].map((part) => part["bom-ref"]);
  const dependencies = bill.dependencies
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }))
    .map((entry) =>
      entry.ref === component["bom-ref"] ? { ...entry, dependsOn: [...entry.dependsOn, ...own] } : entry,
    )
    .filter(({ ref }) => refs.has(ref) || ref === component["bom-ref"]);
  // npm names the folder
  const metadata = { ...bill.metadata, component: { ...component, name: "latentkit" } };
  return { ...bill, metadata, components, dependencies };
}

/** Entries of the lock file that users install, by their paths. */
export function installedPackages(root) {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  return Object.entries(packages).filter(([path, entry]) => path !== "" && !entry.dev && !entry.peer);
}

// One list for licence texts, bill of materials and NOTICE: what is compiled in is in no node_modules.
// Third-party code that a package carries, with versions and licences: scripts/release/third-party.json.

/**
 * @typedef {{ name: string, version: string, license: string, copyright: string, origin: string, text: string,
 *   packed?: string, of: "core" | "page" | "tokenizer", debian?: string }} ThirdParty text: path of the licence in the
 *   checkout; packed: in a package, if it is another; of: the part that it is compiled into; debian: a package of it
 */

/** @type {readonly ThirdParty[]} */
export const THIRD_PARTY = JSON.parse(readFileSync(new URL("third-party.json", import.meta.url), "utf8"));

/** Path of a licence in a package. */
export const packedText = ({ text, packed = text }) => packed;

/** Licences of what is compiled into the native core, by their paths in a package, and where they are here. */
export function coreTexts(platform = "") {
  const core = THIRD_PARTY.filter((part) => part.of === "core").map((part) => [packedText(part), part.text]);
  return Object.fromEntries(platform.startsWith("win32-") ? [...core, [WINDOWS_RUNTIME, WINDOWS_TEXT]] : core);
}

/** MinGW's start-up code and threads are part of a binary for Windows. */
const WINDOWS_RUNTIME = "native/third_party/mingw-w64/LICENSE";
const WINDOWS_TEXT = "/usr/share/doc/mingw-w64-x86-64-dev/copyright";
