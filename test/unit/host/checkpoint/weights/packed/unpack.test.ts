import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PackedWeights } from "#src/host/checkpoint/weights/packed/packed-weights.js";
import { withUnpacked } from "#src/host/checkpoint/weights/packed/unpack.js";
import { refuses } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import { writeGguf } from "../../../../../helpers/models/gguf-file.js";
import { weightFile } from "../../../../../helpers/models/weight-file.js";

describe("withUnpacked", () => {
  const folder = temporaryFolder();

  /** A weight of Q8_0 of more bytes than are read at once: block b has the scale 1 and the value b at its first place. */
  async function opened(blocks: number) {
    const bytes = new Uint8Array(34 * blocks);
    for (let b = 0; b < blocks; b++) bytes.set([0x00, 0x3c, b % 127], 34 * b);
    const path = writeGguf(join(folder(), "m.gguf"), { tensors: { w: { type: 8, shape: [blocks, 32], bytes } } });
    return { path, weight: (await weightFile(path)).weights.get("w")! };
  }
  const unpacked = () => join(folder(), "unpacked");

  it("does its work with the file, whose parts have their places, and removes it", async () => {
    const blocks = 40_000;
    const { path, weight } = await opened(blocks);
    const packed = new PackedWeights(path, unpacked());
    const floats = packed.floats(weight);
    const codes = packed.codes(weight, [32])!;
    assert.equal(packed.floats(weight), floats);
    assert.equal(packed.codes(weight, [32]), codes);
    const result = await withUnpacked(packed.plan, async () => {
      const bytes = readFileSync(floats.file);
      const values = new Float32Array(bytes.buffer, bytes.byteOffset + floats.from, (floats.to - floats.from) / 4);
      assert.equal(values.length, 32 * blocks);
      for (let b = 0; b < blocks; b++) {
        assert.equal(values[32 * b], b % 127);
        // the number less 8, as 16 times one code and another
        const [high, low] = [codes.codes, codes.lows!].map(({ from }) => (bytes[from + 16 * b]! & 15) - 8);
        assert.equal(16 * high! + low! + 8, b % 127);
      }
      const scales = new Float32Array(bytes.buffer, bytes.byteOffset + codes.scales.from, blocks);
      assert.ok(scales.every((scale) => scale === 1));
      return "done";
    });
    assert.equal(result, "done");
    assert.deepEqual(readdirSync(unpacked()), []);
  });

  it("writes nothing if nothing is packed, and removes the file if its work fails", async () => {
    assert.equal(await withUnpacked(new PackedWeights(folder(), unpacked()).plan, async () => 1), 1);
    assert.equal(existsSync(unpacked()), false);
    const { path, weight } = await opened(2);
    const packed = new PackedWeights(path, unpacked());
    packed.floats(weight);
    const failing = withUnpacked(packed.plan, async () => {
      throw new Error("no session");
    });
    await assert.rejects(failing, /no session/);
    assert.deepEqual(readdirSync(unpacked()), []);
  });

  it("removes what processes that have ended left, and nothing else", async () => {
    const { path, weight } = await opened(2);
    mkdirSync(unpacked());
    const uuid = "0b0e7c9e-3a53-4b57-9c4c-0123456789ab";
    // beyond the largest process id of Linux
    const names = [`4194305-${uuid}.weights`, `${process.pid}-${uuid}.weights`, "notes.weights", `4194305-${uuid}.txt`];
    for (const name of names) writeFileSync(join(unpacked(), name), "");
    const packed = new PackedWeights(path, unpacked());
    packed.floats(weight);
    await withUnpacked(packed.plan, async () => {});
    assert.deepEqual(readdirSync(unpacked()).sort(), names.slice(1).sort());
  });

  it("says what is wrong with a file that has become shorter, or is gone", async () => {
    const { path, weight } = await opened(64);
    const packed = new PackedWeights(path, unpacked());
    packed.floats(weight);
    truncateSync(path, weight.to - 1);
    await refuses(
      withUnpacked(packed.plan, async () => {}),
      "model.invalid",
      /"m.gguf": tensor "w" is cut off/,
    );
    const other = new PackedWeights(path, unpacked());
    other.floats({ ...weight, file: join(folder(), "gone.gguf") });
    await refuses(
      withUnpacked(other.plan, async () => {}),
      "file.not-found",
      /"gone.gguf" no longer exists/,
    );
    assert.deepEqual(readdirSync(unpacked()), []);
  });

  it("says, if there is no room, how much it takes and how to find another place", async () => {
    const { path, weight } = await opened(64);
    writeFileSync(join(folder(), "file"), "");
    const packed = new PackedWeights(path, join(folder(), "file", "unpacked"));
    packed.floats(weight);
    const pattern = /cannot be unpacked in .*: ENOTDIR\. Loading needs 0\.0 GB there: set LATENTKIT_CACHE_DIR/;
    await refuses(
      withUnpacked(packed.plan, async () => {}),
      "file.write-failed",
      pattern,
    );
  });
});
