import { roundHalfEven } from "../../../tensor/rounding.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { add, linear } from "./layers.js";
import { type Rotation, rotationInputs } from "./transformer-layers.js";
import { type ZImageBlockConfig, zImageBlock } from "./z-image-block.js";

/** Sizes of a control net of Z-Image, which runs beside the transformer's layers. */
export interface ZImageControlConfig extends Omit<ZImageBlockConfig, "layout"> {
  /** 16 of the control picture's latent, or 33: these, a mask and the latent of a picture to repaint. */
  readonly channels: number;
  readonly layers: number;
  readonly refiners: number;
  /** Whether the refiners run beside those of the transformer and guide them, or before its layers alone. */
  readonly guidesRefiners: boolean;
}

/** A control net and where its weights come from. */
export interface ZImageControl {
  readonly network: Network;
  readonly config: ZImageControlConfig;
}

interface Surroundings {
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

/** Writes a control net. Source: Z-Image Fun ControlNet (VideoX-Fun), by the facts of its files. */
export function zImageControl({ network, config }: ZImageControl, surroundings: Surroundings): ControlBranch {
  const { graph } = network;
  const { tokens, strength, time, rotation } = surroundings;
  const { width, channels, layers, refiners, guidesRefiners } = config;
  const keys = { ...config, layout: "diffusers" } as const;
  let state = linear(network, "control_all_x_embedder.2-1", tokens, [4 * channels, width]);
  const step = (key: string): void => {
    state = zImageBlock(network, key, state, keys, rotation, time);
  };
  /** One block, before which the first one takes what entered the transformer's. */
  const guided = (key: string, isFirst: boolean, x: Value): Value => {
    if (isFirst) state = add(graph, linear(network, `${key}.before_proj`, state, [width, width]), x);
    step(key);
    return graph.node("Mul", [linear(network, `${key}.after_proj`, state, [width, width]), strength]);
  };
  if (!guidesRefiners) for (let index = 0; index < refiners; index++) step(`control_noise_refiner.${index}`);
  const stride = Math.max(1, roundHalfEven(surroundings.config.layers / layers));
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

/** Asks a network for all weights of a control net, beside a transformer of as many layers. */
export function listZImageControl(network: Network, config: ZImageControlConfig): void {
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
  for (let index = 0; index < refiners; index++) branch.besideRefiner(index, x);
  for (let index = 0; index < layers; index++) branch.besideLayer(index, x);
}
