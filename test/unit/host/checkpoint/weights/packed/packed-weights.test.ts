import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Tensor } from "latentkit";
import { changesOf } from "#src/host/checkpoint/lora/changes.js";
import type { Value } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET } from "#src/host/checkpoint/onnx/target.js";
import { unetPlaces } from "#src/host/checkpoint/unet/lora.js";
import type { Network } from "#src/host/checkpoint/weights/network.js";
import { isBlockType, type WeightMap } from "#src/host/checkpoint/weights/stored.js";
import { zImagePlaces } from "#src/host/checkpoint/z-image/names.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { root, suiteFolder } from "../../../../../helpers/folders.js";
import { goldenBytes, goldenText } from "../../../../../helpers/golden-file.js";
import { loraOf, randomTensor, valuesOf } from "../../../../../helpers/models/lora.js";
import { computedFromPacked } from "../../../../../helpers/models/packed-graph.js";
import { weightFile } from "../../../../../helpers/models/weight-file.js";

const FOLDER = join(root, "test/golden/models-flux/gguf");
const [ROWS, COLUMNS] = [3, 512];
const LAYER = "input_blocks.0.0";
const KEY = `${LAYER}.weight`;
/** Relative to the largest value: float32's own sums are up to 4e-7 away. */
const TOLERANCE = 1e-6;

describe("products with packed weights", () => {
  const folder = suiteFolder();
  const { tensors } = readSafetensors(goldenBytes(join(FOLDER, "gguf.safetensors"))!);
  const { types } = JSON.parse(goldenText(join(FOLDER, "gguf.json"))) as {
    types: { name: string; type: string; values: string }[];
  };
  const packed = types.filter(({ name, type }) => isBlockType(type) && name !== "reshaped.weight");
  let weights: WeightMap;
  before(async () => {
    const path = join(folder(), "types.gguf");
    writeFileSync(path, goldenBytes(join(FOLDER, "types.gguf"))!);
    weights = (await weightFile(path)).weights;
  });

  const floatsOf = (values: string): readonly number[] => [...toTensor(tensors.get(values)!).data];
  const tensorOf = (seed: number, shape: readonly number[]) =>
    Tensor.from(Float32Array.from(valuesOf(randomTensor(seed, shape))), shape);

  /** x · Wᵀ in doubles. */
  function product({ data }: Tensor, weight: readonly number[]): number[] {
    const result: number[] = [];
    for (let row = 0; row < data.length / COLUMNS; row++)
      for (let n = 0; n < ROWS; n++) {
        let sum = 0;
        for (let k = 0; k < COLUMNS; k++) sum += data[row * COLUMNS + k]! * weight[n * COLUMNS + k]!;
        result.push(sum);
      }
    return result;
  }

  function assertNear({ data }: Tensor, expected: readonly number[]): void {
    const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    assert.equal(data.length, expected.length);
    for (const [i, value] of expected.entries())
      assert.ok(Math.abs(data[i]! - value) <= TOLERANCE * largest, `${i}: ${data[i]} is not ${value} of ${largest}`);
  }

  const times =
    (name: string, sides: readonly (number | string)[]) =>
    (network: Network): void => {
      const { graph } = network;
      const value: Value | undefined = network.quantisedProduct(
        name,
        [ROWS, COLUMNS],
        graph.input("x", "float", sides),
      );
      assert.ok(value !== undefined);
      graph.output(value, "out", "float", [...sides.slice(0, -1), ROWS]);
    };

  for (const { name, type, values } of packed)
    it(`are those with the expanded weights: ${type}, for lists and for items of tokens`, async () => {
      for (const [shape, sides] of [
        [
          [5, COLUMNS],
          ["M", COLUMNS],
        ],
        [
          [2, 7, COLUMNS],
          ["B", "L", COLUMNS],
        ],
      ] as const) {
        const x = tensorOf(1, shape);
        for (const overridable of [false, true]) {
          const { out } = await computedFromPacked(folder(), weights, times(name, sides), { x }, { overridable });
          assert.deepEqual(out!.shape, [...shape.slice(0, -1), ROWS]);
          assertNear(out!, product(x, floatsOf(values)));
        }
      }
    });

  it("have the same bits with any number of threads, for few rows too", async () => {
    for (const { name } of packed)
      for (const rows of [1, 5]) {
        const x = tensorOf(1, [rows, COLUMNS]);
        const build = times(name, ["M", COLUMNS]);
        const [one, ...others] = await Promise.all(
          [1, 2, 7].map((threads) => computedFromPacked(folder(), weights, build, { x }, { threads })),
        );
        for (const other of others) assert.deepEqual(other, one);
      }
  });

  it("are none if the target has no groups of that size, and for single floats", async () => {
    const built = (target: typeof CPU_TARGET | object, name: string) => {
      let value: Value | undefined;
      return computedFromPacked(
        folder(),
        weights,
        (network) => {
          const x = network.graph.input("x", "float", ["M", COLUMNS]);
          value = network.quantisedProduct(name, [ROWS, COLUMNS], x);
          network.graph.output(x, "out", "float", ["M", COLUMNS]);
        },
        { x: tensorOf(1, [1, COLUMNS]) },
        { target: { ...CPU_TARGET, ...target } },
      ).then(() => value);
    };
    const named = (type: string): string => types.find((one) => one.type === type)!.name;
    assert.notEqual(await built({}, named("Q6_K")), undefined);
    assert.equal(await built({ groups: [32] }, named("Q6_K")), undefined);
    assert.equal(await built({ groups: undefined }, named("Q4_0")), undefined);
    assert.equal(await built({}, named("F16")), undefined);
  });

  it("have a LoRA's sum beside them, also of a whole difference", async () => {
    const [{ name, values }] = packed as [(typeof packed)[number]];
    const one = new Map([[KEY, weights.get(name)!]]);
    const [up, down, diff] = [
      randomTensor(2, [ROWS, 4]),
      randomTensor(3, [4, COLUMNS]),
      randomTensor(4, [ROWS, COLUMNS]),
    ];
    const lora = await loraOf(folder(), {
      [`diffusion_model.${LAYER}.lora_up.weight`]: up,
      [`diffusion_model.${LAYER}.lora_down.weight`]: down,
      [`diffusion_model.${LAYER}.diff`]: diff,
    });
    const changes = changesOf(lora, { places: unetPlaces, weights: one }, 0.5);
    assert.equal(changes.size, 1);
    const [a, b, c] = [up, down, diff].map(valuesOf) as [number[], number[], number[]];
    const merged = floatsOf(values).map((value, i) => {
      const [row, column] = [Math.floor(i / COLUMNS), i % COLUMNS];
      let sum = value + 0.5 * c[i]!;
      for (let rank = 0; rank < 4; rank++) sum += 0.5 * a[row * 4 + rank]! * b[rank * COLUMNS + column]!;
      return sum;
    });
    const x = tensorOf(5, [2, 3, COLUMNS]);
    const { out } = await computedFromPacked(folder(), one, times(KEY, ["B", "L", COLUMNS]), { x }, { changes });
    assertNear(out!, product(x, merged));
  });

  it("have sums of LoRAs in the thirds that these change", async () => {
    const [{ name, values }] = packed as [(typeof packed)[number]];
    const qkv = "layers.0.attention.qkv.weight";
    const one = new Map([[qkv, weights.get(name)!]]);
    const diff = [0, 2].map((third) => randomTensor(third + 1, [1, COLUMNS]));
    const lora = await loraOf(folder(), {
      "diffusion_model.layers.0.attention.to_q.diff": diff[0]!,
      "diffusion_model.layers.0.attention.to_v.diff": diff[1]!,
    });
    const changes = changesOf(lora, { places: zImagePlaces, weights: one }, 1);
    const sums = [...valuesOf(diff[0]!), ...new Array(COLUMNS).fill(0), ...valuesOf(diff[1]!)];
    const merged = floatsOf(values).map((value, i) => value + sums[i]!);
    const x = tensorOf(5, [2, 3, COLUMNS]);
    const { out } = await computedFromPacked(folder(), one, times(qkv, ["B", "L", COLUMNS]), { x }, { changes });
    assertNear(out!, product(x, merged));
  });

  it("give way to an expanded weight if a LoRA needs the weight itself", async () => {
    const [{ name, values }] = packed as [(typeof packed)[number]];
    const one = new Map([[KEY, weights.get(name)!]]);
    const lora = await loraOf(folder(), {
      [`diffusion_model.${LAYER}.lora_up.weight`]: randomTensor(2, [ROWS, 4]),
      [`diffusion_model.${LAYER}.lora_down.weight`]: randomTensor(3, [4, COLUMNS]),
      [`diffusion_model.${LAYER}.dora_scale`]: randomTensor(4, [ROWS, 1]),
    });
    const changes = changesOf(lora, { places: unetPlaces, weights: one }, 1);
    const build = (network: Network): void => {
      const { graph } = network;
      const x = graph.input("x", "float", ["M", COLUMNS]);
      assert.equal(network.quantisedProduct(KEY, [ROWS, COLUMNS], x), undefined);
      graph.output(network.weight(KEY, [ROWS, COLUMNS]), "out", "float", [ROWS, COLUMNS]);
    };
    const { out } = await computedFromPacked(folder(), one, build, { x: tensorOf(1, [1, COLUMNS]) }, { changes });
    assert.notDeepEqual([...out!.data], floatsOf(values));
  });

  it("leave rows of a table and weights of other layers exact", async () => {
    for (const { name, values } of packed) {
      const build = (network: Network): void => {
        const ids = network.graph.input("ids", "int64", ["n"]);
        network.graph.output(network.rows(name, [ROWS, COLUMNS], ids), "rows", "float", ["n", COLUMNS]);
        network.graph.output(network.weight(name, [ROWS, COLUMNS]), "all", "float", [ROWS, COLUMNS]);
      };
      const feeds = { ids: { int64: [2, 0], shape: [2] } };
      const { rows, all } = await computedFromPacked(folder(), weights, build, feeds);
      const floats = floatsOf(values);
      assert.deepEqual([...all!.data], floats);
      assert.deepEqual([...rows!.data], [...floats.slice(2 * COLUMNS), ...floats.slice(0, COLUMNS)]);
    }
  });
});
