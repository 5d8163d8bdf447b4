// The parts of a release, as CycloneDX: packages of the lock file, what is compiled in, the platforms' own packages.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { npm } from "./npm.mjs";
import { THIRD_PARTY } from "./third-party.mjs";

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
