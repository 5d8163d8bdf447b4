import assert from "node:assert/strict";
import type { Job } from "#src/graph/job.js";
import { batchHash } from "#src/render/batch/prepare.js";

const prompt = { 2: { class_type: "a", inputs: { x: 1 } } };
const whole: Job = {
  set: { "5.seed": 18446744073709551615n, "10": 1, "2": "x" },
  targets: ["6"],
  classAliases: { "easy ": "" },
  metadata: "prompt",
  redact: ["6.text"],
  extraPnginfo: { note: "n", "7": 1 },
  setup: new URL("file:///a/setup.mjs"),
};

describe("batchHash", () => {
  it("stays what journals hold", () => {
    const written = [
      [whole, "{number}", "dcda52ebdecdadb1b4e23dc1bf887ee4a7b7473477453375d15cee8dbb2f9a92"],
      [{}, undefined, "f50c54d8b5b4c66565ce0976967db2e8ca42339557211de874a04817adf6da0b"],
      [{ set: {}, redact: [] }, undefined, "1c0dec5dc28cbf4452b34da9f1b766f1134c37a6d2e6bdebc6bc167764800893"],
    ] as const;
    for (const [job, name, hash] of written) assert.equal(batchHash(prompt, job, name), `sha256:${hash}`);
  });

  it("does not depend on the order of a job's fields, on folders or on the machine", () => {
    const elsewhere: Job = {
      outputDir: "/o",
      inputDir: "/i",
      cacheDir: "/c",
      device: "cpu",
      config: {},
      partial: true,
      allowNetwork: false,
      passing: ["x"],
      ...Object.fromEntries(Object.entries(whole).reverse()),
    };
    assert.equal(batchHash(prompt, elsewhere, "{number}"), batchHash(prompt, whole, "{number}"));
    for (const key of Object.keys(whole)) {
      assert.notEqual(
        batchHash(prompt, { ...whole, [key]: undefined }, "{number}"),
        batchHash(prompt, whole, "{number}"),
      );
    }
  });

  it("depends on names and bytes of files at hand", () => {
    const hashOf = (files: Job["files"]) => batchHash(prompt, { ...whole, files }, undefined);
    const [a, b] = [new Uint8Array([1, 2]), new Uint8Array([1, 3])];
    assert.equal(hashOf({ a }), hashOf({ a: Buffer.from(a) }));
    const choices: Job["files"][] = [undefined, { a }, { a: b }, { b: a }, { a, b }];
    assert.equal(new Set(choices.map(hashOf)).size, choices.length);
  });
});
