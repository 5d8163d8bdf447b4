import type { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { JoinedFamily } from "../text-encoder/joined-clip.js";
import { Qwen3Clip, type Qwen3Config, type Qwen3Reading } from "../text-encoder/qwen3.js";
import { tokenizeFlux2 } from "../tokenizer/qwen.js";
import { unsupported } from "../weights/stored.js";

/** T5 makes the context, CLIP-L the pooled text. */
export const FLUX_CLIP: JoinedFamily = {
  name: "Flux",
  type: "flux",
  encoders: ["l", "t5"],
  isPartial: false,
  fewest: 256,
  emptyEnds: true,
  // all layers share the pooled text
  clipFamily: "sd1",
  hasLayers: false,
  combine: ({ l, t5 }) => [t5!, { pooled_output: l![1].pooled_output }],
  pooledWidth: ({ l }) => l,
};

/** T5 alone makes the context. */
export const CHROMA_CLIP: JoinedFamily = {
  ...FLUX_CLIP,
  name: "Chroma",
  type: "chroma",
  encoders: ["t5"],
  fewest: 1,
  // decisions: Weights of Chroma's tokens are measured from padding
  emptyEnds: false,
  combine: ({ t5 }) => [t5!, {}],
  pooledWidth: () => undefined,
};

/** Layers whose inputs are the context: a quarter, half and three quarters of the way. */
export const FLUX2_STATES = [9, 18, 27];
const LAYERS = FLUX2_STATES.at(-1)! + 1;
const FLUX2: Qwen3Reading = { states: FLUX2_STATES, fewest: 512, tokenize: tokenizeFlux2 };
const LAYER = /^model\.layers\.(\d+)\./;

/** The clip of Flux.2 klein. Throws model.unsupported for a model with fewer layers than it reads. */
export function flux2Clip(runtime: Runtime, part: ModelPart<Qwen3Config>): Qwen3Clip {
  const { config, weights } = part;
  if (config.layers < LAYERS)
    throw unsupported(part.file.name, `a text encoder Qwen3 of ${LAYERS} layers for Flux.2`, `one of ${config.layers}`);
  // layers after the last state are neither loaded nor counted
  const used = [...weights].filter(([key]) => Number(LAYER.exec(key)?.[1] ?? 0) < LAYERS - 1);
  return new Qwen3Clip(runtime, part.with({ ...config, layers: LAYERS }, new Map(used)), FLUX2);
}
