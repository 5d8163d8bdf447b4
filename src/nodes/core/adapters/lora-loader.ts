import { defineNode } from "../../define.js";
import { fileName } from "../../host-files.js";
import { clip, model } from "../../inputs.js";
import { loraStrength, withLora } from "./apply-lora.js";

export const loraLoader = defineNode({
  key: "LoraLoader",
  displayName: "Load LoRA",
  category: "loaders",
  description: "Changes the weights of a model and a clip by a LoRA of the host.",
  inputs: {
    model: model(),
    clip: clip(),
    lora_name: fileName("loras"),
    strength_model: loraStrength(),
    strength_clip: loraStrength(),
  },
  outputs: [
    { name: "MODEL", type: "MODEL" },
    { name: "CLIP", type: "CLIP" },
  ],
  run: async ({ model, clip, lora_name, strength_model, strength_clip }, { host, signal, log }) => {
    const strengths = { model: strength_model, clip: strength_clip };
    const [MODEL, CLIP] = await withLora(lora_name, model, clip, strengths, { host, signal, log });
    return { MODEL, CLIP };
  },
});
