import { type LoraFile, readLora } from "../weights/lora/lora-file.js";
import type { WeightFile } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import { foreignKind } from "./foreign.js";
import { unsupported } from "./refusal.js";

/** Recognises a LoRA by its keys. Throws model.unsupported for other files, and as readLora. */
export async function recogniseLora(file: WeightFile, read: ReadValues): Promise<LoraFile> {
  const lora = await readLora(file, read);
  if (lora.modules.size > 0 || lora.embeddings.size > 0) return lora;
  throw unsupported(file.name, "a LoRA", foreignKind(file.weights) ?? "unknown keys");
}
