import { LatentkitError } from "../../../../base/errors.js";
import {
  type FileState,
  type NamedFile,
  openedFile,
  quotedName,
  readAt,
  type StoredWeight,
  type WeightFile,
} from "../stored.js";
import { ggufHeader } from "./header.js";
import { originalNames } from "./names.js";
import { MORE } from "./reader.js";

/** Beginnings of a file that are tried in turn: most headers are short, those with a vocabulary have some MiB. */
export const GGUF_BEGINNINGS: readonly number[] = [2 ** 16, 2 ** 21, 2 ** 25];
const LONGEST = GGUF_BEGINNINGS.at(-1)!;

export const ARCHITECTURE = "general.architecture";
/** Language models whose rows of queries and keys are stored in an order of their own. */
const PERMUTED = "llama";

/** Pairs and tensors of a GGUF file, under the names that .safetensors files have. */
export type GgufContents = Pick<WeightFile, "metadata" | "weights">;

/**
 * Reads the header of a GGUF file. Throws file.not-found, file.read-failed, model.invalid for a damaged header, and
 * model.unsupported for versions, types of weights and architectures that are not read.
 */
export function openGgufFile(model: NamedFile): Promise<WeightFile> {
  return openedFile(model, async (handle, state) => {
    for (const length of GGUF_BEGINNINGS) {
      const contents = ggufContents(state, await readAt(handle, 0, Math.min(length, state.bytes)));
      if (contents !== undefined) return contents;
    }
    throw new Error("unreachable: the longest beginning is refused");
  });
}

/** The contents by the first bytes of a file; undefined where more of GGUF_BEGINNINGS is needed. Throws as openGgufFile. */
export function ggufContents(
  { name, path, bytes: fileBytes }: Pick<FileState, "name" | "path" | "bytes">,
  bytes: Uint8Array,
): GgufContents | undefined {
  let header: ReturnType<typeof ggufHeader>;
  try {
    header = ggufHeader(name, bytes, fileBytes);
  } catch (error) {
    if (error !== MORE) throw error;
    if (bytes.length < Math.min(LONGEST, fileBytes)) return undefined;
    throw refusal("model.invalid", name, `a header of at most ${LONGEST} bytes`, "a longer one");
  }
  const { metadata, entries } = header;
  const rename = originalNames([...entries.keys()]);
  if (metadata[ARCHITECTURE] === PERMUTED)
    throw refusal("model.unsupported", name, "weights of an image model, T5 or Qwen3", "those of a Llama or Mistral");
  const weights = new Map<string, StoredWeight>();
  for (const [key, entry] of entries) {
    const original = rename(key);
    if (weights.has(original))
      throw refusal("model.invalid", name, "each weight once", `${quotedName(original)} twice`);
    weights.set(original, { ...entry, file: path, key });
  }
  return { metadata, weights };
}

function refusal(
  code: "model.invalid" | "model.unsupported",
  name: string,
  expected: string,
  received: string,
): LatentkitError {
  const message = `Model ${quotedName(name)}: expected ${expected}, received ${received}.`;
  return new LatentkitError(code, message, { expected, received });
}
