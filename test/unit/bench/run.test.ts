import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, temporaryFolder } from "../../helpers/folders.js";

interface Report {
  machine: { processor: string };
  rows: { id: string; unit: string; ours: { median: number; p10: number; p90: number }; peers: unknown[] }[];
  losses: { id: string }[];
}

describe("bench/run", () => {
  const folder = temporaryFolder();
  const figures = () => join(folder(), "figures.json");

  const bench = (...args: string[]) => run(["--no-peers", ...args]);
  const run = (args: string[], env: NodeJS.ProcessEnv = {}) => {
    const options = ["--turns", "1", "--against", figures(), "--json", join(folder(), "report.json")];
    return spawnSync(process.execPath, [join(root, "bench/run.mjs"), ...options, ...args], {
      encoding: "utf8",
      env: { ...process.env, ...env },
    });
  };
  const report = () => JSON.parse(readFileSync(join(folder(), "report.json"), "utf8")) as Report;

  it("measures a subset without peers, as a table and as JSON", () => {
    const { status, stdout, stderr } = bench("call overhead", "randn 1x4x64x64");
    assert.equal(status, 0, stderr);
    const { rows, machine } = report();
    assert.deepEqual(
      rows.map(({ id }) => id),
      ["randn 1x4x64x64", "call overhead scale of 16 values"],
    );
    for (const { ours, peers } of rows) {
      assert.ok(0 < ours.p10 && ours.p10 <= ours.median && ours.median <= ours.p90);
      assert.deepEqual(peers, []);
    }
    assert.ok(stdout.startsWith(machine.processor));
    assert.match(stdout, /^\| call overhead +\| scale of 16 values +\| [\d.]+ us /m);
  });

  it("names what has become slower than the earlier figures of the same machine @long", () => {
    bench("call overhead");
    const before = report();
    before.rows[0]!.ours.median /= 100;
    writeFileSync(figures(), JSON.stringify(before));
    const { status, stdout } = bench("call overhead");
    assert.equal(status, 1);
    assert.match(stdout, /^Slower by more than 10 %: call overhead/m);
    assert.deepEqual(
      report().losses.map(({ id }) => id),
      [before.rows[0]!.id],
    );
    writeFileSync(figures(), JSON.stringify({ ...before, machine: { ...before.machine, processor: "another" } }));
    assert.equal(bench("call overhead").status, 0);
  });

  it("says which peers are not installed", () => {
    const { status, stdout, stderr } = run(["imageToMask"], { BENCH_PYTHON: join(folder(), "no-python") });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^\| imageToMask .* \| numpy +\| not installed \|/m);
    assert.match(stdout, /\| torch +\| not installed \|/);
  });

  it("refuses a name that no row has", () => {
    const { status, stderr } = bench("no such row");
    assert.equal(status, 1);
    assert.match(stderr, /no row is named no such row/);
  });
});
