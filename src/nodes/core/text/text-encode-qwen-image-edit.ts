import { defineNode } from "../../define.js";
import { encodeEdit } from "../../edit-prompt.js";
import { textsClip } from "../../host-files.js";
import { image, text, vae } from "../../inputs.js";

export const textEncodeQwenImageEdit = defineNode({
  key: "TextEncodeQwenImageEdit",
  category: "advanced/conditioning",
  description: "Encodes a prompt for Qwen-Image-Edit, with the picture that it is about.",
  inputs: {
    clip: textsClip(),
    prompt: text({ multiline: true, dynamicPrompts: true }),
    vae: vae({ optional: true }),
    image: image({ optional: true }),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ image, ...inputs }, { host, log }) => {
    const pictures = image === undefined ? [] : [image];
    return { CONDITIONING: await encodeEdit({ ...inputs, pictures, seenPixels: 1024 * 1024, unit: 1 }, { host, log }) };
  },
});
