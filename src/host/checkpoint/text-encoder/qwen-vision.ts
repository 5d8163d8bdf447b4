import { describe, LatentkitError } from "../../../base/errors.js";
import { resizeImage } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { Tensor } from "../../../tensor/tensor.js";
import { add, attention, FLOAT_BYTES, gelu, linear, MASKED, reshape, type Trace } from "../networks/layers.js";
import { type Position, rotationTables } from "../networks/sinusoids.js";
import { type Rotation, rmsNorm, rotated, rotationInputs, split, swiGlu } from "../networks/transformer-layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import { product } from "../onnx/products.js";
import { below, type ModelHeader, type Part, PartShapes } from "../recognition/part.js";
import type { ModelPart } from "../session/model-part.js";
import type { Feeds, Runtime } from "../session/runtime.js";
import type { Network } from "../weights/network.js";
import type { WeightMap } from "../weights/stored.js";

/** Pixels along a side of a patch. */
const PATCH = 14;
/** Patches along a side of a unit, which is a token of the language model. */
const UNIT = 2;
/** Units along a side of a window. */
const WINDOW = 4;
/** Patches of a whole window. */
const WINDOW_PATCHES = UNIT * WINDOW * UNIT * WINDOW;
/** Equal frames that a picture is seen as. */
const FRAMES = 2;
const COLOURS = 3;
/** Numbers of a patch. */
const PATCH_NUMBERS = COLOURS * FRAMES * PATCH * PATCH;
/** Mean and deviation of each colour. */
const MEAN = [0.48145466, 0.4578275, 0.40821073] as const;
const DEVIATION = [0.26862954, 0.26130258, 0.27577711] as const;
const FEWEST_PIXELS = 3136;
const MOST_PIXELS = 12_845_056;

type Sides = readonly [height: number, width: number];

/** A picture as the tower takes it. */
export interface SeenPicture {
  /** Rows and columns of units, row by row the tokens of the language model. */
  readonly units: Sides;
  /** Numbers of each patch [N, 1176], window by window. */
  readonly patches: Tensor;
  /** Row and column of each patch. */
  readonly positions: readonly Position[];
  /** Patches of each window, 64 for each; 0 for those that a window at a border lacks. */
  readonly windows: readonly number[];
  /** Number of patches of each window. */
  readonly windowSizes: readonly number[];
  /** Where each patch stands in `windows`. */
  readonly places: readonly number[];
  /** Where each unit, row by row, stands window by window. */
  readonly order: readonly number[];
}

/** Prepares one picture [1, H, W, 3] in 0…1. Fails with tensor.bad-shape for several. */
export function seenPicture(picture: Tensor): SeenPicture {
  if (picture.shape.length !== 4 || picture.shape[0] !== 1 || picture.shape[3] !== COLOURS) {
    const message = `Qwen prompt: expected one picture [1, H, W, 3], received ${describe(picture)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  const [height, width] = seenSides([picture.shape[1]!, picture.shape[2]!]);
  const image = resizeImage(picture, { method: "bilinear", height, width });
  const units = [height / (UNIT * PATCH), width / (UNIT * PATCH)] as const;
  const sorted = unitsByWindow(units);
  const positions = sorted
    .flat()
    .flatMap(([row, column]): Position[] =>
      Array.from({ length: UNIT * UNIT }, (_, at) => [UNIT * row + Math.floor(at / UNIT), UNIT * column + (at % UNIT)]),
    );
  const windowSizes = sorted.map((own) => own.length * UNIT * UNIT);
  const places = windowSizes.flatMap((size, window) =>
    Array.from({ length: size }, (_, i) => window * WINDOW_PATCHES + i),
  );
  const windows = new Array<number>(windowSizes.length * WINDOW_PATCHES).fill(0);
  for (const [patch, place] of places.entries()) windows[place] = patch;
  const order = new Array<number>(units[0] * units[1]);
  for (const [at, [row, column]] of sorted.flat().entries()) order[row * units[1] + column] = at;
  return { units, patches: patchesOf(image, positions), positions, windows, windowSizes, places, order };
}

/** Sides of whole units next to a picture's own, within the bounds. */
function seenSides([height, width]: Sides): Sides {
  const unit = UNIT * PATCH;
  const sides = (round: (units: number) => number, factor: number): Sides => [
    round((height * factor) / unit) * unit,
    round((width * factor) / unit) * unit,
  ];
  const own = sides(roundHalfEven, 1);
  const pixels = own[0] * own[1];
  const floor = (count: number): number => Math.max(1, Math.floor(count));
  if (pixels > MOST_PIXELS) return sides(floor, Math.sqrt(MOST_PIXELS / (height * width)));
  if (pixels < FEWEST_PIXELS) return sides(Math.ceil, Math.sqrt(FEWEST_PIXELS / (height * width)));
  return own;
}

/** Units of each window, windows and units row by row. */
function unitsByWindow([rows, columns]: Sides): Sides[][] {
  const windows: Sides[][] = [];
  for (let top = 0; top < rows; top += WINDOW)
    for (let left = 0; left < columns; left += WINDOW) {
      const [height, width] = [Math.min(WINDOW, rows - top), Math.min(WINDOW, columns - left)];
      windows.push(
        Array.from({ length: height * width }, (_, i) => [top + Math.floor(i / width), left + (i % width)] as const),
      );
    }
  return windows;
}

/** Patches of an image [1, H, W, 3] at these places, by colour, frame, row and column. */
function patchesOf(image: Tensor, positions: readonly Position[]): Tensor {
  const width = image.shape[2]!;
  const out = Tensor.unfilled([positions.length, PATCH_NUMBERS]);
  let at = 0;
  for (const [row, column] of positions as readonly (readonly [number, number])[])
    for (let colour = 0; colour < COLOURS; colour++)
      for (let frame = 0; frame < FRAMES; frame++)
        for (let y = 0; y < PATCH; y++)
          for (let x = 0; x < PATCH; x++) {
            const value = image.data[((PATCH * row + y) * width + PATCH * column + x) * COLOURS + colour]!;
            out.data[at++] = Math.fround(value - Math.fround(MEAN[colour]!)) / Math.fround(DEVIATION[colour]!);
          }
  return out;
}

/** Sizes of the vision tower of Qwen2.5-VL. */
export interface QwenVisionConfig {
  readonly width: number;
  readonly heads: number;
  readonly headSize: number;
  readonly mlp: number;
  readonly blocks: number;
  /** Numbers of a token of the language model. */
  readonly hidden: number;
}

const EPSILON = 1e-6;
const THETA = 10_000;
/** Patches of a unit. */
const UNIT_PATCHES = UNIT * UNIT;
/** Parts in which queries of a whole picture are taken if attention is written out. */
const PARTS = 16;
/** Every one of so many blocks attends to the whole picture: of the published tower, and of tiny ones of fewer blocks. */
const [STEP, STEP_OF_TINY] = [8, 2];

/** Bytes of a run beside the weights, for each value of its input: those of a patch in an MLP. */
const visionWork = ({ width, mlp }: QwenVisionConfig): { readonly patches: number } => ({
  patches: (FLOAT_BYTES * (3 * mlp + 12 * width)) / PATCH_NUMBERS,
});

/** The rows [units, hidden] of a picture among the words of a prompt. */
export async function pictureRows(
  picture: SeenPicture,
  { part, runtime }: { readonly part: ModelPart<QwenVisionConfig>; readonly runtime: Runtime },
): Promise<Tensor> {
  const work = visionWork(part.config);
  const session = part.session("vision tower", (network, config) => buildQwenVision(network, config), { work });
  const { rows } = await runtime.run(session, visionFeeds(picture, part.config), { isShared: true });
  return rows!;
}

/** The inputs of the tower for one picture. @internal */
export function visionFeeds(picture: SeenPicture, { headSize }: Pick<QwenVisionConfig, "headSize">): Feeds {
  const { patches, positions, windows, windowSizes, places, order } = picture;
  const { cos, sin } = rotationTables(positions, [headSize / 2, headSize / 2], THETA);
  const mask = Tensor.zeros([windowSizes.length, 1, WINDOW_PATCHES, WINDOW_PATCHES]);
  for (const [window, size] of windowSizes.entries())
    for (let query = 0; query < WINDOW_PATCHES; query++) {
      const start = (window * WINDOW_PATCHES + query) * WINDOW_PATCHES;
      mask.data.fill(MASKED, start + size, start + WINDOW_PATCHES);
    }
  const whole = (values: readonly number[]) => ({ int64: [...values], shape: [values.length] });
  return {
    patches,
    patch_cos: cos,
    patch_sin: sin,
    windows: whole(windows),
    mask,
    places: whole(places),
    order: whole(order),
  };
}

/**
 * Writes the vision tower for one picture, as SeenPicture describes it. Inputs: patches [N, 1176]; `patch_cos` and
 * `patch_sin` [N, headSize / 2]; `windows` int64 [64 · windows]; `mask` [windows, 1, 64, 64], the lowest float for patches that
 * a window lacks; `places` int64 [N]; `order` int64 [N / 4]. Output: rows [N / 4, hidden]. Throws model.invalid for weights
 * that are absent or have other shapes. Source: Bai et al. 2025, "Qwen2.5-VL".
 *
 * @internal
 */
export function buildQwenVision(network: Network, config: QwenVisionConfig, trace: Trace = () => {}): void {
  const { graph } = network;
  const { width, headSize, blocks, hidden } = config;
  const patches = graph.input("patches", "float", ["N", PATCH_NUMBERS]);
  const kernel = network.weight("visual.patch_embed.proj.weight", [width, 3, 2, PATCH, PATCH]);
  const embedded = product(graph, patches, reshape(graph, kernel, [width, PATCH_NUMBERS]), [PATCH_NUMBERS, width]);
  trace("patch_embed", embedded);
  let x = graph.node("Unsqueeze", [embedded, graph.ints([0])]);
  const rotation = rotationInputs(graph, "patch", "N", headSize, "halves");
  const windows: Windows = {
    windows: graph.input("windows", "int64", ["padded"]),
    mask: graph.input("mask", "float", ["W", 1, WINDOW_PATCHES, WINDOW_PATCHES]),
    places: graph.input("places", "int64", ["N"]),
  };
  const step = blocks < STEP ? STEP_OF_TINY : STEP;
  for (let index = 0; index < blocks; index++) {
    const isWhole = index % step === step - 1;
    x = block(network, `visual.blocks.${index}`, x, config, rotation, isWhole ? undefined : windows);
    trace(`blocks.${index}`, x);
  }
  const normal = rmsNorm(network, "visual.merger.ln_q.weight", x, width, EPSILON);
  const size = UNIT_PATCHES * width;
  const wide = linear(network, "visual.merger.mlp.0", reshape(graph, normal, [-1, size]), [size, size]);
  const units = linear(network, "visual.merger.mlp.2", gelu(graph, wide), [size, hidden]);
  const rows = graph.node("Gather", [units, graph.input("order", "int64", ["units"])]);
  graph.output(rows, "rows", "float", ["units", hidden]);
}

/** The inputs that cut a picture into windows. */
interface Windows {
  readonly windows: Value;
  readonly mask: Value;
  readonly places: Value;
}

/** x + attention(norm(x)), then x + MLP(norm(x)); attention in windows, or to the whole picture. */
function block(
  network: Network,
  key: string,
  x: Value,
  { width, heads, mlp }: QwenVisionConfig,
  rotation: Rotation,
  windows: Windows | undefined,
): Value {
  const { graph } = network;
  const norm = (name: string, value: Value): Value => rmsNorm(network, `${key}.${name}.weight`, value, width, EPSILON);
  const all = linear(network, `${key}.attn.qkv`, norm("norm1", x), [width, 3 * width]);
  const [query, keys, values] = split(graph, all, [width, width, width]) as [Value, Value, Value];
  const turned = [rotated(graph, query, heads, rotation), rotated(graph, keys, heads, rotation), values] as const;
  const mixed =
    windows === undefined
      ? attention(graph, turned, { heads, width, parts: PARTS })
      : inWindows(graph, turned, width, windows, (parts) =>
          attention(graph, parts, { heads, width, mask: windows.mask }),
        );
  const after = add(graph, x, linear(network, `${key}.attn.proj`, mixed, [width, width]));
  const names = ["gate", "down", "up"].map((name) => `${key}.mlp.${name}_proj`) as [string, string, string];
  return add(graph, after, swiGlu(network, names, norm("norm2", after), [width, mlp], true));
}

/** `compute` of tokens [1, N, C] as windows [W, 64, C]. */
function inWindows(
  graph: OnnxGraph,
  tokens: readonly [Value, Value, Value],
  width: number,
  { windows, places }: Windows,
  compute: (parts: readonly [Value, Value, Value]) => Value,
): Value {
  const cut = tokens.map((value) => {
    const padded = graph.node("Gather", [value, windows], { axis: { int: 1 } });
    return reshape(graph, padded, [-1, WINDOW_PATCHES, width]);
  });
  const together = reshape(graph, compute(cut as [Value, Value, Value]), [1, -1, width]);
  return graph.node("Gather", [together, places], { axis: { int: 1 } });
}

/** The published tower has 32. */
const MOST_BLOCKS = 256;
/** Numbers of a head that no weight shows: those of the published tower, and of tiny ones. */
const HEAD_SIZES = [80, 16] as const;
const EXPECTED = "a vision tower of Qwen2.5-VL";
const MARK = "visual.patch_embed.proj.weight";

/** Sizes and weights of the vision tower beside a language model; undefined for a file without one. Throws model.invalid. */
export function qwenVisionPart(file: ModelHeader, prefix: string): Part<QwenVisionConfig> | undefined {
  if (!hasTower(file.weights, prefix)) return undefined;
  const shapes = new PartShapes(file, below(file.weights, prefix), (key) => prefix + key);
  const [width] = shapes.sides(MARK, 5) as [number];
  const headSize = HEAD_SIZES.find((size) => width % size === 0);
  if (headSize === undefined)
    throw shapes.invalid(`a vision tower of a multiple of ${HEAD_SIZES.join(" or ")} numbers`, `${width}`);
  const blocks = shapes.count("visual.blocks.", MOST_BLOCKS);
  const [mlp] = shapes.sides("visual.blocks.0.mlp.gate_proj.weight", 2) as [number];
  const [hidden] = shapes.sides("visual.merger.mlp.2.weight", 2) as [number];
  const config = { width, heads: width / headSize, headSize, mlp, blocks, hidden };
  return { config, weights: shapes.check((network) => buildQwenVision(network, config), ["visual."], EXPECTED) };
}

/** Whether a file has a tower, complete or not. */
function hasTower(weights: WeightMap, prefix: string): boolean {
  for (const key of weights.keys()) if (key.startsWith(`${prefix}visual.`)) return true;
  return false;
}
