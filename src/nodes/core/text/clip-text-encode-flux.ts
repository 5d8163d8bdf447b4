import { encodeTexts } from "../../clips.js";
import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { textsClip } from "../../host-files.js";
import { float, text } from "../../inputs.js";

export const clipTextEncodeFlux = defineNode({
  key: "CLIPTextEncodeFlux",
  category: "advanced/conditioning/flux",
  description: "Encodes a prompt for each of Flux's encoders, with the strength of its guidance.",
  inputs: {
    clip: textsClip(),
    clip_l: text({ multiline: true, dynamicPrompts: true }),
    t5xxl: text({ multiline: true, dynamicPrompts: true }),
    guidance: float({ default: 3.5, min: 0, max: 100, step: 0.1 }),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ clip, guidance, ...texts }, { host }) => ({
    CONDITIONING: withOptions(await encodeTexts(clip, texts, host), { guidance }),
  }),
});
