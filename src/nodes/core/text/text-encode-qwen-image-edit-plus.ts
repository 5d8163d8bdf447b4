import { defineNode } from "../../define.js";
import { encodeEdit } from "../../edit-prompt.js";
import { textsClip } from "../../host-files.js";
import { image, text, vae } from "../../inputs.js";

export const textEncodeQwenImageEditPlus = defineNode({
  key: "TextEncodeQwenImageEditPlus",
  category: "advanced/conditioning",
  description: "Encodes a prompt for Qwen-Image-Edit 2509, with up to three pictures that it is about.",
  inputs: {
    clip: textsClip(),
    prompt: text({ multiline: true, dynamicPrompts: true }),
    vae: vae({ optional: true }),
    image1: image({ optional: true }),
    image2: image({ optional: true }),
    image3: image({ optional: true }),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ image1, image2, image3, ...inputs }, { host, log }) => {
    const pictures = [image1, image2, image3].filter((picture) => picture !== undefined);
    return { CONDITIONING: await encodeEdit({ ...inputs, pictures, seenPixels: 384 * 384, unit: 8 }, { host, log }) };
  },
});
