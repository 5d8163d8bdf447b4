import { encodeTexts } from "../../clips.js";
import { defineNode } from "../../define.js";
import { textsClip } from "../../host-files.js";
import { choice, text } from "../../inputs.js";

const prompt = () => text({ multiline: true, dynamicPrompts: true });

export const clipTextEncodeSd3 = defineNode({
  key: "CLIPTextEncodeSD3",
  category: "advanced/conditioning",
  description: "Encodes a prompt for each of SD 3's encoders; an empty one can be left out.",
  inputs: {
    clip: textsClip(),
    clip_l: prompt(),
    clip_g: prompt(),
    t5xxl: prompt(),
    empty_padding: choice(["none", "empty_prompt"]),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ clip, empty_padding, ...texts }, { host }) => {
    const entries = Object.entries(texts).filter(([, text]) => text !== "" || empty_padding === "empty_prompt");
    return { CONDITIONING: await encodeTexts(clip, Object.fromEntries(entries), host) };
  },
});
