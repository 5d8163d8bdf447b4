import { type ModelHeader, type Part, PartShapes, unwrappedFile } from "../recognition/part.js";
import { kindInWords } from "../recognition/refusal.js";
import { type StoredWeight, unsupported, type WeightMap } from "../weights/stored.js";
import { buildProjection, HEAD_SIZE, type KeysConfig, keysAndValues, type ProjectionConfig } from "./build.js";

/** The two networks of an IPAdapter's file. */
export interface IpAdapterPart {
  readonly projection: Part<ProjectionConfig>;
  readonly keys: Part<KeysConfig>;
  /** Whether it is made for SDXL; else for Stable Diffusion 1. */
  readonly isSdxl: boolean;
}

const EXPECTED = "an IPAdapter of Stable Diffusion 1 or XL";
/** Number of the last layer of SDXL, all of whose files have it; that of Stable Diffusion 1 is 31. */
const LAST_OF_SDXL = 139;
const MOST_LAYERS = 512;
/** SDXL's resampler has 4 layers. */
const MOST_RESAMPLER_LAYERS = 64;
/** Width of the resampler of Kolors, whose UNet reads other prompts. */
const WIDTH_OF_KOLORS = 2048;

const has = (weights: WeightMap, part: string): boolean => [...weights.keys()].some((key) => key.startsWith(part));

/** Kinds that are not run, by a sign of each. */
const OTHER_KINDS: readonly (readonly [kind: string, isOne: (weights: WeightMap, name: string) => boolean])[] = [
  ["an IPAdapter FaceID, which needs InsightFace", (weights) => weights.has("ip_adapter.0.to_q_lora.down.weight")],
  ["an IPAdapter FaceID, which needs InsightFace", (weights) => has(weights, "image_proj.perceiver_resampler.")],
  [
    "an IPAdapter FaceID or a portrait adapter, which need InsightFace",
    (weights) => weights.has("image_proj.proj.2.weight") && !weights.has("image_proj.proj.3.weight"),
  ],
  ["a portrait adapter without normalisation", (_, name) => name.toLowerCase().includes("unnorm")],
  ["an IPAdapter of Kolors", (weights) => weights.get("image_proj.latents")?.shape[2] === WIDTH_OF_KOLORS],
];

/** Sizes and weights of an IPAdapter. Throws model.unsupported for other kinds, by name, and model.invalid. */
export function ipAdapterPart(whole: ModelHeader): IpAdapterPart {
  const unwrapped = unwrappedFile(whole, (weights) => has(weights, "image_proj."));
  const weights = underOwnNames(unwrapped.weights);
  const file = { ...unwrapped, weights };
  if (!has(weights, "image_proj.") || !has(weights, "ip_adapter."))
    throw unsupported(file.name, EXPECTED, kindInWords(weights));
  const other = OTHER_KINDS.find(([, isOne]) => isOne(weights, file.name));
  if (other !== undefined) throw unsupported(file.name, EXPECTED, other[0]);
  const shapes = new PartShapes(file, weights, (key) => key);
  const keys = keysConfig(shapes);
  const projection = projectionConfig(shapes, keys.contextDim);
  const checked = (build: Parameters<PartShapes["check"]>[0], root: string): WeightMap =>
    shapes.check(build, [root], EXPECTED);
  return {
    projection: {
      config: projection,
      weights: checked((network) => buildProjection(network, projection), "image_proj."),
    },
    keys: {
      config: keys,
      weights: checked((network) => {
        const tokens = network.graph.input("tokens", "float", ["B", "L", keys.contextDim]);
        for (const layer of keys.channels.keys()) keysAndValues(network, keys, layer, tokens);
      }, "ip_adapter."),
    },
    isSdxl: keys.channels.has(LAST_OF_SDXL),
  };
}

/** Diffusers' own training scripts have another name for the layers. */
function underOwnNames(weights: WeightMap): WeightMap {
  if (!has(weights, "adapter_modules.")) return weights;
  return new Map<string, StoredWeight>(
    [...weights].map(([key, weight]) => [key.replace(/^adapter_modules\./, "ip_adapter."), weight]),
  );
}

function keysConfig(shapes: PartShapes): KeysConfig {
  const channels = new Map<number, number>();
  let contextDim = 0;
  const count = shapes.count("ip_adapter.", MOST_LAYERS);
  for (let layer = 0; layer < count; layer++) {
    const key = `ip_adapter.${layer}.to_k_ip.weight`;
    if (!shapes.has(key)) continue;
    const [rows, columns] = shapes.sides(key, 2) as [number, number];
    channels.set(layer, rows);
    contextDim = columns;
  }
  if (channels.size === 0) throw shapes.invalid("keys and values ip_adapter.N.to_k_ip", "none");
  return { contextDim, channels };
}

function projectionConfig(shapes: PartShapes, contextDim: number): ProjectionConfig {
  if (shapes.has("image_proj.latents")) {
    const [, tokens, width] = shapes.sides("image_proj.latents", 3) as [number, number, number];
    const [inner] = shapes.sides("image_proj.layers.0.0.to_q.weight", 2) as [number];
    if (inner % HEAD_SIZE !== 0) throw shapes.invalid(`a resampler with heads of ${HEAD_SIZE}`, `${inner} numbers`);
    return {
      kind: "plus",
      contextDim,
      inputs: shapes.sides("image_proj.proj_in.weight", 2)[1]!,
      tokens,
      width,
      attention: inner,
      mlp: shapes.sides("image_proj.layers.0.1.1.weight", 2)[0]!,
      layers: shapes.count("image_proj.layers.", MOST_RESAMPLER_LAYERS),
    };
  }
  if (shapes.has("image_proj.proj.3.weight"))
    return { kind: "full-face", contextDim, inputs: shapes.sides("image_proj.proj.0.weight", 2)[1]! };
  const [rows, inputs] = shapes.sides("image_proj.proj.weight", 2) as [number, number];
  const tokens = rows / contextDim;
  if (!Number.isInteger(tokens))
    throw shapes.invalid(`image_proj.proj with a multiple of ${contextDim} rows`, `${rows}`);
  return { kind: "base", contextDim, inputs, tokens };
}
