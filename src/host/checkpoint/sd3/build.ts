import { add, attention, FLOAT_BYTES, linear, reshape, silu, type Trace } from "../networks/layers.js";
import { TIME_EMBEDDING } from "../networks/sinusoids.js";
import {
  gated,
  geluTanh,
  headNorm,
  joined,
  lengthOf,
  modulated,
  modulation,
  parted,
  split,
} from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import { product } from "../onnx/products.js";
import type { Network } from "../weights/network.js";

/** Sizes of a transformer of Stable Diffusion 3. */
export interface Sd3Config {
  readonly channels: number;
  readonly width: number;
  readonly heads: number;
  /** Numbers between the two layers of an MLP. */
  readonly mlp: number;
  readonly contextWidth: number;
  readonly pooledWidth: number;
  /** Patches on a side of the table of positions. */
  readonly side: number;
  readonly blocks: number;
  /** Blocks at the beginning in which the picture's stream attends to itself once more, as in 3.5 medium. */
  readonly selfAttending: number;
  /** Whether queries and keys are normalised head by head, as in 3.5. */
  readonly hasHeadNorms: boolean;
}

/** Numbers of a head. */
export const HEAD_SIZE = 64;
/** Cells of a patch of 2 x 2. */
export const PATCH_CELLS = 4;
/** Key of the table of positions [side · side, width]. */
export const POSITIONS = "pos_embed";
const EPSILON = 1e-6;
/** Parts in which queries are processed if attention is written out. */
const PARTS = 16;
/** Parts of a split: its program has a buffer for each, and a GPU allows few. */
const LARGEST_SPLIT = 6;

/** Bytes of a run beside the weights, for each value of x and of context: those of a token in a block. */
export function sd3Work({ width, mlp, channels, contextWidth }: Sd3Config): Readonly<Record<string, number>> {
  const ofToken = FLOAT_BYTES * (8 * width + 2 * mlp);
  return { x: ofToken / (PATCH_CELLS * channels), context: ofToken / contextWidth };
}

/**
 * Writes a transformer of Stable Diffusion 3. Inputs: x [B, L, 4 · channels], patches of the latent in model units; `places`
 * int64 [L], their rows in the table of positions; time [B, 256], embedded; y [B, pooledWidth]; context [B, S,
 * contextWidth]. Output: out [B, L, 4 · channels], the velocity, all channels of a cell after each other. Throws
 * model.invalid for weights that are absent or have other shapes. Source: Esser et al. 2024, "Scaling Rectified Flow
 * Transformers", by the facts of its files.
 */
export function buildSd3(network: Network, config: Sd3Config, trace: Trace = () => {}): void {
  const { graph } = network;
  const { channels, width, contextWidth, pooledWidth, side, blocks } = config;
  const numbers = PATCH_CELLS * channels;
  const patches = graph.input("x", "float", ["B", "L", numbers]);
  const cells = patchLayer(network, patches, [channels, width]);
  trace("x_embedder", cells);
  const places = network.rows(POSITIONS, [side * side, width], graph.input("places", "int64", ["L"]));
  const embedded = (name: string, input: string, size: number): Value => {
    const hidden = linear(network, `${name}.mlp.0`, graph.input(input, "float", ["B", size]), [size, width]);
    const out = linear(network, `${name}.mlp.2`, silu(graph, hidden), [width, width]);
    trace(name, out);
    return out;
  };
  const vector = add(graph, embedded("t_embedder", "time", TIME_EMBEDDING), embedded("y_embedder", "y", pooledWidth));
  const context = graph.input("context", "float", ["B", "S", contextWidth]);
  let text = linear(network, "context_embedder", context, [contextWidth, width]);
  trace("context_embedder", text);
  let picture = add(graph, cells, places);
  for (let index = 0; index < blocks; index++)
    [text, picture] = jointBlock(network, config, { index, vector, trace }, [text, picture]);
  const [shift, scale] = changesOf(network, "final_layer", vector, width, 2);
  const last = modulated(graph, picture, width, { shift: shift!, scale: scale! });
  const out = linear(network, "final_layer.linear", last, [width, numbers]);
  trace("final_layer", out);
  graph.output(out, "out", "float", ["B", "L", numbers]);
}

/** A convolution of patches in the file, as a layer on tokens. */
function patchLayer(network: Network, patches: Value, [channels, width]: readonly [number, number]): Value {
  const { graph } = network;
  const weight = network.weight("x_embedder.proj.weight", [width, channels, 2, 2], patches);
  const inputs = PATCH_CELLS * channels;
  const sums = product(graph, patches, reshape(graph, weight, [width, inputs]), [inputs, width]);
  return add(graph, sums, network.weight("x_embedder.proj.bias", [width]));
}

/** `count` changes [B, 1, width] that a layer makes of a vector [B, width]. */
function changesOf(network: Network, key: string, vector: Value, width: number, count: number): Value[] {
  const { graph } = network;
  const all = modulation(network, `${key}.adaLN_modulation.1`, vector, [width, count]);
  if (count <= LARGEST_SPLIT) return split(graph, all, new Array<number>(count).fill(width));
  const sizes = [LARGEST_SPLIT, count - LARGEST_SPLIT];
  const parts = split(
    graph,
    all,
    sizes.map((size) => size * width),
  );
  return parts.flatMap((part, at) => split(graph, part, new Array<number>(sizes[at]!).fill(width)));
}

interface BlockContext {
  readonly index: number;
  /** Time and pooled text [B, width]. */
  readonly vector: Value;
  readonly trace: Trace;
}

/** A block of two streams, the text's first, which attend to each other; the last one leaves the text's stream as it is. */
function jointBlock(
  network: Network,
  config: Sd3Config,
  { index, vector, trace }: BlockContext,
  [text, picture]: readonly [Value, Value],
): [Value, Value] {
  const { graph } = network;
  const { width, heads, blocks, selfAttending } = config;
  const key = `joint_blocks.${index}`;
  const isLast = index === blocks - 1;
  const attendsToItself = index < selfAttending;
  const ofText = changesOf(network, `${key}.context_block`, vector, width, isLast ? 2 : 6);
  const ofPicture = changesOf(network, `${key}.x_block`, vector, width, attendsToItself ? 9 : 6);
  const headsOf = (name: string, x: Value, changes: readonly Value[]): Heads =>
    queryKeyValue(network, `${key}.${name}`, modulated(graph, x, width, changeOf(changes)), config);
  const [first, second] = [headsOf("context_block.attn", text, ofText), headsOf("x_block.attn", picture, ofPicture)];
  const both = first.map((part, at) => joined(graph, [part, second[at]!], 1)) as unknown as Heads;
  const attended = (parts: Heads): Value => attention(graph, parts, { heads, width, parts: PARTS });
  const [toText, toPicture] = parted(graph, attended(both), lengthOf(graph, text));
  const project = (name: string, x: Value): Value => linear(network, `${key}.${name}.proj`, x, [width, width]);
  let seen = gated(graph, picture, ofPicture[2]!, project("x_block.attn", toPicture));
  if (attendsToItself) {
    const own = attended(headsOf("x_block.attn2", picture, ofPicture.slice(6)));
    seen = gated(graph, seen, ofPicture[8]!, project("x_block.attn2", own));
  }
  const out = withMlp(network, `${key}.x_block`, seen, ofPicture.slice(3), config);
  trace(`${key}.x`, out);
  if (isLast) return [text, out];
  const read = gated(graph, text, ofText[2]!, project("context_block.attn", toText));
  const next = withMlp(network, `${key}.context_block`, read, ofText.slice(3), config);
  trace(`${key}.context`, next);
  return [next, out];
}

type Heads = readonly [query: Value, key: Value, value: Value];

const changeOf = ([shift, scale]: readonly Value[]): { readonly shift: Value; readonly scale: Value } => ({
  shift: shift!,
  scale: scale!,
});

/** Queries, keys and values of a stream, those before normalised head by head. */
function queryKeyValue(network: Network, key: string, x: Value, { width, heads, hasHeadNorms }: Sd3Config): Heads {
  const all = linear(network, `${key}.qkv`, x, [width, 3 * width]);
  const [query, keys, value] = split(network.graph, all, [width, width, width]);
  const normal = (name: string, part: Value): Value =>
    hasHeadNorms ? headNorm(network, `${key}.${name}.weight`, part, [heads, HEAD_SIZE], EPSILON) : part;
  return [normal("ln_q", query!), normal("ln_k", keys!), value!];
}

/** x + gate · MLP((1 + scale) norm(x) + shift). */
function withMlp(network: Network, key: string, x: Value, changes: readonly Value[], { width, mlp }: Sd3Config): Value {
  const { graph } = network;
  const wide = linear(network, `${key}.mlp.fc1`, modulated(graph, x, width, changeOf(changes)), [width, mlp]);
  return gated(graph, x, changes[2]!, linear(network, `${key}.mlp.fc2`, geluTanh(graph, wide), [mlp, width]));
}
