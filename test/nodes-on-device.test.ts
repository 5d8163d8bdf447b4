import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./helpers/folders.js";
import { SUITES } from "./helpers/process/device-suites.js";
import { fakeGpu } from "./helpers/process/fake-gpu.js";

interface Report {
  readonly stats: { readonly passes: number; readonly failures: number; readonly pending: number };
  readonly failures: readonly { readonly fullTitle: string; readonly err: { readonly message?: string } }[];
}

describe("tensors on a device", () => {
  it("pass the golden vectors and all tests of nodes and graphs @long", async function () {
    this.timeout(600_000);
    const files = SUITES.map((suite) => join("build/test", suite));
    const report = join(root, "build/test/helpers/process/report-launches.js");
    const { code, stdout, stderr } = await mocha(["--reporter", "json", "--require", report, ...files]);
    const { stats, failures } = JSON.parse(stdout.slice(stdout.indexOf('{\n  "stats"'))) as Report;
    assert.deepEqual(
      failures.map(({ fullTitle, err }) => `${fullTitle}: ${err.message}`),
      [],
    );
    assert.deepEqual([code, stats.pending], [0, 0]);
    assert.doesNotMatch(stderr, /Cannot find any files/);
    assert.ok(stats.passes > 300, String(stats.passes));
    const [, launches, misuses] = stderr.match(/^launches: (\d+), misuses: (\d+)$/m) ?? [];
    assert.ok(Number(launches) > 500, stderr);
    assert.equal(misuses, "0", stderr);
  });
});

function mocha(args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, "node_modules/mocha/bin/mocha.js"), ...args], {
      cwd: root,
      env: { ...process.env, ...fakeGpu() },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}
