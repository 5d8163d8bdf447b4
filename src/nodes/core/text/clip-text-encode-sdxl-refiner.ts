import { encodePlain } from "../../../host/prompt/index.js";
import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { clip, float, int, text } from "../../inputs.js";

const side = () => int({ default: 1024, min: 0, max: 16384 });

export const clipTextEncodeSdxlRefiner = defineNode({
  key: "CLIPTextEncodeSDXLRefiner",
  displayName: "CLIP Text Encode SDXL Refiner",
  category: "advanced/conditioning",
  description: "Encodes a prompt for SDXL's refiner, with a size and an aesthetic score.",
  inputs: {
    ascore: float({ default: 6, min: 0, max: 1000, step: 0.01 }),
    width: side(),
    height: side(),
    text: text({ multiline: true, dynamicPrompts: true }),
    clip: clip(),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ ascore, width, height, text, clip }, { log }) => ({
    CONDITIONING: withOptions(await encodePlain(clip, text, log), { aesthetic_score: ascore, width, height }),
  }),
});
