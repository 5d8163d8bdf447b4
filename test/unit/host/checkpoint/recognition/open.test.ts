import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import {
  type GgufContents,
  type GgufValue,
  textValue,
  u32,
  u64,
  writeGguf,
} from "../../../../helpers/models/gguf-file.js";
import { f32, weightFile, writeWeights } from "../../../../helpers/models/weight-file.js";

describe("openModelFile", () => {
  const folder = temporaryFolder();
  const written = (name: string, bytes: Uint8Array): string => {
    const path = join(folder(), name);
    writeFileSync(path, bytes);
    return path;
  };

  it("opens a .safetensors file, also one whose header has 128 bytes", async () => {
    for (let length = 1; length < 120; length++) {
      const file = await weightFile(writeWeights(join(folder(), "a.safetensors"), { ["k".repeat(length)]: f32([2]) }));
      assert.equal(file.weights.size, 1);
    }
  });

  it("opens a GGUF file, whatever its name, under the names of .safetensors files", async () => {
    const tensors = {
      "enc.blk.0.attn_q.weight": { type: 8, shape: [2, 32], bytes: new Uint8Array(68) },
      "enc.output_norm.weight": { type: 0, shape: [4], bytes: new Uint8Array(16) },
    };
    const pairs = { "general.architecture": textValue("t5encoder") };
    const file = await weightFile(writeGguf(join(folder(), "t5.safetensors"), { pairs, tensors }));
    assert.deepEqual(
      [...file.weights].map(([name, { dtype, shape, key }]) => [name, dtype, shape, key]),
      [
        ["encoder.block.0.layer.0.SelfAttention.q.weight", "Q8_0", [2, 32], "enc.blk.0.attn_q.weight"],
        ["encoder.final_layer_norm.weight", "F32", [4], "enc.output_norm.weight"],
      ],
    );
    assert.equal(file.metadata["general.architecture"], "t5encoder");
  });

  it("reads a GGUF header of any length up to 32 MiB, beyond the parts that are tried first", async () => {
    const tensors = { w: { type: 0, shape: [1], bytes: new Uint8Array(4) } };
    const list = (length: number): GgufValue => [9, Buffer.concat([u32(0), u64(length), Buffer.alloc(length)])];
    for (const length of [2 ** 16 - 100, 2 ** 16, 2 ** 21, 2 ** 24]) {
      const path = writeGguf(join(folder(), "long.gguf"), { pairs: { "tokenizer.scores": list(length) }, tensors });
      assert.deepEqual([...(await weightFile(path)).weights.keys()], ["w"]);
    }
    const path = writeGguf(join(folder(), "long.gguf"), { pairs: { "tokenizer.scores": list(2 ** 25) }, tensors });
    await refuses(weightFile(path), "model.invalid", /"long.gguf": expected a header of at most 33554432 bytes/);
  });

  it("names a damaged GGUF file, an unknown type and a language model that is none of an image model", async () => {
    const opened = (contents: GgufContents) => weightFile(writeGguf(join(folder(), "m.gguf"), contents));
    await refuses(weightFile(written("cut.gguf", Buffer.from("GGUF\x03\0\0\0\x01"))), "model.invalid", /"cut.gguf"/);
    const exotic = { w: { type: 16, shape: [256], bytes: new Uint8Array(66) } };
    await refuses(opened({ tensors: exotic }), "model.unsupported", /"m.gguf".*received IQ2_XXS/);
    const llama = { pairs: { "general.architecture": textValue("llama") } };
    await refuses(opened(llama), "model.unsupported", /received those of a Llama or Mistral/);
    const name = "model.layers.0.self_attn.q_proj.weight";
    const one = { type: 0, shape: [1], bytes: new Uint8Array(4) };
    const twice = { "blk.0.attn_q.weight": one, [name]: one };
    await refuses(opened({ tensors: twice }), "model.invalid", /each weight once, received "model.layers.0/);
  });

  it("says what a file of another format is, whatever its name, and what to do", async () => {
    const text = (content: string): Uint8Array => Buffer.from(content);
    const cases: [name: string, bytes: Uint8Array, received: RegExp][] = [
      ["sd.ckpt", Buffer.from(`PK\x03\x04${"\0".repeat(26)}archive/data.pkl`, "latin1"), /a PyTorch pickle .*convert/],
      ["sd.safetensors", Uint8Array.of(0x80, 2, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20), /a PyTorch pickle/],
      ["zip.safetensors", Buffer.from(`PK\x03\x04${"\0".repeat(26)}model.safetensors`), /a ZIP archive: unpack it/],
      ["gz.safetensors", Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3), /a gzip archive: unpack it/],
      ["7z.safetensors", Uint8Array.of(0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c, 0, 4), /a 7-Zip archive: unpack it/],
      ["png.safetensors", Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1"), /a PNG picture/],
      ["page.safetensors", text("<!DOCTYPE html><html><title>Sign in</title></html>"), /a web page: .*login/],
      ["spaced.safetensors", text("\ufeff\n\n  <HTML lang='en'>"), /a web page/],
      ["utf16.safetensors", Buffer.from("\ufeff<!DOCTYPE html><html>", "utf16le"), /a web page/],
      ["utf16be.safetensors", Buffer.from("\ufeff{}ab", "utf16le").swap16(), /received JSON, /],
      ["no-mark.safetensors", Buffer.from("Not Found", "utf16le"), /text: download it again/],
      [
        "tar.safetensors",
        Buffer.from(`a.safetensors${"\0".repeat(244)}ustar${"\0".repeat(250)}`),
        /a tar archive: unpack it/,
      ],
      ["model.onnx", Buffer.from("\x08\x07\x12\x07pytorch\x1a\x052.0.1"), /an ONNX model: use the model's/],
      ["xml.safetensors", text('<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'), /received XML.*again/],
      [
        "json.safetensors",
        text('{"error":"Invalid username or password."}'),
        /JSON, probably a server's error message: /,
      ],
      ["list.safetensors", text('[{"a":1},{"b":2}]'), /received JSON, /],
      ["plain.safetensors", text("Not Found"), /text: download it again/],
      [
        "gated.safetensors",
        text("Access to model black-forest-labs/FLUX.1-dev is restricted. Please log in."),
        /a server's refusal: the download needs a login or a token/,
      ],
      ["short.safetensors", text("Entry"), /text: download it again/],
      [
        "lfs.safetensors",
        text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n"),
        /a Git LFS pointer: .* git lfs pull/,
      ],
    ];
    for (const [name, bytes, received] of cases) {
      const { message } = await refuses(weightFile(written(name, bytes)), "model.unsupported", received);
      assert.ok(message.startsWith(`Model "${name}": expected a .safetensors or GGUF file, received `), message);
    }
  });

  it("loads a .safetensors file under any name", async () => {
    const path = writeWeights(join(folder(), "model.gguf"), { a: f32([2]) });
    assert.deepEqual([...(await weightFile(path)).weights.keys()], ["a"]);
  });

  it("says which part of a .safetensors file is missing", async () => {
    const whole = readFileSync(writeWeights(join(folder(), "a.safetensors"), { a: f32([100]) }));
    const cases: [string, Uint8Array, RegExp][] = [
      ["empty", new Uint8Array(0), /received an empty file: download it again\.$/],
      ["zeros", new Uint8Array(4096), /received a file of zeros, probably an interrupted download: download it again/],
      ["cut header", whole.subarray(0, 30), /received only the first 30 bytes of one: download it again/],
      // a header of 640 bytes, whose length begins as a pickle does
      ["cut length", Uint8Array.of(0x80, 2, 0, 0, 0, 0, 0, 0, 0x7b, 0x22), /received only the first 10 bytes of one/],
      [
        "cut early",
        Uint8Array.of(0x80, 2, 0, 0).reverse(),
        /received only the first 4 bytes of one: download it again/,
      ],
      ["eight bytes", whole.subarray(0, 8), /received only the first 8 bytes of one: download it again/],
      [
        "pairs",
        Uint8Array.from({ length: 300 }, (_, i) => (i === 1 ? 0 : 200)),
        /a file that does not start like one: /,
      ],
      [
        "junk",
        Uint8Array.from({ length: 300 }, (_, i) => (i * 97 + 13) % 256),
        /a file that does not start like one: /,
      ],
      [
        "cut values",
        whole.subarray(0, whole.length - 1),
        /the file is cut off: its tensors need \d+ bytes, it has \d+; /,
      ],
    ];
    for (const [name, bytes, received] of cases)
      await refuses(weightFile(written(`${name}.safetensors`, bytes)), "safetensors.invalid", received);
  });

  it("leaves damaged and absent files to the reader of headers", async () => {
    await refuses(
      weightFile(written("t.safetensors", Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9))),
      "safetensors.invalid",
    );
    await refuses(weightFile(join(folder(), "none.safetensors")), "file.not-found");
  });

  it("names the .safetensors file to get in place of an adapter's pickle", async () => {
    const pickle = Buffer.concat([Buffer.from([0x80, 2]), Buffer.alloc(100, 1)]);
    const instead =
      /expected a \.safetensors or GGUF file, such as "ip-adapter_sd15\.safetensors", received a PyTorch pickle/;
    await refuses(weightFile(written("ip-adapter_sd15.bin", pickle)), "model.unsupported", instead);
    const plain = /expected a \.safetensors or GGUF file, received a PyTorch pickle/;
    await refuses(weightFile(written("other.bin", pickle)), "model.unsupported", plain);
  });
});
