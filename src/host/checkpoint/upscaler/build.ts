import type { Tensor } from "../../../tensor/tensor.js";
import type { UpscaleModel } from "../../types.js";
import { add, conv, doubled, imagesOf, planesOf } from "../networks/layers.js";
import type { OnnxGraph, Value } from "../onnx/graph.js";
import type { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { Network } from "../weights/network.js";

/** An upscale model of a file, which runs in the runtime's process. */
export class CheckpointUpscaler implements UpscaleModel {
  readonly scale: number;
  readonly #runtime: Runtime;
  readonly #part: ModelPart<UpscalerConfig>;

  constructor(runtime: Runtime, part: ModelPart<UpscalerConfig>) {
    this.scale = part.config.scale;
    this.#runtime = runtime;
    this.#part = part;
  }

  async upscale(image: Tensor, signal?: AbortSignal): Promise<Tensor> {
    const session = this.#part.session("upscaler", (network, config) =>
      buildUpscaler(network, config, { asImages: true }),
    );
    const { enlarged } = await this.#runtime.run(session, { image }, { signal });
    return enlarged!;
  }
}

/** Sizes of an ESRGAN network, residual dense blocks, under BasicSR's keys. */
export interface RrdbConfig {
  readonly kind: "rrdb";
  /** Channels between blocks, and those that each layer of a block adds. */
  readonly channels: number;
  readonly growth: number;
  readonly blocks: number;
  /** Doublings after the blocks; an own layer for each. */
  readonly doublings: number;
  /** Side of the squares of pixels that become channels first: 1, 2 or 4. */
  readonly unshuffle: number;
  /** Factor of a picture's sides. */
  readonly scale: number;
}

/** Sizes of a compact network (SRVGG): convolutions with PReLU, then one step up. */
export interface CompactConfig {
  readonly kind: "compact";
  readonly channels: number;
  /** Convolutions between the first and the last. */
  readonly convolutions: number;
  readonly scale: number;
}

export type UpscalerConfig = RrdbConfig | CompactConfig;

const COLOURS = 3;
/** Layers of a residual dense block. */
const DENSE_LAYERS = 5;
const DENSE_BLOCKS = 3;
/** Share of a block's result that is added. */
const SHARE = 0.2;
const SLOPE = { alpha: { float: 0.2 } };

interface UpscalerOptions {
  /** Pictures as nodes pass them: [B, H, W, 3]. */
  readonly asImages?: boolean;
}

/** Writes an upscaler: `image` [B, 3, h, w] in 0…1 to `enlarged` [B, 3, scale * h, scale * w], about 0…1. */
export function buildUpscaler(
  network: Network,
  config: UpscalerConfig,
  { asImages = false }: UpscalerOptions = {},
): void {
  const { graph } = network;
  const image = asImages
    ? planesOf(graph, graph.input("image", "float", ["batch", "height", "width", COLOURS]))
    : graph.input("image", "float", ["batch", COLOURS, "height", "width"]);
  const enlarged = config.kind === "rrdb" ? rrdb(network, config, image) : compact(network, config, image);
  const { scale } = config;
  const sides = [`height*${scale}`, `width*${scale}`] as const;
  if (asImages) graph.output(imagesOf(graph, enlarged), "enlarged", "float", ["batch", ...sides, COLOURS]);
  else graph.output(enlarged, "enlarged", "float", ["batch", COLOURS, ...sides]);
}

function rrdb(network: Network, config: RrdbConfig, image: Value): Value {
  const { graph } = network;
  const { channels, blocks, doublings, unshuffle, scale } = config;
  const layer = (key: string, x: Value, inputs = channels, outputs = channels): Value =>
    conv(network, key, x, [inputs, outputs], { kernel: 3 });
  const cells = unshuffle === 1 ? image : unshuffled(graph, image, unshuffle);
  const first = layer("conv_first", cells, COLOURS * unshuffle * unshuffle);
  const share = graph.floats([SHARE], []);
  let x = first;
  for (let index = 0; index < blocks; index++) {
    let dense = x;
    for (let part = 1; part <= DENSE_BLOCKS; part++)
      dense = denseBlock(network, config, `body.${index}.rdb${part}`, dense, share);
    x = add(graph, graph.node("Mul", [dense, share]), x);
  }
  x = add(graph, first, layer("conv_body", x));
  for (let step = 1; step <= doublings; step++) x = leakyRelu(graph, layer(`conv_up${step}`, doubled(graph, x)));
  const result = layer("conv_last", leakyRelu(graph, layer("conv_hr", x)), channels, COLOURS);
  return unshuffle === 1 ? result : cropped(graph, result, image, scale);
}

/** x + 0.2 · five convolutions, each of x with all results before it. */
function denseBlock(network: Network, { channels, growth }: RrdbConfig, key: string, x: Value, share: Value): Value {
  const { graph } = network;
  const values = [x];
  for (let index = 1; index < DENSE_LAYERS; index++) {
    const inputs = channels + (index - 1) * growth;
    values.push(
      leakyRelu(graph, conv(network, `${key}.conv${index}`, joined(graph, values), [inputs, growth], { kernel: 3 })),
    );
  }
  const inputs = channels + (DENSE_LAYERS - 1) * growth;
  const last = conv(network, `${key}.conv${DENSE_LAYERS}`, joined(graph, values), [inputs, channels], { kernel: 3 });
  return add(graph, graph.node("Mul", [last, share]), x);
}

function compact(network: Network, { channels, convolutions, scale }: CompactConfig, image: Value): Value {
  const { graph } = network;
  // convolutions have even numbers, activations odd ones
  let x = image;
  for (let index = 0; index <= convolutions; index++) {
    x = conv(network, `body.${2 * index}`, x, [index === 0 ? COLOURS : channels, channels], { kernel: 3 });
    const slope = graph.node("Reshape", [
      network.weight(`body.${2 * index + 1}.weight`, [channels]),
      graph.ints([-1, 1, 1]),
    ]);
    x = graph.node("PRelu", [x, slope]);
  }
  x = conv(network, `body.${2 * (convolutions + 1)}`, x, [channels, COLOURS * scale * scale], { kernel: 3 });
  if (scale === 1) return add(graph, x, image);
  const shuffled = graph.node("DepthToSpace", [x], { blocksize: { int: scale }, mode: { text: "CRD" } });
  const base = graph.node("Resize", [image, undefined, graph.floats([1, 1, scale, scale], [4])], {
    mode: { text: "nearest" },
    coordinate_transformation_mode: { text: "asymmetric" },
    nearest_mode: { text: "floor" },
  });
  return add(graph, shuffled, base);
}

const leakyRelu = (graph: OnnxGraph, x: Value): Value => graph.node("LeakyRelu", [x], SLOPE);

const joined = (graph: OnnxGraph, values: readonly Value[]): Value =>
  values.length === 1 ? values[0]! : graph.node("Concat", values, { axis: { int: 1 } });

/** Squares of pixels as channels, [B, 3 r², h / r, w / r]; the picture is first mirrored to a multiple of r. */
function unshuffled(graph: OnnxGraph, image: Value, r: number): Value {
  const x = mirrored(graph, mirrored(graph, image, 2, r), 3, r);
  const sides = graph.node("Shape", [x]);
  const [batch, height, width] = [0, 2, 3].map((axis) => graph.node("Gather", [sides, graph.ints([axis])]));
  const [side, colours] = [graph.ints([r]), graph.ints([COLOURS])];
  const [rows, columns] = [height!, width!].map((length) => graph.node("Div", [length, side]));
  const split = graph.node("Concat", [batch, colours, rows, side, columns, side], { axis: { int: 0 } });
  const squares = graph.node("Transpose", [graph.node("Reshape", [x, split])], { perm: { ints: [0, 1, 3, 5, 2, 4] } });
  const shape = graph.node("Concat", [batch, graph.ints([COLOURS * r * r]), rows, columns], { axis: { int: 0 } });
  return graph.node("Reshape", [squares, shape]);
}

/** A picture whose axis is continued to a multiple of r: mirrored, or the edge repeated if that is too short. */
function mirrored(graph: OnnxGraph, image: Value, axis: number, r: number): Value {
  const [zero, one, two, side] = [0, 1, 2, r].map((value) => graph.ints([value], []));
  const length = graph.node("Gather", [graph.node("Shape", [image]), graph.ints([axis], [])]);
  const end = graph.node("Mul", [
    graph.node("Div", [graph.node("Add", [length, graph.ints([r - 1], [])]), side]),
    side,
  ]);
  const index = graph.node("Range", [zero, end, one]);
  const last = graph.node("Sub", [length, one]);
  const back = graph.node("Max", [graph.node("Sub", [graph.node("Mul", [last, two]), index]), zero]);
  const source = graph.node("Where", [graph.node("Less", [index, length]), index, back]);
  return graph.node("Gather", [image, source], { axis: { int: axis } });
}

/** An enlarged picture at `scale` times the sides of `image`. */
function cropped(graph: OnnxGraph, enlarged: Value, image: Value, scale: number): Value {
  const sides = graph.node("Shape", [image], { start: { int: 2 } });
  const ends = graph.node("Mul", [sides, graph.ints([scale])]);
  return graph.node("Slice", [enlarged, graph.ints([0, 0]), ends, graph.ints([2, 3])]);
}
