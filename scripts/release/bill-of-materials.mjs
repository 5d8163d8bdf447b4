// The parts of a release, as CycloneDX: packages of the lock file, what is compiled in, the platforms' own packages.
import { npm } from "./npm.mjs";
import { THIRD_PARTY } from "./third-party.mjs";

/**
 * A bill of materials, without the tools of the build.
 * @param {string} root
 * @param {readonly string[]} packages names of the platforms' packages
 */
export function billOfMaterials(root, packages) {
  const args = ["sbom", "--sbom-format=cyclonedx", "--omit=dev", "--omit=peer", "--package-lock-only"];
  const bill = JSON.parse(npm(args, root));
  const { component } = bill.metadata;
  const ref = component["bom-ref"];
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
  const own = [...compiled, ...platforms];
  const dependencies = bill.dependencies.map((entry) =>
    entry.ref === ref ? { ...entry, dependsOn: [...entry.dependsOn, ...own.map((part) => part["bom-ref"])] } : entry,
  );
  return { ...bill, components: [...bill.components, ...own], dependencies };
}
