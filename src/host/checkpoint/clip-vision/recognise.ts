import { type ModelHeader, type Part, PartShapes, unwrappedFile } from "../recognition/part.js";
import { kindInWords } from "../recognition/refusal.js";
import { unsupported, type WeightMap } from "../weights/stored.js";
import { buildClipVision, type ClipVisionConfig, KEYS, POSITIONS } from "./build.js";

const EXPECTED = "a CLIP vision encoder ViT-L/14, ViT-H/14 or ViT-bigG/14";
/** Encoders by their number of layers; sizes are those of the file. */
const NAMES: Readonly<Record<number, ClipVisionConfig["name"]>> = { 24: "L", 32: "H", 48: "bigG" };
const HEADS = 16;
const MOST_LAYERS = 256;
/** Positions of ViT-L/14 for pictures of 336 pixels. */
const POSITIONS_OF_336 = 577;
/** SigLIP has the same names, and a bias of patches, which CLIP lacks. */
const SIGLIP_MARK = "vision_model.embeddings.patch_embedding.bias";
const DINO_MARKS = [".layer_scale2.", ".ls2."];

type Layout = ClipVisionConfig["layout"];

const layoutOf = (weights: WeightMap): Layout | undefined =>
  (["hf", "openclip"] as const).find((layout) => weights.has(`${KEYS[layout].patches}.weight`));

/** Sizes and weights of a CLIP vision encoder. Throws model.unsupported for other encoders, by name, and model.invalid. */
export function clipVisionPart(whole: ModelHeader): Part<ClipVisionConfig> {
  const file = unwrappedFile(whole, (weights) => layoutOf(weights) !== undefined);
  const { weights, name } = file;
  const other = otherEncoder(weights);
  if (other !== undefined) throw unsupported(name, EXPECTED, other);
  const layout = layoutOf(weights);
  if (layout === undefined) throw unsupported(name, EXPECTED, kindInWords(weights));
  const keys = KEYS[layout];
  const shapes = new PartShapes(file, weights, (key) => key);
  const [positions, hidden] = shapes.sides(keys.positions, 2) as [number, number];
  if (positions === POSITIONS_OF_336) throw unsupported(name, EXPECTED, "one for pictures of 336 pixels");
  if (positions !== POSITIONS)
    throw unsupported(name, `${EXPECTED} with ${POSITIONS} positions`, `one with ${positions}`);
  const layers = shapes.count(keys.layers, MOST_LAYERS);
  const kind = NAMES[layers];
  if (kind === undefined) throw unsupported(name, `${EXPECTED} with 24, 32 or 48 layers`, `one with ${layers}`);
  if (hidden % HEADS !== 0) throw shapes.invalid(`a multiple of ${HEADS} channels`, `${hidden}`);
  const config: ClipVisionConfig = {
    name: kind,
    layout,
    hidden,
    layers,
    heads: HEADS,
    mlp: shapes.sides(`${keys.layers}0.${keys.mlp}`, 2)[0]!,
    activation: kind === "L" ? "quick-gelu" : "gelu",
    embedding: shapes.sides(keys.projection, 2)[layout === "hf" ? 0 : 1]!,
  };
  return { config, weights: shapes.check((network) => buildClipVision(network, config), keys.roots, EXPECTED) };
}

/** An encoder of another kind, by its name; undefined if there is none. */
function otherEncoder(weights: WeightMap): string | undefined {
  if ([...weights.keys()].some((key) => DINO_MARKS.some((mark) => key.includes(mark)))) return "a DINOv2 model";
  return weights.has(SIGLIP_MARK) ? "a SigLIP model" : undefined;
}
