import { encodePlain } from "../../../host/prompt/index.js";
import { defineNode } from "../../define.js";
import { clip, text } from "../../inputs.js";

// decision 105
export const clipTextEncode = defineNode({
  key: "CLIPTextEncode",
  displayName: "CLIP Text Encode (Prompt)",
  category: "conditioning",
  description: "Encodes a prompt; (x:1.2) gives x a weight of 1.2.",
  inputs: { text: text({ multiline: true, dynamicPrompts: true }), clip: clip() },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ text, clip }, { log }) => ({ CONDITIONING: await encodePlain(clip, text, log) }),
});
