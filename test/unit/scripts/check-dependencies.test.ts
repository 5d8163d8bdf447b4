import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../helpers/folders.js";

interface ThirdParty {
  readonly name: string;
  readonly version: string;
  readonly text: string;
}
interface Dependencies {
  checkLicenses(installed: readonly [string, { license?: string }][]): string[];
  checkVersions(parts: readonly ThirdParty[], notice: string): string[];
}

const script = (path: string): Promise<unknown> => import(new URL(`../../../../scripts/${path}`, import.meta.url).href);

describe("scripts/check-dependencies", () => {
  let checks: Dependencies;
  before(async () => {
    checks = (await script("check-dependencies.mjs")) as Dependencies;
  });

  it("finds no fault with the packages that users install", async () => {
    const { installedPackages } = (await script("release/bill-of-materials.mjs")) as {
      installedPackages(root: string): [string, { license?: string }][];
    };
    const installed = installedPackages(root);
    assert.ok(installed.length > 50, `${installed.length} packages`);
    assert.deepEqual(checks.checkLicenses(installed), []);
  });

  it("refuses other licences, and none, but not a choice", () => {
    const findings = checks.checkLicenses([
      ["node_modules/a", { license: "GPL-3.0-only" }],
      ["node_modules/b", {}],
      ["node_modules/c", { license: "(MIT AND GPL-2.0)" }],
      ["node_modules/d", { license: "(GPL-2.0 OR MIT)" }],
    ]);
    assert.deepEqual(
      findings.map((finding) => finding.replace(/:.*, received/, " is")),
      ["node_modules/a is GPL-3.0-only.", "node_modules/b is undefined.", "node_modules/c is (MIT AND GPL-2.0)."],
    );
  });

  it("compares third-party.json with NOTICE and with what is installed", async () => {
    const { THIRD_PARTY } = (await script("release/third-party.mjs")) as { THIRD_PARTY: ThirdParty[] };
    const notice = readFileSync(join(root, "NOTICE"), "utf8");
    assert.deepEqual(checks.checkVersions(THIRD_PARTY, notice), []);
    const changed = THIRD_PARTY.map((part) => (part.name === "preact" ? { ...part, version: "1.0.0" } : part));
    const findings = checks.checkVersions(changed, notice);
    assert.equal(findings.length, 2, findings.join("\n"));
    assert.match(findings[0]!, /^NOTICE: expected preact 1\.0\.0 with /);
    assert.match(findings[1]!, /third-party\.json: expected preact \d\S+, received 1\.0\.0\.$/);
  });
});
