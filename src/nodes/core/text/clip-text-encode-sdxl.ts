import { encodeSides } from "../../../host/prompt/index.js";
import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { clip, int, text } from "../../inputs.js";

const side = (pixels: number) => int({ default: pixels, min: 0, max: 16384 });

export const clipTextEncodeSdxl = defineNode({
  key: "CLIPTextEncodeSDXL",
  displayName: "CLIP Text Encode SDXL",
  category: "advanced/conditioning",
  description: "Encodes a prompt for each of SDXL's encoders, with its size conditioning.",
  inputs: {
    clip: clip(),
    width: side(1024),
    height: side(1024),
    crop_w: side(0),
    crop_h: side(0),
    target_width: side(1024),
    target_height: side(1024),
    text_g: text({ multiline: true, dynamicPrompts: true }),
    text_l: text({ multiline: true, dynamicPrompts: true }),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ clip, text_g, text_l, ...sizes }, { log }) => ({
    CONDITIONING: withOptions(await encodeSides(clip, { g: text_g, l: text_l }, log), sizes),
  }),
});
