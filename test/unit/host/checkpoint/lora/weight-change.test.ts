import assert from "node:assert/strict";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import {
  assertNear,
  type RawTensors,
  randomTensor,
  sizeOf,
  valuesOf,
  weightsAfter,
} from "../../../../helpers/models/lora.js";
import { f32, type RawTensor } from "../../../../helpers/models/weight-file.js";
import { assertSameBits } from "../../../../helpers/tensor/bits.js";

describe("the change of a weight", () => {
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

describe("sums of a LoRA for a weight", () => {
  const LAYER = "input_blocks.0.0";
  const NAME = "lora_unet_conv_in";
  const LINEAR = [6, 10];
  const CONVOLUTION = [6, 4, 3, 3];
  const STRENGTH = 0.7;

  /** Element of a weight's sum by output channel, input channel and position in the kernel. */
  type Element = (row: number, channel: number, at: number) => number;

  /** Tensors of a LoRA by role, F16 and BF16 in turn with F32. */
  const random = (shapes: Readonly<Record<string, readonly number[]>>): RawTensors =>
    Object.fromEntries(
      Object.entries(shapes).map(([role, shape], i) => [
        `${NAME}.${role}`,
        randomTensor(i + 1, shape, (["F32", "F16", "BF16"] as const)[i % 3]),
      ]),
    );

  /** Reads elements of a tensor by their indices. */
  function reader(tensors: RawTensors, role: string): (...indices: number[]) => number {
    const tensor = tensors[`${NAME}.${role}`]!;
    const values = valuesOf(tensor);
    return (...indices) => {
      assert.equal(indices.length, tensor.shape.length, role);
      return values[indices.reduce((at, index, axis) => at * tensor.shape[axis]! + index, 0)]!;
    };
  }

  const sum = (count: number, term: (index: number) => number): number =>
    Array.from({ length: count }, (_, index) => term(index)).reduce((total, value) => total + value, 0);

  type Reader = ReturnType<typeof reader>;

  /** A factor of a Kronecker product of linear layers, whole or from its two parts. */
  function kroneckerFactor(tensors: RawTensors, number: 1 | 2, rank: number): (row: number, column: number) => number {
    if (tensors[`${NAME}.lokr_w${number}`]) return reader(tensors, `lokr_w${number}`);
    const [a, b] = [reader(tensors, `lokr_w${number}_a`), reader(tensors, `lokr_w${number}_b`)];
    return (row, column) => sum(rank, (r) => a(row, r) * b(r, column));
  }

  const folder = temporaryFolder();

  /** Compares the changed weight with weight + STRENGTH * factor * element, computed in doubles. */
  async function check(shape: readonly number[], tensors: RawTensors, factor: number, element: Element): Promise<void> {
    const weight = randomTensor(99, shape);
    const after = await weightsAfter(folder(), { [`${LAYER}.weight`]: weight }, [{ tensors, strength: STRENGTH }]);
    const [channels, size] = [shape[1] ?? 1, sizeOf(shape.slice(2))];
    const before = valuesOf(weight);
    const expected = before.map((value, i) => {
      const [row, column] = [Math.floor(i / (channels * size)), i % (channels * size)];
      return value + STRENGTH * factor * element(row, Math.floor(column / size), column % size);
    });
    assert.ok(expected.some((value, i) => Math.abs(value - before[i]!) > 0.01));
    assertNear(after[`${LAYER}.weight`]!, expected);
  }

  const alpha = { [`${NAME}.alpha`]: f32([], [2]) };

  it("LoRA of a linear layer: up @ down, times alpha / rank", async () => {
    const tensors = random({ "lora_up.weight": [6, 3], "lora_down.weight": [3, 10] });
    const [up, down] = [reader(tensors, "lora_up.weight"), reader(tensors, "lora_down.weight")];
    const element: Element = (row, channel) => sum(3, (r) => up(row, r) * down(r, channel));
    await check(LINEAR, { ...tensors, ...alpha }, 2 / 3, element);
    await check(LINEAR, tensors, 1, element);
    // the file of a convolution of one pixel, for a linear layer
    const asConvolution = random({ "lora_up.weight": [6, 3, 1, 1], "lora_down.weight": [3, 10, 1, 1] });
    await check(LINEAR, asConvolution, 1, element);
  });

  it("LoRA of a convolution", async () => {
    const tensors = random({ "lora_up.weight": [6, 3, 1, 1], "lora_down.weight": [3, 4, 3, 3] });
    const [up, down] = [reader(tensors, "lora_up.weight"), reader(tensors, "lora_down.weight")];
    await check(CONVOLUTION, { ...tensors, ...alpha }, 2 / 3, (row, channel, at) =>
      sum(3, (r) => up(row, r, 0, 0) * down(r, channel, Math.floor(at / 3), at % 3)),
    );
  });

  it("LoCon with a kernel between two ranks", async () => {
    const tensors = random({
      "lora_up.weight": [6, 3, 1, 1],
      "lora_mid.weight": [3, 2, 3, 3],
      "lora_down.weight": [2, 4, 1, 1],
    });
    const [up, mid, down] = ["up", "mid", "down"].map((role) => reader(tensors, `lora_${role}.weight`)) as Reader[];
    await check(CONVOLUTION, { ...tensors, ...alpha }, 2 / 2, (row, channel, at) =>
      sum(3, (i) =>
        sum(2, (j) => up!(row, i, 0, 0) * mid!(i, j, Math.floor(at / 3), at % 3) * down!(j, channel, 0, 0)),
      ),
    );
  });

  it("LoHa: two products, multiplied by element", async () => {
    for (const shape of [LINEAR, CONVOLUTION]) {
      const columns = sizeOf(shape.slice(1));
      const tensors = random({
        hada_w1_a: [6, 4],
        hada_w1_b: [4, columns],
        hada_w2_a: [6, 3],
        hada_w2_b: [3, columns],
      });
      const [a1, b1, a2, b2] = ["w1_a", "w1_b", "w2_a", "w2_b"].map((role) =>
        reader(tensors, `hada_${role}`),
      ) as Reader[];
      const size = sizeOf(shape.slice(2));
      await check(shape, { ...tensors, ...alpha }, 2 / 4, (row, channel, at) => {
        const column = channel * size + at;
        return sum(4, (r) => a1!(row, r) * b1!(r, column)) * sum(3, (r) => a2!(row, r) * b2!(r, column));
      });
    }
  });

  it("LoHa with kernels", async () => {
    const shapes = { hada_w1_a: [2, 6], hada_w1_b: [3, 4], hada_t1: [2, 3, 3, 3] };
    const tensors = random({ ...shapes, hada_w2_a: [3, 6], hada_w2_b: [3, 4], hada_t2: [3, 3, 3, 3] });
    const product = (number: number, rank: number): Element => {
      const [a, b, t] = [`w${number}_a`, `w${number}_b`, `t${number}`].map((role) =>
        reader(tensors, `hada_${role}`),
      ) as Reader[];
      return (row, channel, at) =>
        sum(rank, (i) => sum(3, (j) => t!(i, j, Math.floor(at / 3), at % 3) * a!(i, row) * b!(j, channel)));
    };
    const [first, second] = [product(1, 2), product(2, 3)];
    await check(
      CONVOLUTION,
      { ...tensors, ...alpha },
      2 / 3,
      (row, channel, at) => first(row, channel, at) * second(row, channel, at),
    );
  });

  it("LoKr: Kronecker product of whole and decomposed factors, which have the rank", async () => {
    const [whole1, parts1] = [{ lokr_w1: [2, 5] }, { lokr_w1_a: [2, 4], lokr_w1_b: [4, 5] }];
    const [whole2, parts2] = [{ lokr_w2: [3, 2] }, { lokr_w2_a: [3, 7], lokr_w2_b: [7, 2] }];
    for (const [shapes, factor] of [
      [{ ...whole1, ...whole2 }, 1],
      [{ ...parts1, ...whole2 }, 2 / 4],
      [{ ...whole1, ...parts2 }, 2 / 7],
      [{ ...parts1, ...parts2 }, 2 / 7],
    ] as const) {
      const tensors = random(shapes as Record<string, number[]>);
      const [w1, w2] = [kroneckerFactor(tensors, 1, 4), kroneckerFactor(tensors, 2, 7)];
      await check(
        LINEAR,
        { ...tensors, ...alpha },
        factor,
        (row, column) => w1(Math.floor(row / 3), Math.floor(column / 2)) * w2(row % 3, column % 2),
      );
    }
  });

  it("LoKr of a convolution, whole, decomposed and with a kernel", async () => {
    const [first, count] = [{ lokr_w1: [3, 2] }, 2];
    const whole = random({ ...first, lokr_w2: [2, 2, 3, 3] });
    const w1 = reader(whole, "lokr_w1");
    const block =
      (w2: Element): Element =>
      (row, channel, at) =>
        w1(Math.floor(row / 2), Math.floor(channel / 2)) * w2(row % 2, channel % count, at);
    const w2 = reader(whole, "lokr_w2");
    await check(
      CONVOLUTION,
      whole,
      1,
      block((row, channel, at) => w2(row, channel, Math.floor(at / 3), at % 3)),
    );

    const parts = random({ ...first, lokr_w2_a: [2, 5], lokr_w2_b: [5, 18] });
    const [a, b] = [reader(parts, "lokr_w2_a"), reader(parts, "lokr_w2_b")];
    await check(
      CONVOLUTION,
      { ...parts, ...alpha },
      2 / 5,
      block((row, channel, at) => sum(5, (r) => a(row, r) * b(r, channel * 9 + at))),
    );

    const tucker = random({ ...first, lokr_w2_a: [4, 2], lokr_w2_b: [5, 2], lokr_t2: [4, 5, 3, 3] });
    const [ta, tb, t] = ["w2_a", "w2_b", "t2"].map((role) => reader(tucker, `lokr_${role}`)) as Reader[];
    await check(
      CONVOLUTION,
      { ...tucker, ...alpha },
      2 / 5,
      block((row, channel, at) =>
        sum(4, (i) => sum(5, (j) => t!(i, j, Math.floor(at / 3), at % 3) * ta!(i, row) * tb!(j, channel))),
      ),
    );
  });

  it("differences of a whole weight, whose alpha counts for nothing", async () => {
    const tensors = random({ diff: LINEAR });
    const diff = reader(tensors, "diff");
    await check(LINEAR, { ...tensors, ...alpha }, 1, (row, channel) => diff(row, channel));
    const convolution = random({ diff: CONVOLUTION });
    const kernels = reader(convolution, "diff");
    await check(CONVOLUTION, convolution, 1, (row, channel, at) => kernels(row, channel, Math.floor(at / 3), at % 3));
    const norm = random({ w_norm: [6] });
    const scale = reader(norm, "w_norm");
    await check([6], norm, 1, (row) => scale(row));
  });

  describe("refuse with file, key and shapes", () => {
    const pair = (up: number[], down: number[]) => ({ "lora_up.weight": up, "lora_down.weight": down });
    const hada = { hada_w1_a: [6, 2], hada_w1_b: [2, 10], hada_w2_a: [6, 2], hada_w2_b: [2, 10] };
    for (const [title, shape, shapes, pattern] of [
      [
        "rows of another model",
        LINEAR,
        pair([7, 3], [3, 10]),
        /lora_up.weight", for a weight of \[6, 10\], expected \[6, 3\], received \[7, 3\]\.$/,
      ],
      [
        "columns of another model",
        LINEAR,
        pair([6, 3], [3, 8]),
        /lora_down.weight", .* expected \[3, 10\], received \[3, 8\]/,
      ],
      ["two ranks", LINEAR, pair([6, 3], [4, 10]), /lora_up.weight", .* expected \[6, 4\], received \[6, 3\]/],
      [
        "a kernel of another size",
        CONVOLUTION,
        pair([6, 3, 1, 1], [3, 4, 1, 1]),
        /lora_down.weight", .* expected \[3, 36\], received \[3, 4, 1, 1\]/,
      ],
      [
        "no rank",
        LINEAR,
        pair([6, 0], [0, 10]),
        /lora_down.weight", .* expected a rank from 1 to 8192, received \[0, 10\]/,
      ],
      ["a huge rank", LINEAR, pair([6, 8193], [8193, 10]), /lora_down.weight", .* expected a rank from 1 to 8192/],
      ["a number for a matrix", LINEAR, pair([], [3, 10]), /lora_up.weight", .* expected \[6, 3\], received \[\]/],
      [
        "no up",
        LINEAR,
        { "lora_down.weight": [3, 10] },
        /"[^"]*lora-0.safetensors": expected a tensor up beside "lora_unet_conv_in.lora_down.weight", received none/,
      ],
      ["no down", LINEAR, { "lora_up.weight": [6, 3] }, /expected a tensor down beside/],
      [
        "a kernel for a linear layer",
        LINEAR,
        { ...pair([6, 3], [3, 10]), "lora_mid.weight": [3, 3, 3, 3] },
        /lora_mid.weight", .* expected \[3, 3\], received \[3, 3, 3, 3\]/,
      ],
      [
        "a kernel of another size between ranks",
        CONVOLUTION,
        { ...pair([6, 3, 1, 1], [3, 4, 1, 1]), "lora_mid.weight": [3, 3, 1, 1] },
        /lora_mid.weight", .* expected \[3, 3, 3, 3\]/,
      ],
      ["half a LoHa", LINEAR, { ...hada, hada_w2_b: [2, 9] }, /hada_w2_b", .* expected \[2, 10\], received \[2, 9\]/],
      [
        "a LoHa with a kernel alone",
        CONVOLUTION,
        { hada_t1: [2, 2, 3, 3] },
        /expected a tensor hada_w1_a beside "lora_unet_conv_in.hada_t1"/,
      ],
      [
        "Kronecker factors that do not divide",
        LINEAR,
        { lokr_w1: [4, 5], lokr_w2: [3, 2] },
        /lokr_w1", .* expected sides that divide 6 and 10, received \[4, 5\]/,
      ],
      [
        "an empty Kronecker factor",
        LINEAR,
        { lokr_w1: [0, 5], lokr_w2: [3, 2] },
        /lokr_w1", .* expected sides that divide/,
      ],
      [
        "a second Kronecker factor of other sides",
        LINEAR,
        { lokr_w1: [2, 5], lokr_w2: [3, 3] },
        /lokr_w2", .* expected \[3, 2\], received \[3, 3\]/,
      ],
      ["one Kronecker factor", LINEAR, { lokr_w1: [2, 5] }, /expected a tensor lokr_w2_a beside/],
      ["a difference of another shape", LINEAR, { diff: [10, 6] }, /diff", .* expected \[6, 10\], received \[10, 6\]/],
    ] as [string, number[], Record<string, number[]>, RegExp][])
      it(title, async () => {
        const weights = { [`${LAYER}.weight`]: randomTensor(1, shape) };
        const work = weightsAfter(folder(), weights, [{ tensors: random(shapes), strength: 1 }]);
        await refuses(work, "model.invalid", pattern, /lora-0\.safetensors/);
      });

    it("shapes of many sides, in a short sentence", async () => {
      const shapes = { diff: [60, ...new Array<number>(10_000).fill(1)] };
      const weights = { [`${LAYER}.weight`]: randomTensor(1, LINEAR) };
      const work = weightsAfter(folder(), weights, [{ tensors: random(shapes), strength: 1 }]);
      const { message } = await refuses(work, "model.invalid", /expected \[6, 10\], received 10001 sides\.$/);
      assert.ok(message.length < 400);
    });

    it("types other than floats", async () => {
      const tensors = { [`${NAME}.diff`]: { dtype: "I64", shape: [1, 1], bytes: new Uint8Array(8) } };
      const work = weightsAfter(folder(), { [`${LAYER}.weight`]: randomTensor(1, [1, 1]) }, [{ tensors, strength: 1 }]);
      await refuses(work, "model.invalid", /expected a type of floats, received I64/);
    });
  });
});
