import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { invokeNode, type Latent, LatentkitError, registry, Tensor, type Vae } from "latentkit";
import { temporaryFolder } from "../../helpers/folders.js";
import { assertClose, assertSameBits } from "../../helpers/tensor/bits.js";
import { golden } from "../../helpers/tensor/golden.js";

interface Case {
  id: string;
  node: string;
  inputs: Record<string, unknown>;
  file?: string;
  outputs?: unknown[];
  shapes?: Record<string, number[]>;
  error?: string;
}

const { cases, raw, has, tensor } = golden<Case>("core_nodes");

/** Cases that are decided otherwise than in the reference, by id: the expectation here. */
const REFUSED: Record<string, string> = {
  "LoadImage/truncated.png": "a truncated file is refused",
  "LoadImage/bmp.bmp": "only PNG is read",
  "LoadImage/gif2.gif": "only PNG is read",
};
const IS_DEEP = /16(_trns)?\.png/;

/** The golden set's VAE: means of 8 x 8 blocks, centred, times 2 less 1, and red less green as a fourth channel. */
const stubVae: Vae = {
  encode: async (pixels) => {
    const [batch, height, width, channels] = pixels.shape as [number, number, number, number];
    const [rows, columns] = [Math.floor(height / 8), Math.floor(width / 8)];
    const [top, left] = [(height % 8) >> 1, (width % 8) >> 1];
    const mean = (b: number, row: number, column: number, channel: number) => {
      let sum = 0;
      for (let y = 0; y < 8; y++)
        for (let x = 0; x < 8; x++) {
          const at = (b * height + top + 8 * row + y) * width + left + 8 * column + x;
          sum += pixels.data[at * channels + channel]!;
        }
      return sum / 64;
    };
    const out = Tensor.zeros([batch, 4, rows, columns]);
    for (let at = 0; at < out.size; at++) {
      const [column, row] = [at % columns, Math.floor(at / columns) % rows];
      const [channel, b] = [Math.floor(at / (columns * rows)) % 4, Math.floor(at / (columns * rows * 4))];
      out.data[at] =
        channel < 3 ? mean(b, row, column, channel) * 2 - 1 : mean(b, row, column, 0) - mean(b, row, column, 1);
    }
    return out;
  },
  decode: () => assert.fail("no golden case decodes"),
};

describe("golden core_nodes", () => {
  const folder = temporaryFolder();

  for (const testCase of cases) {
    const key = testCase.node.replace(/\.IS_CHANGED$/, "");
    const definition = registry.get(key);
    if (definition === undefined) continue;
    it(testCase.id, async () => {
      const inputs = Object.fromEntries(Object.entries(testCase.inputs).map(([name, value]) => [name, read(value)]));
      if (testCase.file !== undefined && has(testCase.file))
        writeFileSync(join(folder(), String(inputs.image)), raw(testCase.file).data);
      if (key !== testCase.node) {
        assert.equal(await definition.isChanged?.(inputs, { inputDir: folder() }), testCase.outputs![0]);
        return;
      }
      const pending = invokeNode(key, inputs, { inputDir: folder() });
      if (testCase.error !== undefined || testCase.id in REFUSED) {
        await assert.rejects(pending, LatentkitError);
        return;
      }
      const { result } = await pending;
      assert.equal(result.length, testCase.outputs!.length);
      testCase.outputs!.forEach((output, slot) => {
        compare(testCase, result[slot], output, result);
      });
    });
  }

  /** Names of tensors are the tensors, anywhere in a value. */
  function read(value: unknown): unknown {
    if (value === "stub:vae") return stubVae;
    if (typeof value === "string" && has(value)) return tensor(value);
    if (Array.isArray(value)) return value.map(read);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, read(inner)]));
  }
});

/** Tensors of zeros are left out of the file: their shape tells them. */
const expectedOf = ({ shapes }: Case, name: string): Tensor =>
  has(name) ? tensor(name) : Tensor.zeros(shapes![name]!);

function compare(testCase: Case, actual: unknown, expected: unknown, result: readonly unknown[]): void {
  if (typeof expected !== "string") {
    const { samples, ...rest } = expected as { samples: string };
    const { samples: ours, ...others } = actual as Latent;
    assert.deepEqual(others, rest);
    near(testCase, ours, expectedOf(testCase, samples));
    return;
  }
  const reference = expectedOf(testCase, expected);
  const [, height, width] = (result[0] as Tensor).shape;
  const isEmptyMask = testCase.node === "LoadImage" && expected.endsWith(".1") && !has(expected);
  // decided: the mask of a picture without alpha has the picture's size, not 64 x 64
  if (isEmptyMask) assertSameBits(actual, Tensor.zeros([reference.shape[0]!, height!, width!]));
  else if (IS_DEEP.test(testCase.id)) deep(testCase, actual as Tensor, reference);
  else near(testCase, actual, reference);
}

/** Bit for bit, but for the VAE: the stub here adds up in double. */
function near({ node, id }: Case, actual: unknown, expected: Tensor): void {
  // a mask [H, W] is read as [1, H, W]
  if (id === "InvertMask/1") assertSameBits(actual, expected.reshape([1, ...expected.shape]), id);
  else if (node === "VAEEncode") assertClose(actual, expected, () => 1e-6, id);
  else assertSameBits(actual, expected, id);
}

/** Decided: 16 bits are scaled. The reference clips grey at 255 and keeps the high byte of others. */
function deep({ id }: Case, actual: Tensor, reference: Tensor): void {
  assert.deepEqual([...actual.shape], [...reference.shape]);
  const isMask = actual.shape.length === 3 && !/red|green|blue/.test(id);
  const isGrey = /grey16/.test(id);
  for (const [i, value] of actual.data.entries()) {
    const sample = Math.round((isMask ? 1 - value : value) * 65535);
    const scaled = Math.fround(sample / 65535);
    assert.equal(value, isMask ? Math.fround(1 - scaled) : scaled);
    const byte = Math.fround((isGrey ? Math.min(sample, 255) : sample >> 8) / 255);
    assert.equal(isMask ? Math.fround(1 - byte) : byte, reference.data[i], `${id}: element ${i}`);
  }
}
