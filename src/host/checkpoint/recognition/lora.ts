import type { LatentkitError } from "../../../base/errors.js";
import { readKey } from "../weights/lora/keys.js";
import { BUNDLED, type LoraFile, readLora } from "../weights/lora/lora-file.js";
import { quotedName, type WeightFile } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import { foreignKind } from "./foreign.js";
import type { ModelFile } from "./part.js";
import { unsupported } from "./refusal.js";

/** Recognises a LoRA by its keys. Throws model.unsupported for other files, and as readLora. */
export async function recogniseLora(file: WeightFile, read: ReadValues): Promise<LoraFile> {
  const lora = await readLora(file, read);
  if (lora.modules.size > 0 || lora.embeddings.size > 0) return lora;
  throw otherKind(file);
}

function otherKind({ name, weights }: ModelFile): LatentkitError {
  const kind = foreignKind(weights) ?? "unknown keys";
  const [key = ""] = weights.keys();
  const received = kind.startsWith("a LoRA")
    ? `one of a form that latentkit does not know, with the key ${quotedName(key)}`
    : kind;
  return unsupported(name, "a LoRA", received);
}

/** Throws model.unsupported for a file none of whose keys is a LoRA's, as recogniseLora, which reads values too. */
export function requireLora(file: ModelFile): void {
  for (const key of file.weights.keys()) if (readKey(key) !== undefined || key.includes(BUNDLED)) return;
  throw otherKind(file);
}
