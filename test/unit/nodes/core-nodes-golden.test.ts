import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  invokeNode,
  type Latent,
  LatentkitError,
  type ModelSamplingName,
  modelSampling,
  registry,
  Tensor,
  type Vae,
} from "latentkit";
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
  "LatentCompositeMasked/3": "an offset below 0 is refused",
  "LatentCompositeMasked/4": "an offset below 0 is refused",
  "LatentCompositeMasked/7": "an offset below 0 is refused",
  "MaskComposite/bogus": "an operation that is none is refused",
};

type Inputs = Record<string, unknown>;

/** Cases in which the result here is decided to differ: their assertions, by id. */
const OURS: Record<string, (inputs: Inputs, result: readonly unknown[]) => void | Promise<void>> = {
  "LatentInterpolate/1": eachItemAlone,
  "LatentInterpolate/2": eachItemAlone,
  "LatentInterpolate/4": eachItemAlone,
  "RepeatLatentBatch/2": ({ samples }, [repeated]) => {
    const { noise_mask: mask } = samples as Latent;
    const plane = mask!.size / 2;
    const [first, second] = [mask!.data.slice(0, plane), mask!.data.slice(plane)];
    const expected = [first, second, first, first, second, first].flatMap((values) => [...values]);
    assertSameBits((repeated as Latent).noise_mask, Tensor.from(expected, [6, ...mask!.shape.slice(1)]));
  },
};

/** Decided: every item of a batch is interpolated as if it were alone; the reference fails. */
async function eachItemAlone(inputs: Inputs, [result]: readonly unknown[]): Promise<void> {
  const item = (latent: unknown, index: number): Latent => {
    const { data, shape } = (latent as Latent).samples;
    const size = data.length / shape[0]!;
    const at = index % shape[0]!;
    return { samples: Tensor.from(data.slice(at * size, (at + 1) * size), [1, ...shape.slice(1)]) };
  };
  const count = (result as Latent).samples.shape[0]!;
  assert.equal(count, (inputs.samples1 as Latent).samples.shape[0]);
  for (let index = 0; index < count; index++) {
    const samples = { samples1: item(inputs.samples1, index), samples2: item(inputs.samples2, index) };
    const alone = await invokeNode("LatentInterpolate", { ...inputs, ...samples });
    assertSameBits(item(result, index).samples, alone.result[0].samples);
  }
}
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
    assert.ok(definition !== undefined, testCase.node);
    it(testCase.id, async () => {
      const inputs = Object.fromEntries(Object.entries(testCase.inputs).map(([name, value]) => [name, read(value)]));
      if (testCase.file !== undefined && has(testCase.file))
        writeFileSync(join(folder(), String(inputs.image)), raw(testCase.file).data);
      if (key !== testCase.node) {
        assert.equal(await definition.isChanged?.(inputs, { inputDir: folder() }), testCase.outputs![0]);
        return;
      }
      const ours = OURS[testCase.id];
      if (ours !== undefined) {
        await ours(inputs, (await invokeNode(key, inputs)).result);
        return;
      }
      const pending = invokeNode(key, inputs, { inputDir: folder() });
      if (testCase.error !== undefined || testCase.id in REFUSED) {
        await assert.rejects(pending, LatentkitError);
        return;
      }
      const { result } = await pending;
      compare(testCase, result, testCase.outputs, "outputs", result);
    });
  }

  /** Names of tensors are the tensors, anywhere in a value. */
  function read(value: unknown): unknown {
    if (value === "stub:vae") return stubVae;
    if (typeof value === "string" && value.startsWith("stub:model:"))
      return { sampling: modelSampling(value.slice("stub:model:".length) as ModelSamplingName) };
    if (value === "in.sigmas_none") return Tensor.zeros([0]);
    if (typeof value === "string" && has(value)) return tensor(value);
    if (Array.isArray(value)) return value.map(read);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, read(inner)]));
  }
});

/** Tensors of no elements are left out of the file: their shape tells them. */
const expectedOf = ({ shapes }: Case, name: string): Tensor =>
  has(name) ? tensor(name) : Tensor.zeros(shapes![name]!);

/** Compares a value at any depth: names of tensors stand for them. */
function compare(testCase: Case, actual: unknown, expected: unknown, at: string, result: readonly unknown[]): void {
  if (typeof expected === "string" && (has(expected) || testCase.shapes?.[expected] !== undefined)) {
    compareTensor(testCase, actual as Tensor, expected, result);
  } else if (typeof expected === "number" && typeof actual === "number") {
    assert.ok(Math.abs(actual - expected) <= 3e-6 * Math.abs(expected), `${at}: ${actual}, expected ${expected}`);
  } else if (typeof expected === "object" && expected !== null) {
    assert.equal(Array.isArray(actual), Array.isArray(expected), at);
    assert.deepEqual(Object.keys(actual as object).sort(), Object.keys(expected).sort(), at);
    for (const [key, value] of Object.entries(expected))
      compare(testCase, (actual as Record<string, unknown>)[key], value, `${at}.${key}`, result);
  } else {
    assert.deepEqual(actual, expected, at);
  }
}

function compareTensor(testCase: Case, actual: Tensor, expected: string, result: readonly unknown[]): void {
  const reference = expectedOf(testCase, expected);
  const isEmptyMask =
    testCase.node === "LoadImage" && expected.endsWith(".1") && reference.data.every((value) => value === 0);
  // decided: the mask of a picture without alpha has the picture's size, not 64 x 64
  if (isEmptyMask) {
    const [, height, width] = (result[0] as Tensor).shape;
    assertSameBits(actual, Tensor.zeros([reference.shape[0]!, height!, width!]));
  } else if (IS_DEEP.test(testCase.id)) deep(testCase, actual, reference);
  else near(testCase, actual, reference, expected);
}

/** Resizing in another order of additions than PyTorch's. */
const resized = (expected: number): number => 1e-5 * Math.max(1, Math.abs(expected));

/** Tolerance for an expected value, by node, by node and scheduler, by id or by its beginning; bit for bit if a node has none. golden/README.md has the table. */
const TOLERANCES: Record<string, (expected: number) => number> = {
  // the stub here adds up in double
  VAEEncode: () => 1e-6,
  VAEEncodeForInpaint: () => 1e-6,
  InpaintModelConditioning: () => 1e-6,
  ConditioningAverage: () => 1e-6,
  FeatherMask: () => 1e-6,
  LatentCompositeMasked: resized,
  LatentInterpolate: resized,
  "LatentBlend/resize": resized,
  "LatentAdd/3": resized,
  "LatentAdd/4": resized,
  "LatentSubtract/3": resized,
  "LatentSubtract/4": resized,
  "LatentBatch/3": resized,
  "LatentBatch/4": resized,
  ImageBatch: resized,
  ImageBlend: resized,
  ImageCompositeMasked: resized,
  JoinImageWithAlpha: resized,
  KarrasScheduler: (x) => 3e-6 * x,
  ExponentialScheduler: (x) => 3e-6 * x,
  PolyexponentialScheduler: (x) => 3e-6 * x,
  LaplaceScheduler: (x) => 3e-6 * x,
  VPScheduler: (x) => 3e-6 * x,
  "BasicScheduler karras": (x) => 3e-6 * x,
  "BasicScheduler kl_optimal": (x) => 3e-6 * x,
  ExtendIntermediateSigmas: (x) => 3e-6 * x,
};

/** Cases of nodes with a tolerance that resize nothing: bit for bit, but for the reference's square root, which is not exact. */
const IS_EXACT =
  /^(ImageBlend\/(?!soft_light)\w+\/(same|oor)|ImageBlend\/batch1|ImageBatch\/[04]|ImageCompositeMasked\/[0-46-9])$/;

/** Decided: all edges fade alike. The reference takes the first column and row for those behind the last. */
function feathered(mask: Tensor, edges: Record<string, unknown>, lastAt: number): Tensor {
  const [height, width] = mask.shape.slice(-2) as [number, number];
  const result = mask.reshape([mask.size / (height * width), height, width]).clone();
  const fade = (edge: string, size: number, isOn: (at: number, position: number) => boolean) => {
    const steps = Math.min(Number(edges[edge]), size);
    for (let step = 0; step < steps; step++)
      for (let at = 0; at < result.size; at++) if (isOn(at, step)) result.data[at]! *= (step + 1) / steps;
  };
  fade("left", width, (at, step) => at % width === step);
  fade("right", width, (at, step) => at % width === (width - step + lastAt) % width);
  fade("top", height, (at, step) => Math.floor(at / width) % height === step);
  fade("bottom", height, (at, step) => Math.floor(at / width) % height === (height - step + lastAt) % height);
  return result;
}

/** Tolerances of nodes that resize, by method: bit for bit for nearest-exact and lanczos, which are exact here. */
const RESIZE_TOLERANCES: Record<string, (most: number) => number> = {
  area: () => 1e-6,
  // the order of additions differs
  bilinear: (most) => 1e-5 * Math.max(1, most),
  bicubic: (most) => 1e-5 * Math.max(1, most),
  bislerp: (most) => 1e-5 * Math.max(1, most),
};

/** Distance to the next float16: tensors here are float32, so these results are not rounded to 16 bits. */
const halfUlp = (x: number): number => 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(x)))) - 10);

function toleranceOf({ node, id, inputs }: Case, expected: Tensor, name: string): ((x: number) => number) | undefined {
  if (has(name) && raw(name).dtype === "F16") return halfUlp;
  const resize = /^(LatentUpscale|ImageScale)/.test(node) && RESIZE_TOLERANCES[inputs.upscale_method as string];
  if (!resize) {
    const [, model, scheduler] = id.split("/");
    const names = [id, `${node}/${model}`, `${node} ${scheduler}`, node];
    return names.map((name) => TOLERANCES[name]).find((one) => one !== undefined);
  }
  const most = expected.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return () => resize(most);
}

function near(testCase: Case, actual: Tensor, expected: Tensor, name: string): void {
  const { node, id, inputs } = testCase;
  const tolerance = toleranceOf(testCase, expected, name);
  // a mask [H, W] is read as [1, H, W]
  if (node === "FeatherMask") {
    const mask = tensor(String(inputs.mask));
    assertClose(feathered(mask, inputs, 0), expected, () => 1e-6, `${id} as the reference does it`);
    assertClose(actual, feathered(mask, inputs, -1), () => 1e-6, id);
  } else if (IS_EXACT.test(id)) assertSameBits(actual, expected, id);
  else if (id === "InvertMask/1") assertSameBits(actual, expected.reshape([1, ...expected.shape]), id);
  else if (tolerance !== undefined) assertClose(actual, expected, tolerance, id);
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
