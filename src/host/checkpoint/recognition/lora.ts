import type { LatentkitError } from "../../../base/errors.js";
import { type LoraFile, readLora } from "../weights/lora/lora-file.js";
import { quotedName, type WeightFile } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import { foreignKind } from "./foreign.js";
import { unsupported } from "./refusal.js";

/** Recognises a LoRA by its keys. Throws model.unsupported for other files, and as readLora. */
export async function recogniseLora(file: WeightFile, read: ReadValues): Promise<LoraFile> {
  const lora = await readLora(file, read);
  if (lora.modules.size > 0 || lora.embeddings.size > 0) return lora;
  throw otherKind(file);
}

function otherKind({ name, weights }: WeightFile): LatentkitError {
  const kind = foreignKind(weights) ?? "unknown keys";
  const [key = ""] = weights.keys();
  const received = kind.startsWith("a LoRA")
    ? `one of a form that latentkit does not know, with the key ${quotedName(key)}`
    : kind;
  return unsupported(name, "a LoRA", received);
}
