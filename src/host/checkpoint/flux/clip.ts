import type { JoinedFamily } from "../text-encoder/joined-clip.js";

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
};

/** T5 alone makes the context. */
export const CHROMA_CLIP: JoinedFamily = {
  ...FLUX_CLIP,
  name: "Chroma",
  type: "chroma",
  encoders: ["t5"],
  fewest: 1,
  emptyEnds: false,
  combine: ({ t5 }) => [t5!, {}],
};
