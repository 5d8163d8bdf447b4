import { encodeTexts } from "../../clips.js";
import { defineNode } from "../../define.js";
import { textsClip } from "../../host-files.js";
import { text } from "../../inputs.js";

const prompt = () => text({ multiline: true, dynamicPrompts: true });

export const clipTextEncodeHiDream = defineNode({
  key: "CLIPTextEncodeHiDream",
  category: "advanced/conditioning",
  description: "Encodes a prompt for each of HiDream's encoders.",
  inputs: { clip: textsClip(), clip_l: prompt(), clip_g: prompt(), t5xxl: prompt(), llama: prompt() },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ clip, ...texts }, { host }) => ({ CONDITIONING: await encodeTexts(clip, texts, host) }),
});
