import { roundHalfEven } from "../../../tensor/rounding.js";
import type { ControlSizes } from "../diffusion/control-pictures.js";
import { add, linear } from "../networks/layers.js";
import { type Rotation, rotationInputs } from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import { type ModelHeader, type Part, PartShapes } from "../recognition/part.js";
import type { Network } from "../weights/network.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import { type ZImageBlockConfig, zImageBlock } from "./block.js";
import { diffusersKey, originalLayout } from "./names.js";

/** Sizes of a control net of Z-Image, which runs beside the transformer's layers. */
export interface ZImageControlConfig extends ZImageBlockConfig, ControlSizes {
  readonly layers: number;
  readonly refiners: number;
  /** Whether the refiners run beside those of the transformer and guide them, or only before its layers. */
  readonly guidesRefiners: boolean;
}

/** A control net and where its weights come from. */
export interface ZImageControl {
  readonly network: Network;
  readonly config: ZImageControlConfig;
}

/** The inputs of a control net, as values of the graph, with the sizes of the transformer beside it. */
interface ControlInputs {
  readonly config: Pick<ZImageBlockConfig, "width"> & { readonly layers: number };
  /** Patches of the control's latents [B or 1, L, 4 · channels]. */
  readonly tokens: Value;
  /** [1] */
  readonly strength: Value;
  readonly time: Value;
  /** Rotation of the picture's tokens, without padding. */
  readonly rotation: Rotation;
}

/** Values that a control net adds to the picture's tokens after a block of the transformer; undefined: none. */
interface ControlBranch {
  /** `x` [B, L, C]: the tokens as they entered the first refiner. */
  besideRefiner(index: number, x: Value): Value | undefined;
  /** `x` [B, L, C]: the tokens as they entered the first layer. */
  besideLayer(index: number, x: Value): Value | undefined;
}

// decisions: A ControlNet has a session of its own
/** Writes a control net. Source: Z-Image Fun ControlNet (VideoX-Fun), by the facts of its files. */
export function zImageControl({ network, config }: ZImageControl, inputs: ControlInputs): ControlBranch {
  const { graph } = network;
  const { tokens, strength, time, rotation } = inputs;
  const { width, channels, layers, refiners, guidesRefiners } = config;
  let state = linear(network, "control_all_x_embedder.2-1", tokens, [4 * channels, width]);
  const step = (key: string): void => {
    state = zImageBlock(network, key, state, config, rotation, time);
  };
  /** One block; the first one also adds the input of the transformer's. */
  const guided = (key: string, isFirst: boolean, x: Value): Value => {
    if (isFirst) state = add(graph, linear(network, `${key}.before_proj`, state, [width, width]), x);
    step(key);
    return graph.node("Mul", [linear(network, `${key}.after_proj`, state, [width, width]), strength]);
  };
  if (!guidesRefiners) for (let index = 0; index < refiners; index++) step(`control_noise_refiner.${index}`);
  const stride = Math.max(1, roundHalfEven(inputs.config.layers / layers));
  return {
    besideRefiner: (index, x) =>
      guidesRefiners && index < refiners ? guided(`control_noise_refiner.${index}`, index === 0, x) : undefined,
    besideLayer(index, x) {
      const own = index / stride;
      if (!Number.isInteger(own) || own >= layers) return undefined;
      return guided(`control_layers.${own}`, own === 0, x);
    },
  };
}

/**
 * Writes only a control net, for a transformer of this many layers. Inputs: control [B, L, 4 · channels], strength [1],
 * time [B, timeWidth], x [B, L, width], and the rotations `image_cos` and `image_sin`. Outputs: `refiner_N` and `layer_N`.
 */
export function buildZImageControl(network: Network, config: ZImageControlConfig): void {
  const { graph } = network;
  const { width, channels, headSize, layers, refiners } = config;
  const rotation = rotationInputs(graph, "image", "L", headSize, "neighbours");
  const branch = zImageControl(
    { network, config },
    {
      config,
      tokens: graph.input("control", "float", ["B", "L", 4 * channels]),
      strength: graph.input("strength", "float", [1]),
      time: graph.input("time", "float", ["B", config.timeWidth]),
      rotation,
    },
  );
  const x = graph.input("x", "float", ["B", "L", width]);
  const write = (name: string, value: Value | undefined): void => {
    if (value !== undefined) graph.output(value, name, "float", ["B", "L", width]);
  };
  for (let index = 0; index < refiners; index++) write(`refiner_${index}`, branch.besideRefiner(index, x));
  for (let index = 0; index < layers; index++) write(`layer_${index}`, branch.besideLayer(index, x));
}

const MOST_LAYERS = 256;
/** Channels of a control picture's latent, or of it, a mask and the latent of a picture to repaint. */
const CHANNELS: readonly number[] = [16, 33];
const PATCH_CELLS = 4;
const EXPECTED = "a control net of Z-Image (Fun ControlNet)";
const MARK = "control_all_x_embedder.2-1.weight";
const FIRST = "control_layers.0.";
const ROOTS = ["control_all_x_embedder.", "control_layers.", "control_noise_refiner."];

/** Whether a file has such a net, complete or not. */
export const hasZImageControl = (weights: WeightMap): boolean => weights.has(MARK);

/** Sizes and weights of a control net of Z-Image. Throws model.unsupported for other channels, and model.invalid. */
export function zImageControlPart(file: ModelHeader): Part<ZImageControlConfig> {
  const shapes = new PartShapes(file, originalLayout(file.weights), diffusersKey);
  const config = controlConfig(shapes);
  return { config, weights: shapes.check((network) => buildZImageControl(network, config), ROOTS, EXPECTED) };
}

function controlConfig(shapes: PartShapes): ZImageControlConfig {
  const [width, patch] = shapes.sides(MARK, 2) as [number, number];
  const channels = patch / PATCH_CELLS;
  if (!CHANNELS.includes(channels))
    throw unsupported(shapes.file.name, `${EXPECTED} with ${CHANNELS.join(" or ")} channels`, `one with ${channels}`);
  const [headSize] = shapes.sides(`${FIRST}attention.k_norm.weight`, 1) as [number];
  if (headSize % 2 !== 0 || width % headSize !== 0)
    throw shapes.invalid(`heads of an even number of numbers that divide ${width}`, `${headSize}`);
  const [mlp] = shapes.sides(`${FIRST}feed_forward.w1.weight`, 2) as [number];
  const [, timeWidth] = shapes.sides(`${FIRST}adaLN_modulation.0.weight`, 2) as [number, number];
  return {
    width,
    heads: width / headSize,
    headSize,
    mlp,
    timeWidth,
    channels,
    layers: shapes.count("control_layers.", MOST_LAYERS),
    refiners: shapes.count("control_noise_refiner.", MOST_LAYERS),
    guidesRefiners: shapes.has("control_noise_refiner.0.after_proj.weight"),
  };
}
