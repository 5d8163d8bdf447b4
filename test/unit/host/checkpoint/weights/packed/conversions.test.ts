import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { conversionOf } from "#src/host/checkpoint/weights/packed/conversions.js";
import {
  BLOCK_TYPES,
  isBlockType,
  isPacked,
  type StoredWeight,
  type WeightMap,
} from "#src/host/checkpoint/weights/stored.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { root, suiteFolder } from "../../../../../helpers/folders.js";
import { goldenBytes, goldenText } from "../../../../../helpers/golden-file.js";
import { weightFile } from "../../../../../helpers/models/weight-file.js";

const FOLDER = join(root, "test/golden/models-flux/gguf");

describe("conversions of packed weights", () => {
  const folder = suiteFolder();
  const { tensors } = readSafetensors(goldenBytes(join(FOLDER, "gguf.safetensors"))!);
  const { types } = JSON.parse(goldenText(join(FOLDER, "gguf.json"))) as {
    types: { name: string; type: string; shape: number[]; values: string }[];
  };
  let weights: WeightMap;
  before(async () => {
    const path = join(folder(), "types.gguf");
    writeFileSync(path, goldenBytes(join(FOLDER, "types.gguf"))!);
    weights = (await weightFile(path)).weights;
  });

  const part = (bytes: Uint8Array, { from, to }: StoredWeight): Uint8Array => bytes.slice(from, to);

  /** Outputs of a conversion in parts of three units. */
  async function converted(weight: StoredWeight, form: "floats" | "codes"): Promise<Uint8Array[]> {
    const file = goldenBytes(join(FOLDER, "types.gguf"))!;
    const { units, bytes, outputs, open } = conversionOf(weight, form);
    const convert = await open(async (tensor) => part(file, tensor));
    const wholes = outputs.map((size) => new Uint8Array(size * units));
    const all = part(file, weight);
    assert.equal(all.length, units * bytes);
    for (let first = 0; first < units; first += 3) {
      const count = Math.min(3, units - first);
      const slices = wholes.map((whole, i) => whole.subarray(first * outputs[i]!, (first + count) * outputs[i]!));
      convert(all.slice(first * bytes, (first + count) * bytes), first, slices);
    }
    return wholes;
  }

  it("reads every type of the golden file by its name, with its shape", () => {
    for (const { name, type, shape } of types) {
      const weight = weights.get(name)!;
      assert.deepEqual(
        [name, weight.dtype, weight.shape],
        [name, type, name === "reshaped.weight" ? [8, 3, 4, 8] : shape],
      );
    }
    assert.deepEqual(
      [...new Set(types.map(({ type }) => type))].filter(isPacked).sort(),
      Object.keys(BLOCK_TYPES).sort(),
    );
  });

  for (const { name, type, values } of types.filter((one) => isBlockType(one.type))) {
    it(`expands ${type} (${name}) to the golden floats, bit for bit`, async () => {
      const [floats] = await converted(weights.get(name)!, "floats");
      const expected = toTensor(tensors.get(values)!).data;
      assert.deepEqual(
        new Uint8Array(floats!),
        new Uint8Array(expected.buffer, expected.byteOffset, expected.byteLength),
      );
    });

    it(`has the same values of ${type} (${name}) as codes, scales and offsets`, async () => {
      const { bits, group } = BLOCK_TYPES[type as keyof typeof BLOCK_TYPES];
      const [codes, scales, ...further] = await converted(weights.get(name)!, "codes");
      const lows = bits === 8 ? further.shift() : undefined;
      const [scale, offset] = [scales!, further[0] ?? new Uint8Array(scales!.length)].map(
        (b) => new Float32Array(b.buffer),
      );
      const expected = toTensor(tensors.get(values)!).data;
      const half = (all: Uint8Array, i: number): number => ((all[i >> 1]! >> (4 * (i % 2))) & 15) - 8;
      for (const [i, value] of expected.entries()) {
        const code = half(codes!, i);
        const number = lows === undefined ? code : 16 * code + half(lows, i) + (type === "Q8_0" ? 8 : 0);
        const g = Math.floor(i / group);
        const product = Math.fround(scale![g]! * number);
        if (further.length === 0) assert.equal(product, value);
        else
          assert.ok(
            Math.abs(product + offset![g]! - value) <= 2 ** -22 * (Math.abs(16 * scale![g]!) + Math.abs(offset![g]!)),
          );
      }
    });
  }
});
