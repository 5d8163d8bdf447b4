import { defineNode } from "../../define.js";
import { fileName } from "../../host-files.js";
import { model } from "../../inputs.js";
import { loraStrength, withLora } from "./apply-lora.js";

export const loraLoaderModelOnly = defineNode({
  key: "LoraLoaderModelOnly",
  category: "loaders",
  description: "Changes the weights of a model by a LoRA of the host.",
  inputs: { model: model(), lora_name: fileName("loras"), strength_model: loraStrength() },
  outputs: { MODEL: "MODEL" },
  run: async ({ model, lora_name, strength_model }, { host, signal }) => {
    const [MODEL] = await withLora(lora_name, model, undefined, { model: strength_model, clip: 0 }, { host, signal });
    return { MODEL };
  },
});
