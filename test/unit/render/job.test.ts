import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { JOB_RULES, type Job, jobOf } from "#src/graph/job.js";
import { parseJson } from "#src/io/json/lossless.js";
import { parseJob, printJob, refuseUnsendable } from "#src/render/job.js";
import { refuses } from "../../helpers/errors.js";
import { filesIn, root } from "../../helpers/folders.js";

/** A job of all options but `files`, which travel beside it. */
const WHOLE: Required<Omit<Job, "files">> = {
  targets: ["2"],
  partialExecutionTargets: null,
  outputDir: "/out",
  inputDir: "/in",
  classAliases: { Old: "New" },
  extraPnginfo: { workflow: { nodes: [] } },
  config: { remote_image_api: { base_url: "https://example.com" } },
  partial: true,
  allowNetwork: false,
  device: "cpu",
  previews: true,
  set: { "1.seed": 7n },
  passing: ["1.seed"],
  metadata: "prompt",
  format: { type: "webp", quality: 80 },
  parameters: true,
  redact: ["1.text"],
  output: "memory",
  cacheDir: "/cache",
  setup: new URL("file:///setup.mjs"),
  validate: false,
  runId: "run",
};
/** Tests that name every option, whatever it does. */
const TABLES: readonly string[] = ["base/options.test.ts", "render/job.test.ts"];

describe("a job as text", () => {
  it("keeps every digit of set and extraPnginfo, and the order of keys", () => {
    const job: Job = {
      set: { "10.seed": 18446744073709551615n, "2.cfg": parseJson("7.0") },
      extraPnginfo: parseJson('{"10": 1e-07, "2": 0.10}') as Record<string, unknown>,
    };
    assert.deepEqual(parseJob(printJob(job)), job);
    assert.match(printJob(job), /18446744073709551615.*7\.0.*"10": 1e-07, "2": 0\.10/);
  });

  it("has every option, as a thread reads it", () => {
    assert.deepEqual(parseJob(printJob(WHOLE)), { ...WHOLE, set: parseJson('{"1.seed":7}') });
  });

  it("has no option but those whose effect a test shows", () => {
    const tests = filesIn(join(root, "test/unit")).filter(
      (name) => name.endsWith(".test.ts") && !TABLES.includes(name),
    );
    const code = tests.map((name) => readFileSync(join(root, "test/unit", name), "utf8")).join("\n");
    const untested = Object.keys(JOB_RULES).filter((option) => !new RegExp(`\\b${option}\\b`).test(code));
    assert.deepEqual(untested, []);
  });

  it("keeps the numbers of a configuration as numbers, and drops undefined values alone", () => {
    const config = { base_url: undefined, timeout: 1e-7, far: 2 ** 60, below: -0, list: [0.1] };
    const job = parseJob(printJob({ config: config as object, targets: ["4"] }));
    assert.deepEqual(job, { config: { timeout: 1e-7, far: 2 ** 60, below: -0, list: [0.1] }, targets: ["4"] });
  });

  it("refuses what JSON would lose, with option and key", async () => {
    const wrong: [Job, RegExp][] = [
      [{ set: { "4.seed": Number.NaN } }, /^set, 4\.seed: expected a text, a number, .* received NaN\.$/],
      [{ set: { "4.seed": 2 ** 60 } }, /^set, 4\.seed: expected a whole number beyond 2\^53 as a bigint or text/],
      [{ set: { "4.seed": undefined } }, /^set, 4\.seed: .* received undefined\.$/],
      [{ extraPnginfo: { at: new Date(0) } }, /^extraPnginfo, at: /],
      [{ config: { keys: [() => "secret"] } as object }, /^config, keys: .* received a function\.$/],
      [{ config: { keys: new Map() } as object }, /^config, keys: /],
    ];
    for (const [job, pattern] of wrong) {
      await refuses(() => printJob(job), "usage.invalid", pattern);
      await refuses(() => refuseUnsendable(job), "usage.invalid", pattern);
    }
    refuseUnsendable({ extraPnginfo: { seed: 2 ** 60 } });
  });
});

describe("jobOf", () => {
  it("takes the plain data out of options", () => {
    const options = {
      set: { a: 1 },
      device: undefined,
      setup: new URL("file:///a/setup.mjs"),
      clock: () => new Date(),
    };
    assert.deepEqual(jobOf(options), { set: { a: 1 }, setup: new URL("file:///a/setup.mjs") });
  });
});
