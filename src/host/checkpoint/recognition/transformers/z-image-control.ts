import { listZImageControl, type ZImageControlConfig } from "../../networks/z-image-control.js";
import { foreignKind } from "../foreign.js";
import { type ModelFile, type Part, PartShapes, unwrappedFile } from "../part.js";
import { unsupported } from "../refusal.js";

const MOST_LAYERS = 256;
/** Channels of a control picture's latent, or of it, a mask and the latent of a picture to repaint. */
const CHANNELS: readonly number[] = [16, 33];
const PATCH_CELLS = 4;
const EXPECTED = "a control net of Z-Image (Fun ControlNet)";
const MARK = "control_all_x_embedder.2-1.weight";
const FIRST = "control_layers.0.";
const ROOTS = ["control_all_x_embedder.", "control_layers.", "control_noise_refiner."];
const QWEN_MARK = "controlnet_blocks.0.y_rms.weight";

/** Sizes and weights of a control net of Z-Image. Throws model.unsupported for other model patches, and model.invalid. */
export function zImageControlPart(whole: ModelFile): Part<ZImageControlConfig> {
  const file = unwrappedFile(whole, (weights) => weights.has(MARK));
  const shapes = new PartShapes(file, file.weights, (key) => key);
  if (shapes.has(QWEN_MARK)) throw unsupported(file.name, EXPECTED, "a control net of Qwen-Image (DiffSynth)");
  if (!shapes.has(MARK)) throw unsupported(file.name, EXPECTED, foreignKind(file.weights) ?? "unknown keys");
  const config = controlConfig(shapes);
  return { config, weights: shapes.check((network) => listZImageControl(network, config), ROOTS, EXPECTED) };
}

function controlConfig(shapes: PartShapes): ZImageControlConfig {
  const [width, patch] = shapes.sides(MARK, 2) as [number, number];
  const channels = patch / PATCH_CELLS;
  if (!CHANNELS.includes(channels))
    throw unsupported(shapes.file.name, `${EXPECTED} with ${CHANNELS.join(" or ")} channels`, `one with ${channels}`);
  const [headSize] = shapes.sides(`${FIRST}attention.norm_k.weight`, 1) as [number];
  if (headSize % 2 !== 0 || width % headSize !== 0)
    throw shapes.invalid(`heads of an even number of numbers that divide ${width}`, `${headSize}`);
  const [mlp] = shapes.sides(`${FIRST}feed_forward.w1.weight`, 2) as [number];
  const [, timeWidth] = shapes.sides(`${FIRST}adaLN_modulation.0.weight`, 2) as [number, number];
  return {
    ...{ width, heads: width / headSize, headSize, mlp, timeWidth, channels },
    layers: shapes.count("control_layers.", MOST_LAYERS),
    refiners: shapes.count("control_noise_refiner.", MOST_LAYERS),
    guidesRefiners: shapes.has("control_noise_refiner.0.after_proj.weight"),
  };
}
