import { add, conv, FLOAT_BYTES, layerNorm, linear, tokensOf } from "../networks/layers.js";
import type { Value } from "../onnx/graph.js";
import { product, transposed } from "../onnx/products.js";
import { type ClipBlockConfig, clipBlock } from "../text-encoder/build.js";
import type { Network } from "../weights/network.js";

/** Sizes of a CLIP vision encoder. */
export interface ClipVisionConfig extends ClipBlockConfig {
  /** ViT-L/14, ViT-H/14 or ViT-bigG/14, by the number of layers. */
  readonly name: "L" | "H" | "bigG";
  readonly layers: number;
  /** Numbers of an embedded picture. */
  readonly embedding: number;
}

/** Pixels along a side of a picture, and of one of its patches. */
export const PICTURE_SIDE = 224;
const PATCH_SIDE = 14;
const COLOURS = 3;
/** A class token and one for each of 16 x 16 patches. */
export const POSITIONS = 257;

/** Keys of the layers around the blocks. */
export const KEYS = {
  hf: {
    prefix: "vision_model.",
    classToken: "vision_model.embeddings.class_embedding",
    patches: "vision_model.embeddings.patch_embedding",
    positions: "vision_model.embeddings.position_embedding.weight",
    firstNorm: "vision_model.pre_layrnorm",
    lastNorm: "vision_model.post_layernorm",
    projection: "visual_projection.weight",
    layers: "vision_model.encoder.layers.",
    mlp: "mlp.fc1.weight",
    roots: ["vision_model.", "visual_projection."],
  },
  openclip: {
    prefix: "visual.",
    classToken: "visual.class_embedding",
    patches: "visual.conv1",
    positions: "visual.positional_embedding",
    firstNorm: "visual.ln_pre",
    lastNorm: "visual.ln_post",
    projection: "visual.proj",
    layers: "visual.transformer.resblocks.",
    mlp: "mlp.c_fc.weight",
    roots: ["visual."],
  },
} as const;

/** Bytes of a run beside the weights, for each value of the pixels: six values of a token, its MLP's and its scores, twice. */
export const clipVisionWork = ({ hidden, mlp, heads }: ClipVisionConfig): { readonly pixels: number } => ({
  pixels:
    (FLOAT_BYTES * POSITIONS * (6 * hidden + 2 * mlp + 2 * heads * POSITIONS)) /
    (COLOURS * PICTURE_SIDE * PICTURE_SIDE),
});

/**
 * Writes a CLIP vision encoder. Input: pixels [B, 3, 224, 224], normalised. Outputs: `last` and `penultimate`
 * [B, 257, hidden], the states after all blocks and after all but one; `embedding` [B, embedding], the class token of
 * `last`, normalised and projected.
 */
export function buildClipVision(network: Network, config: ClipVisionConfig): void {
  const { graph } = network;
  const { layout, hidden, layers, embedding } = config;
  const keys = KEYS[layout];
  const pixels = graph.input("pixels", "float", ["batch", COLOURS, PICTURE_SIDE, PICTURE_SIDE]);
  const patches = conv(network, keys.patches, pixels, [COLOURS, hidden], {
    kernel: PATCH_SIDE,
    stride: PATCH_SIDE,
    pads: [0, 0, 0, 0],
    bias: false,
  });
  const batch = graph.node("Shape", [pixels], { end: { int: 1 } });
  const classShape = graph.node("Concat", [batch, graph.ints([1, hidden])], { axis: { int: 0 } });
  const classToken = graph.node("Expand", [network.weight(keys.classToken, [hidden]), classShape]);
  const tokens = graph.node("Concat", [classToken, tokensOf(graph, patches)], { axis: { int: 1 } });
  let x = add(graph, tokens, network.weight(keys.positions, [POSITIONS, hidden]));
  x = layerNorm(network, keys.firstNorm, x, hidden);
  let penultimate = x;
  for (let index = 0; index < layers; index++) {
    penultimate = x;
    x = clipBlock(network, config, keys.prefix, index, x);
  }
  const states = ["batch", POSITIONS, hidden];
  graph.output(x, "last", "float", states);
  graph.output(penultimate, "penultimate", "float", states);
  const first = graph.node("Gather", [x, graph.ints([0], [])], { axis: { int: 1 } });
  const normal = layerNorm(network, keys.lastNorm, first, hidden);
  graph.output(projected(network, config, normal), "embedding", "float", ["batch", embedding]);
}

/** x [B, hidden] projected to [B, embedding]. */
function projected(network: Network, { layout, hidden, embedding }: ClipVisionConfig, x: Value): Value {
  const { graph } = network;
  if (layout === "hf") return linear(network, "visual_projection", x, [hidden, embedding], { bias: false, few: 2 });
  const weight = network.weight(KEYS.openclip.projection, [hidden, embedding]);
  return product(graph, x, transposed(graph, weight), [hidden, embedding], { few: 2 });
}
