import { defineNode } from "../../define.js";
import { clip, int } from "../../inputs.js";

const tokens = () => int({ default: 0, min: 0, max: 10000, step: 1 });

export const t5TokenizerOptions = defineNode({
  key: "T5TokenizerOptions",
  category: "_for_testing/conditioning",
  description: "Sets to how many tokens T5 encoders fill a prompt; a clip without them stays as it is.",
  inputs: { clip: clip(), min_padding: tokens(), min_length: tokens() },
  outputs: { CLIP: "CLIP" },
  run: ({ clip, ...options }) => ({ CLIP: clip.withT5Options?.(options) ?? clip }),
});
