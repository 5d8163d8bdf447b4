import { defineNode } from "../../define.js";
import { clip, int } from "../../inputs.js";

const tokens = () => int({ default: 0, min: 0, max: 10000, step: 1 });

export const t5TokenizerOptions = defineNode({
  key: "T5TokenizerOptions",
  category: "_for_testing/conditioning",
  description:
    "Sets the number of tokens to which T5 encoders pad a prompt; a clip without a T5 encoder stays unchanged.",
  inputs: { clip: clip(), min_padding: tokens(), min_length: tokens() },
  outputs: { CLIP: "CLIP" },
  run: ({ clip, ...options }) => ({ CLIP: clip.withT5Options?.(options) ?? clip }),
});
