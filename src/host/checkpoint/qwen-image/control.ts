import type { ControlSizes } from "../diffusion/control-pictures.js";
import { add, gelu, linear } from "../networks/layers.js";
import { joined, lengthOf, parted, rmsNorm } from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import { type ModelHeader, type Part, PartShapes } from "../recognition/part.js";
import type { Network } from "../weights/network.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import { EPSILON } from "./block.js";

/** Sizes of a control net of Qwen-Image (DiffSynth), which runs after each of the transformer's blocks. */
export interface QwenImageControlConfig extends ControlSizes {
  readonly blocks: number;
}

/** A control net and where its weights come from. */
export interface QwenImageControl {
  readonly network: Network;
  readonly config: QwenImageControlConfig;
}

/** The inputs of a control net, as values of the graph. */
interface ControlInputs {
  /** Patches of the control picture's latent [B or 1, C, 4 · channels]. */
  readonly tokens: Value;
  /** [1] */
  readonly strength: Value;
}

/** Tokens [B, L, width] after a block of the transformer, with the net's additions to the first ones, those of the picture. */
type ControlBranch = (index: number, tokens: Value) => Value;

// decisions: A ControlNet has a session of its own
/** Writes a control net. Source: the facts of DiffSynth-Studio's files. */
export function qwenImageControl({ network, config }: QwenImageControl, inputs: ControlInputs): ControlBranch {
  const { graph } = network;
  const { width, channels, blocks } = config;
  const control = linear(network, "img_in", inputs.tokens, [PATCH_CELLS * channels, width]);
  const count = lengthOf(graph, control);
  return (index, tokens) => {
    if (index >= blocks) return tokens;
    const key = `controlnet_blocks.${index}`;
    const [own, others] = parted(graph, tokens, count);
    const norm = (name: string, x: Value): Value => rmsNorm(network, `${key}.${name}.weight`, x, width, EPSILON);
    const sum = add(graph, norm("x_rms", own), norm("y_rms", control));
    const hidden = gelu(graph, linear(network, `${key}.input_proj`, sum, [width, width]));
    const more = linear(network, `${key}.output_proj`, hidden, [width, width]);
    const guided = add(graph, own, graph.node("Mul", [more, inputs.strength]));
    return joined(graph, [guided, others], 1);
  };
}

/**
 * Writes only a control net. Inputs: control [B, C, 4 · channels], strength [1], x [B, C, width], the tokens after every block.
 * Outputs: `block_N`.
 *
 * @internal
 */
export function buildQwenImageControl(network: Network, config: QwenImageControlConfig): void {
  const { graph } = network;
  const { width, channels, blocks } = config;
  const branch = qwenImageControl(
    { network, config },
    {
      tokens: graph.input("control", "float", ["B", "C", PATCH_CELLS * channels]),
      strength: graph.input("strength", "float", [1]),
    },
  );
  const x = graph.input("x", "float", ["B", "C", width]);
  for (let index = 0; index < blocks; index++)
    graph.output(branch(index, x), `block_${index}`, "float", ["B", "C", width]);
}

const MOST_BLOCKS = 256;
const CHANNELS = 16;
const PATCH_CELLS = 4;
const EXPECTED = "a control net of Qwen-Image (DiffSynth)";
const MARK = "controlnet_blocks.0.y_rms.weight";

/** Whether a file has such a net, complete or not. */
export const hasQwenImageControl = (weights: WeightMap): boolean => weights.has(MARK);

/** Sizes and weights of a control net of Qwen-Image. Throws model.unsupported for one that takes more, and model.invalid. */
export function qwenImageControlPart(file: ModelHeader): Part<QwenImageControlConfig> {
  const shapes = new PartShapes(file, file.weights, (key) => key);
  const [width, patch] = shapes.sides("img_in.weight", 2) as [number, number];
  const channels = patch / PATCH_CELLS;
  if (channels !== CHANNELS)
    throw unsupported(file.name, `${EXPECTED} with ${CHANNELS} channels`, `one with ${channels}`);
  const config = { width, channels, blocks: shapes.count("controlnet_blocks.", MOST_BLOCKS) };
  const roots = ["img_in.", "controlnet_blocks."];
  return { config, weights: shapes.check((network) => buildQwenImageControl(network, config), roots, EXPECTED) };
}
