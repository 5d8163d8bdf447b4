import assert from "node:assert/strict";
import { refuses } from "../../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../../helpers/folders.js";
import {
  assertNear,
  type RawTensors,
  randomTensor,
  sizeOf,
  valuesOf,
  weightsAfter,
} from "../../../../../helpers/models/lora.js";
import { f32, type RawTensor } from "../../../../../helpers/models/weight-file.js";
import { assertSameBits } from "../../../../../helpers/tensor/bits.js";

const LAYER = "input_blocks.0.0";
const KEY = `${LAYER}.weight`;
const NAME = "lora_unet_conv_in";

/** A LoRA of rank 3 and alpha 2 for a weight. */
const lowRank = (seed: number, [rows, ...rest]: readonly number[]): RawTensors => ({
  [`${NAME}.lora_up.weight`]: randomTensor(seed, [rows!, 3, ...rest.slice(1).map(() => 1)]),
  [`${NAME}.lora_down.weight`]: randomTensor(seed + 1, [3, ...rest]),
  [`${NAME}.alpha`]: f32([], [2]),
});

/** weight + times * LoRA in doubles. */
function merged(weight: readonly number[], rows: number, tensors: RawTensors, times: number): number[] {
  const [up, down] = ["up", "down"].map((role) => valuesOf(tensors[`${NAME}.lora_${role}.weight`]!));
  const columns = weight.length / rows;
  return weight.map((value, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    return (
      value +
      ((times * 2) / 3) * [0, 1, 2].reduce((sum, r) => sum + up![row * 3 + r]! * down![r * columns + column]!, 0)
    );
  });
}

const norm = (values: readonly number[]): number => Math.hypot(...values);

describe("the change of a weight", () => {
  const folder = temporaryFolder();
  const weightAfter = (weight: RawTensor, tensors: RawTensors, strength: number) =>
    weightsAfter(folder(), { [KEY]: weight }, [{ tensors, strength }]).then((weights) => weights[KEY]!);

  for (const shape of [
    [6, 10],
    [6, 4, 3, 3],
  ]) {
    const [rows, columns] = [shape[0]!, sizeOf(shape.slice(1))];
    const weight = randomTensor(50, shape, "F16");
    const before = valuesOf(weight);

    /** The weight after a DoRA of strength 0.6, `groupOf` telling which of the norms counts for an element. */
    async function checkDora(
      scale: RawTensor,
      groupOf: (index: number) => number,
      normsOf: "before" | "merged",
      role = "dora_scale",
    ) {
      const tensors = { ...lowRank(1, shape), [`${NAME}.${role}`]: scale };
      const whole = merged(before, rows, tensors, 1);
      const reference = normsOf === "before" ? before : whole;
      const norms = valuesOf(scale).map((_, group) => norm(reference.filter((_, i) => groupOf(i) === group)));
      const expected = before.map((value, i) => {
        const group = groupOf(i);
        return value + 0.6 * ((whole[i]! * valuesOf(scale)[group]!) / norms[group]! - value);
      });
      assertNear(await weightAfter(weight, tensors, 0.6), expected);
    }

    it(`DoRA of [${shape}]: rows by the norms of the original weight`, async () => {
      const rowOf = (i: number) => Math.floor(i / columns);
      await checkDora(randomTensor(60, [rows, ...shape.slice(1).map(() => 1)]), rowOf, "before");
      await checkDora(randomTensor(61, [rows], "BF16"), rowOf, "before", "lora_magnitude_vector");
    });

    it(`DoRA of [${shape}]: input channels by the norms of the merged weight`, async () => {
      const size = sizeOf(shape.slice(2));
      const channelOf = (i: number) => Math.floor((i % columns) / size);
      const sides = [1, shape[1]!, ...shape.slice(2).map(() => 1)];
      await checkDora(randomTensor(62, sides), channelOf, "merged");
    });

    it(`several LoRAs of [${shape}] change one another's result, in order`, async () => {
      const [first, second] = [
        lowRank(1, shape),
        { ...lowRank(7, shape), [`${NAME}.dora_scale`]: randomTensor(9, [rows, 1]) },
      ];
      const scale = valuesOf(second[`${NAME}.dora_scale`]!);
      const middle = merged(before, rows, first, -0.5);
      const expected = merged(middle, rows, second, 1).map((value, i) => {
        const row = Math.floor(i / columns);
        return (value * scale[row]!) / norm(middle.slice(row * columns, (row + 1) * columns));
      });
      const loras = [
        { tensors: first, strength: -0.5 },
        { tensors: second, strength: 1 },
      ];
      assertNear((await weightsAfter(folder(), { [KEY]: weight }, loras))[KEY]!, expected);
    });
  }

  it("DoRA of a row of zeros stays finite", async () => {
    const tensors = { ...lowRank(1, [6, 10]), [`${NAME}.dora_scale`]: f32([6, 1]) };
    const { data } = await weightAfter(f32([6, 10], new Array(60).fill(0)), tensors, 1);
    assert.ok(data.every(Number.isFinite));
  });

  it("DoRA with other norms, or without a sum, is refused", async () => {
    const weight = randomTensor(1, [6, 10]);
    for (const shape of [[7, 1], [1, 6], [10], [2, 3], []]) {
      const tensors = { ...lowRank(1, [6, 10]), [`${NAME}.dora_scale`]: f32(shape) };
      const received = `received \\[${shape.join(", ")}\\]`;
      await refuses(
        weightAfter(weight, tensors, 1),
        "model.invalid",
        /expected \[6, 1\] or \[1, 10\]/,
        new RegExp(received),
      );
    }
    const alone = weightAfter(weight, { [`${NAME}.dora_scale`]: f32([6, 1]) }, 1);
    await refuses(alone, "model.invalid", /expected a tensor up beside "lora_unet_conv_in.dora_scale"/);
  });

  it("a bias takes differences, and norms theirs", async () => {
    const weights = { [KEY]: randomTensor(1, [4]), [`${LAYER}.bias`]: randomTensor(2, [4], "F16") };
    for (const [ofWeight, ofBias] of [
      ["diff", "diff_b"],
      ["w_norm", "b_norm"],
    ]) {
      const tensors = {
        [`${NAME}.${ofWeight}`]: randomTensor(3, [4]),
        [`${NAME}.${ofBias}`]: randomTensor(4, [4], "BF16"),
      };
      const changed = await weightsAfter(folder(), weights, [{ tensors, strength: -1.5 }]);
      for (const [key, role] of [
        [KEY, ofWeight],
        [`${LAYER}.bias`, ofBias],
      ] as const) {
        const diff = valuesOf(tensors[`${NAME}.${role}`]!);
        assertNear(
          changed[key]!,
          valuesOf(weights[key]!).map((value, i) => value - 1.5 * diff[i]!),
        );
      }
    }
    const wrong = { [`${NAME}.diff_b`]: randomTensor(3, [5]) };
    const work = weightsAfter(folder(), weights, [{ tensors: wrong, strength: 1 }]);
    await refuses(
      work,
      "model.invalid",
      /"lora_unet_conv_in.diff_b", for a weight of \[4\], expected \[4, 1\], received \[5\]/,
    );
  });

  it("has the same bits when weights are read at every run and when they are folded", async () => {
    const weights = { [KEY]: randomTensor(1, [6, 10], "BF16") };
    const loras = [{ tensors: { ...lowRank(1, [6, 10]), [`${NAME}.dora_scale`]: f32([6, 1]) }, strength: 0.3 }];
    const [streamed, folded] = await Promise.all(
      [true, false].map((overridable) => weightsAfter(folder(), weights, loras, { overridable })),
    );
    assertSameBits(folded![KEY], streamed![KEY]!);
  });

  it("works on 8-bit weights, whose graphs have newer operators", async () => {
    const bytes = Uint8Array.from({ length: 60 }, (_, i) => 0x30 + (i % 16) + (i % 3 === 0 ? 0x80 : 0));
    const weight = { dtype: "F8_E4M3", shape: [6, 10], bytes };
    // sign, 4 bits of exponent with bias 7, 3 of fraction
    const values = Array.from(
      bytes,
      (bits) => (bits > 127 ? -1 : 1) * (1 + (bits & 7) / 8) * 2 ** (((bits >> 3) & 15) - 7),
    );
    const tensors = { ...lowRank(1, [6, 10]), [`${NAME}.dora_scale`]: f32([6, 1]) };
    const expected = merged(values, 6, tensors, 1).map((value, i) => {
      const row = Math.floor(i / 10);
      return (value * (row + 1)) / norm(values.slice(row * 10, row * 10 + 10));
    });
    assertNear(await weightAfter(weight, tensors, 1), expected);
  });
});
