import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { root } from "../../helpers/folders.js";

interface ThirdParty {
  readonly name: string;
  readonly version: string;
  readonly text: string;
}
interface Dependencies {
  checkLicenses(installed: readonly [string, { license?: string }][]): string[];
  checkVersions(parts: readonly ThirdParty[], notice: string): string[];
  readAudit(printed: string): { findings: string[]; silence?: string };
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
    const { THIRD_PARTY } = (await script("release/bill-of-materials.mjs")) as { THIRD_PARTY: ThirdParty[] };
    const notice = readFileSync(join(root, "NOTICE"), "utf8");
    assert.deepEqual(checks.checkVersions(THIRD_PARTY, notice), []);
    const changed = THIRD_PARTY.map((part) => (part.name === "preact" ? { ...part, version: "1.0.0" } : part));
    const findings = checks.checkVersions(changed, notice);
    assert.equal(findings.length, 2, findings.join("\n"));
    assert.match(findings[0]!, /^NOTICE: expected preact 1\.0\.0 with /);
    assert.match(findings[1]!, /third-party\.json: expected preact \d\S+, received 1\.0\.0\.$/);
  });

  describe("with a registry", () => {
    const { name, version } = JSON.parse(readFileSync(join(root, "node_modules/express/package.json"), "utf8"));
    const CRITICAL = {
      express: [{ id: 1, url: "https://a.test/1", title: "a hole", severity: "critical", vulnerable_versions: "*" }],
    };
    for (const [what, status, answer, code, said, unsaid] of [
      ["that knows of nothing", 200, {}, 0, /^Licences, versions and known vulnerabilities are in order\.$/m, /NOT/],
      ["that knows of a hole", 200, CRITICAL, 1, /^express \S.* has a critical vulnerability\.$/m, /in order/],
      [
        "that offers no audit",
        405,
        {},
        0,
        /^Known vulnerabilities were NOT checked, because npm audit could not ask: 405 .*\.\nLicences and versions are/m,
        /known vulnerabilities are in order/,
      ],
    ] as [string, number, object, number, RegExp, RegExp][])
      it(`${what} says so, however npm is set`, async () => {
        // npm asks for the versions of what it is warned of, by GET
        const registry = createServer(({ method }, response) => {
          const [code, body] =
            method === "GET" ? [200, { name, versions: { [version]: { name, version } } }] : [status, answer];
          response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
        }).listen(0, "127.0.0.1");
        await once(registry, "listening");
        const { port } = registry.address() as AddressInfo;
        const address = { npm_config_registry: `http://127.0.0.1:${port}/`, no_proxy: "127.0.0.1" };
        const child = spawn(process.execPath, ["scripts/check-dependencies.mjs"], {
          cwd: root,
          env: { ...process.env, ...address, npm_config_offline: "true", npm_config_audit: "false" },
        });
        const [[exit], printed] = await Promise.all([once(child, "close"), text(child.stderr)]);
        registry.close();
        assert.equal(exit, code, printed);
        assert.match(printed, said);
        assert.doesNotMatch(printed, unsaid);
      });
  });

  it("takes anything but a report for silence", () => {
    assert.deepEqual(checks.readAudit(""), { findings: [], silence: "npm printed no report" });
    const refused = checks.readAudit('{"message":"request failed","error":{"summary":"","detail":""}}');
    assert.deepEqual(refused, { findings: [], silence: "request failed" });
  });
});
