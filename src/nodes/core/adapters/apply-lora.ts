import { withHostModel } from "../../../host/derived-model.js";
import type { Clip, Model } from "../../../host/types.js";
import { atInput, type Loading, loadHostFile } from "../../host-files.js";
import { float } from "../../inputs.js";

/** Input with a strength of a LoRA; 0 leaves things as they are. */
export const loraStrength = () => float({ default: 1, min: -100, max: 100, step: 0.01 });

/** Changes the weights of a model, and those of a clip where there is one; `log` gets what of the LoRA has no place. */
export async function withLora(
  lora_name: string,
  model: Model,
  clip: Clip | undefined,
  strengths: { model: number; clip: number },
  loading: Loading,
): Promise<[Model, Clip | undefined]> {
  if (strengths.model === 0 && strengths.clip === 0) return [model, clip];
  const lora = await loadHostFile("loras", { lora_name }, loading);
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
