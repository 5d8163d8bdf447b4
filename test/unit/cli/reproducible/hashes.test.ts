import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compare, HASHES, measure, SUBJECTS } from "#src/cli/reproducible/hashes.js";
import { loadNative } from "#src/native/load.js";
import { root } from "../../../helpers/folders.js";

describe("what every machine computes alike", () => {
  it("is what is recorded", async () => {
    assert.deepEqual(await measure(), HASHES);
  });

  it("stands in docs/reproducibility.md", () => {
    const page = readFileSync(join(root, "docs/reproducibility.md"), "utf8");
    const rows = [...page.matchAll(/^\| (\w+) \|.*\| `([0-9a-f]{64})` \|$/gm)].map(([, subject, hash]) => [
      subject,
      hash,
    ]);
    assert.deepEqual(
      rows,
      SUBJECTS.map((subject) => [subject, HASHES[subject]]),
    );
  });

  it("is compared by each instruction set and with 1, 2 and 7 threads @long", async () => {
    const seen = [];
    for await (const { isa, threads, differing, failure } of compare()) {
      assert.equal(failure, undefined);
      assert.deepEqual(differing, [], `${isa}, ${threads}`);
      seen.push(`${isa} ${threads}`);
    }
    assert.deepEqual(
      seen,
      loadNative()
        .isas()
        .flatMap((isa) => [1, 2, 7].map((threads) => `${isa} ${threads}`)),
    );
  });

  it("says which subject differs, and why one could not be tried", async () => {
    const { value } = await compare({ ...HASHES, sigmas: "0" }).next();
    assert.deepEqual([value?.differing, value?.failure], [["sigmas"], undefined]);
    const { NODE_OPTIONS } = process.env;
    process.env.NODE_OPTIONS = "--no-such-option";
    try {
      const { value: failed } = await compare().next();
      assert.match(failed?.failure ?? "", /Command failed/);
    } finally {
      if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
      else process.env.NODE_OPTIONS = NODE_OPTIONS;
    }
  });
});
