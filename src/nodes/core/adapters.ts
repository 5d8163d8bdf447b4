import { withHostModel } from "../../host/derived-model.js";
import type { Clip, Model } from "../../host/types.js";
import { defineNode } from "../define.js";
import { atInput, changedModel, fileName, type Loading, loadHostFile, patchedModel } from "../host-files.js";
import { clip, float, model } from "../inputs.js";

/** Input with a strength of a LoRA; 0 leaves things as they are. */
export const loraStrength = () => float({ default: 1, min: -100, max: 100, step: 0.01 });

export const adapterNodes = [
  defineNode({
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
  }),
  defineNode({
    key: "LoraLoaderModelOnly",
    category: "loaders",
    description: "Changes the weights of a model by a LoRA of the host.",
    inputs: { model: model(), lora_name: fileName("loras"), strength_model: loraStrength() },
    outputs: { MODEL: "MODEL" },
    run: async ({ model, lora_name, strength_model }, { host, signal, log }) => {
      const strengths = { model: strength_model, clip: 0 };
      const [MODEL] = await withLora(lora_name, model, undefined, strengths, { host, signal, log });
      return { MODEL };
    },
  }),
  defineNode({
    key: "HypernetworkLoader",
    category: "loaders",
    description: "Changes the attention of a model by a hypernetwork of the host.",
    inputs: {
      model: changedModel(["strength", 0]),
      hypernetwork_name: fileName("hypernetworks"),
      strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
    },
    outputs: { MODEL: "MODEL" },
    run: async ({ model, hypernetwork_name, strength }, { host, signal, log }) => {
      if (strength === 0) return { MODEL: model };
      const hypernetwork = await loadHostFile("hypernetworks", "hypernetwork_name", hypernetwork_name, {
        host,
        signal,
        log,
      });
      const inputs = { hypernetwork, strength };
      return { MODEL: patchedModel(model, { node: "HypernetworkLoader", inputs }, host) };
    },
  }),
] as const;

/** Changes the weights of a model, and those of a clip if there is one; `log` gets the parts of the LoRA without a place. */
export async function withLora(
  lora_name: string,
  model: Model,
  clip: Clip | undefined,
  strengths: { model: number; clip: number },
  loading: Loading,
): Promise<[Model, Clip | undefined]> {
  if (strengths.model === 0 && strengths.clip === 0) return [model, clip];
  const lora = await loadHostFile("loras", "lora_name", lora_name, loading);
  return atInput("lora_name", () => {
    let changed = clip;
    const changedModel = withHostModel(model, (own) => {
      const unmatched = lora.unmatched?.(own, clip);
      if (unmatched !== undefined) loading.log(`input "lora_name": ${unmatched}`);
      const [result, ofClip] = lora.apply(own, clip, strengths);
      changed = ofClip ?? clip;
      return result;
    });
    return [changedModel, changed];
  });
}
