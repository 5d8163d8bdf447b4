import { buildControlNet, type ControlNetConfig } from "../networks/controlnet.js";
import { foreignKind } from "./foreign.js";
import { below, type ModelFile, type Part, PartShapes, unwrappedFile } from "./part.js";
import { unsupported } from "./refusal.js";
import { renamed } from "./rename.js";
import { diffusersRenames, unetEncoderConfig } from "./unet.js";

/** A control net of a file. */
export interface ControlNetPart extends Part<ControlNetConfig> {
  /** Whether its weights are differences to those of the UNet that it is used with. */
  readonly isDifference: boolean;
}

const EXPECTED = "a ControlNet of Stable Diffusion 1, 2 or XL";
const PREFIXES = ["control_model.", ""];
/** Keys of the layers that no UNet has. */
const LDM_MARK = "zero_convs.0.0.weight";
const DIFFUSERS_MARK = "controlnet_down_blocks.0.weight";
const MARKS = [LDM_MARK, DIFFUSERS_MARK];
/** Layers of nets for several kinds of pictures, and of nets that work on latents. */
const OTHER_KINDS = [
  ["task_embedding", "a ControlNet for several kinds of pictures"],
  ["control_add_embedding.linear_1.weight", "a ControlNet for several kinds of pictures"],
  ["lora_controlnet", "a Control-LoRA"],
] as const;
const LATENT_CHANNELS = 4;
const ROOTS = ["time_embed.", "label_emb.", "input_blocks.", "middle_block", "zero_convs.", "input_hint_block."];

/** Sizes and weights of a ControlNet under LDM keys. Throws model.invalid, and model.unsupported for other files. */
export function controlNetPart(whole: ModelFile): ControlNetPart {
  const file = unwrappedFile(whole, (weights) =>
    PREFIXES.some((prefix) => MARKS.some((mark) => weights.has(prefix + mark))),
  );
  for (const prefix of PREFIXES) {
    const own = below(file.weights, prefix);
    const other = OTHER_KINDS.find(([key]) => own.has(key));
    if (other !== undefined) throw unsupported(file.name, EXPECTED, other[1]);
    const isDiffusers = own.has(DIFFUSERS_MARK);
    if (!isDiffusers && !own.has(LDM_MARK)) continue;
    const { weights, nameInFile } = renamed(own, isDiffusers ? diffusersRenames(own) : [], prefix);
    // Flux and Stable Diffusion 3 have nets with blocks of their own
    if (!weights.has("input_blocks.0.0.weight")) break;
    const shapes = new PartShapes(file, weights, nameInFile);
    const config = unetEncoderConfig(shapes);
    if (config.inChannels !== LATENT_CHANNELS)
      throw unsupported(file.name, EXPECTED, `one with ${config.inChannels} input channels`);
    const used = shapes.check((network) => buildControlNet(network, config), ROOTS, EXPECTED);
    return { config, weights: used, isDifference: own.has("difference") || file.weights.has("difference") };
  }
  throw unsupported(file.name, EXPECTED, foreignKind(file.weights) ?? "unknown keys");
}
