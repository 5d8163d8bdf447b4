import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openModelFile } from "#src/host/checkpoint/recognition/open.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { f32, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("openModelFile", () => {
  const folder = temporaryFolder();
  const written = (name: string, bytes: Uint8Array): string => {
    const path = join(folder(), name);
    writeFileSync(path, bytes);
    return path;
  };

  it("opens a .safetensors file, also one whose header has 128 bytes", async () => {
    for (let length = 1; length < 120; length++) {
      const file = await openModelFile(
        writeWeights(join(folder(), "a.safetensors"), { ["k".repeat(length)]: f32([2]) }),
      );
      assert.equal(file.weights.size, 1);
    }
  });

  it("names other formats by their content, whatever the file's name", async () => {
    const cases: [string, number[], RegExp][] = [
      ["flux.gguf", [0x47, 0x47, 0x55, 0x46, 3, 0, 0, 0, 1, 0], /"flux\.gguf".*GGUF/],
      ["sd.ckpt", [0x50, 0x4b, 0x03, 0x04, 0, 0, 8, 8, 0, 0], /pickle of PyTorch/],
      ["sd.safetensors", [0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20], /pickle of PyTorch/],
    ];
    for (const [name, bytes, pattern] of cases)
      await refuses(openModelFile(written(name, Uint8Array.from(bytes))), "model.unsupported", pattern);
  });

  it("leaves damaged and absent files to the reader of headers", async () => {
    await refuses(openModelFile(written("e.safetensors", new Uint8Array(0))), "safetensors.invalid");
    await refuses(
      openModelFile(written("t.safetensors", Uint8Array.of(9, 9, 9, 9, 9, 9, 9, 9, 9))),
      "safetensors.invalid",
    );
    // a header of 640 bytes whose file was cut: its length begins as a pickle does
    const cut = Uint8Array.of(0x80, 2, 0, 0, 0, 0, 0, 0, 0x7b, 0x22);
    await refuses(openModelFile(written("cut.safetensors", cut)), "safetensors.invalid");
    await refuses(openModelFile(join(folder(), "none.safetensors")), "file.not-found");
  });
});
