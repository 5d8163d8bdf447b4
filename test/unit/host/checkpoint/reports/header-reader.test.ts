import assert from "node:assert/strict";
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createCheckpointHost } from "latentkit/models";
import { ModelListing } from "#src/host/checkpoint/reports/header-reader.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, writeWeights } from "../../../../helpers/models/weight-file.js";

const MIB = 2 ** 20;
/** The head of a file that says this is its header. */
const withHeader = (text: string): Buffer => {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, Buffer.from(text, "latin1")]);
};
const tensors = (count: number) =>
  Array.from({ length: count }, (_, i) => `"${i}":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`).join(",");

describe("lists of model files of strangers", () => {
  const folder = temporaryFolder();
  /** Files whose headers are made to cost, by what a list says of each. */
  const writeHostile = (): Readonly<Record<string, RegExp>> => {
    mkdirSync(join(folder(), "checkpoints"));
    const write = (name: string, header: string) =>
      writeFileSync(join(folder(), "checkpoints", `${name}.safetensors`), withHeader(header));
    const large = openSync(join(folder(), "checkpoints/garbage.safetensors"), "w");
    writeSync(large, withHeader("{"));
    writeSync(large, Buffer.from([0, 0xe1, 0xf5, 5, 0, 0, 0, 0]), 0, 8, 0);
    ftruncateSync(large, 100_000_008);
    closeSync(large);
    write("million", `{${'"a":{"shape":[]},'.repeat(1e6)}`);
    write("nested", '{"a":'.repeat(4 * MIB));
    write("lines", `${"\n".repeat(16 * MIB)}x`);
    write("escapes", `{"__metadata__":{"a":"${"\\n".repeat(8 * MIB)}"}}`);
    write("many", `{${tensors(65_536)}}`);
    return {
      garbage: /expected a header of at most 33554432 bytes, received a length of 100000000/,
      million: /^Model "million\.safetensors": expected at most 65536 tensors in a header, received 1000001\.$/,
      nested: /nesting is deeper than 3 levels/,
      lines: /line 16777217, column 1/,
      escapes: /expected a checkpoint/,
      many: /expected a checkpoint/,
    };
  };

  it("say why each cannot be loaded, in the end, and what was not read yet", async () => {
    const expected = writeHostile();
    const listing = new ModelListing([folder()]);
    const first = await listing.list();
    assert.equal(first.models.length, Object.keys(expected).length);
    for (const { refusal } of first.models) assert.ok(refusal !== undefined);
    let last = first;
    while (!last.isComplete) last = await listing.list();
    for (const [name, pattern] of Object.entries(expected)) {
      const listed = last.models.find((model) => model.name === `${name}.safetensors`);
      assert.match(listed?.refusal ?? "", pattern);
    }
    writeWeights(join(folder(), "checkpoints/nested.safetensors"), {
      "input_blocks.0.0.weight": f32([8, 4, 3, 3]),
      "out.2.weight": f32([4, 8, 3, 3]),
    });
    for (last = await listing.list(); !last.isComplete; ) last = await listing.list();
    const changed = last.models.find(({ name }) => name === "nested.safetensors");
    assert.doesNotMatch(changed?.refusal ?? "", /nesting/);
  });

  it("are answered by a host without blocking its thread, and are those of the headers in the end @alone", async () => {
    writeHostile();
    const host = createCheckpointHost({ models: folder() });
    const started = performance.now();
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    while (!(await host.refresh!())) assert.ok(host.checkpoints().length > 0);
    delay.disable();
    const whole = performance.now() - started;
    assert.ok(delay.max / 1e6 < whole / 3, `${delay.max / 1e6} ms of ${whole} ms`);
    assert.deepEqual(host.checkpoints(), []);
    const refusal = host.refusal!("checkpoints", "million.safetensors");
    assert.match(refusal !== undefined && "error" in refusal ? refusal.error.message : "", /at most 65536 tensors/);
    await host.close();
  });
});
