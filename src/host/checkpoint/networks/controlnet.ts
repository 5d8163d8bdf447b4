import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import { conv, silu } from "./layers.js";
import { downBlocks, middleBlock, type Picture, type UnetEncoderConfig, unetInputs } from "./unet.js";

/** Structure of a control net: that of the UNet's way down. */
export type ControlNetConfig = UnetEncoderConfig;

/** Channels after each convolution of the hint but the last, and its stride: the sides of a picture become those of a latent. */
const HINT_LAYERS = [
  [16, 1],
  [16, 1],
  [32, 2],
  [32, 1],
  [96, 2],
  [96, 1],
  [256, 2],
] as const;

/**
 * Writes a control net. Inputs: x, timestep, context and y as the UNet takes them, hint [B or 1, 3, 8h, 8w] in 0…1 and
 * strength [1]. Outputs, times strength: control_N for each input block and control_middle. Throws model.invalid for weights
 * that are absent or have other shapes. Source: ControlNet, cldm.py.
 */
export function buildControlNet(network: Network, config: ControlNetConfig): void {
  const { graph } = network;
  const inputs = unetInputs(network, config);
  const hint = hintFeatures(network, graph.input("hint", "float", ["hints", 3, "8h", "8w"]), config.modelChannels);
  const strength = graph.input("strength", "float", [1]);
  const outputs = downBlocks(network, config, inputs, { hint });
  const middle = middleBlock(network, config, inputs, outputs.at(-1)!);
  const write = (name: string, key: string, { value, channels }: Picture): void => {
    const residual = conv(network, key, value, [channels, channels], { kernel: 1 });
    const scaled = graph.node("Mul", [residual, strength]);
    graph.output(scaled, name, "float", ["B", channels, `h_${name}`, `w_${name}`]);
  };
  for (const [index, picture] of outputs.entries()) write(`control_${index}`, `zero_convs.${index}.0`, picture);
  write("control_middle", "middle_block_out.0", middle);
}

/** Features of a hint at the size of the latent, [B, modelChannels, h, w]. */
function hintFeatures(network: Network, hint: Value, modelChannels: number): Value {
  let value = hint;
  let inputs = 3;
  for (const [index, [channels, stride]] of HINT_LAYERS.entries()) {
    value = silu(
      network.graph,
      conv(network, `input_hint_block.${2 * index}`, value, [inputs, channels], { kernel: 3, stride }),
    );
    inputs = channels;
  }
  return conv(network, `input_hint_block.${2 * HINT_LAYERS.length}`, value, [inputs, modelChannels], { kernel: 3 });
}
