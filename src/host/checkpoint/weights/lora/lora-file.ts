import { describe, LatentkitError } from "../../../../base/errors.js";
import { quotedName, type StoredWeight, type WeightFile, type WeightMap } from "../stored.js";
import type { ReadValues } from "../values.js";
import { unwrapped } from "../wrapped-keys.js";
import { controlInputs, readControlKey } from "./control-lora.js";
import { readKey, type TensorRole } from "./keys.js";
import { type Alpha, alphaInMetadata, metadataNote } from "./metadata.js";

/** A tensor of a LoRA file under its full key. */
export interface LoraTensor {
  readonly key: string;
  readonly weight: StoredWeight;
}

/** All that a LoRA file holds for one layer of a network. */
export interface LoraModule extends Alpha {
  readonly tensors: ReadonlyMap<TensorRole, LoraTensor>;
}

/** A LoRA file by layers, in the names of its own style. */
export interface LoraFile {
  readonly name: string;
  readonly modules: ReadonlyMap<string, LoraModule>;
  /** Textual inversions that are bundled with it, by name: the tensors of each under the keys of an embedding's file. */
  readonly embeddings: ReadonlyMap<string, WeightMap>;
  /** Keys that belong to no known form of LoRA. */
  readonly unknown: readonly string[];
  /** Numbers of a patch that a model takes with it: only a Control LoRA says so. */
  readonly inputs?: number;
  /** One sentence on what its metadata says and is not applied. */
  readonly note?: string;
}

/** Beginning of the keys of textual inversions that are bundled with a LoRA. */
export const BUNDLED = "bundle_emb.";
const PARAMETERS = ".string_to_param.";

/**
 * Sorts the tensors of a LoRA file by layer and reads the alphas, no other values. An alpha that is no tensor is read from
 * the metadata. Throws model.invalid for an alpha that is no finite number and for two tensors of one role, model.unsupported for two adapters, and as `read`.
 */
export async function readLora(file: WeightFile, read: ReadValues): Promise<LoraFile> {
  const { name: fileName, metadata } = file;
  const { weights } = unwrapped(file.weights, (inner) => [...inner.keys()].some((key) => STYLES.test(key)));
  const tensors = new Map<string, Map<TensorRole, LoraTensor>>();
  const embeddings = new Map<string, Map<string, StoredWeight>>();
  const unknown: string[] = [];
  let adapter: string | undefined;
  const inputs = controlInputs(weights);
  for (const [key, weight] of weights) {
    const ofControl = inputs === undefined ? undefined : readControlKey(key);
    const parts = key.startsWith(BUNDLED) ? bundledParts(key) : (ofControl ?? readKey(key));
    if (parts === undefined) unknown.push(key);
    else if ("role" in parts) {
      adapter ??= parts.adapter;
      if (parts.adapter !== adapter && parts.adapter !== undefined) throw adapters(fileName, adapter!, parts.adapter);
      const ofModule = entryOf(tensors, parts.module);
      const other = ofModule.get(parts.role);
      if (other !== undefined)
        throw invalid(fileName, quotedName(other.key), `one tensor ${parts.role}`, `${quotedName(key)} too`);
      ofModule.set(parts.role, { key, weight });
    } else entryOf(embeddings, parts.embedding).set(parts.key, weight);
  }
  const modules = new Map<string, LoraModule>();
  const { alphaOf, unusedNote } = alphaInMetadata(fileName, metadata);
  for (const [name, ofModule] of tensors) {
    const alpha = ofModule.get("alpha");
    if (alpha === undefined) modules.set(name, { tensors: ofModule, ...alphaOf(name) });
    else modules.set(name, { tensors: ofModule, alpha: await readAlpha(fileName, alpha, read) });
  }
  const ofLowRank = [...modules.values()].filter(({ tensors }) => tensors.has("up") && !tensors.has("alpha"));
  const note =
    (ofLowRank.some(({ alpha }) => alpha === undefined) ? metadataNote(fileName, metadata) : undefined) ??
    (ofLowRank.length > 0 ? unusedNote([...modules.keys()]) : undefined);
  return { name: fileName, modules, embeddings, unknown, inputs, note };
}

/** Name and key of a bundled embedding: `bundle_emb.NAME.string_to_param.*`, or `bundle_emb.NAME.clip_l`. */
function bundledParts(key: string): { embedding: string; key: string } | undefined {
  const parameters = key.indexOf(PARAMETERS, BUNDLED.length);
  const end = parameters < 0 ? key.lastIndexOf(".") : parameters;
  if (end <= BUNDLED.length) return undefined;
  return { embedding: key.slice(BUNDLED.length, end), key: key.slice(end + 1) };
}

async function readAlpha(name: string, { key, weight }: LoraTensor, read: ReadValues): Promise<number> {
  const subject = `alpha ${quotedName(key)}`;
  const count = weight.shape.reduce((product, side) => product * side, 1);
  if (count !== 1) throw invalid(name, subject, "one number", `${count}`);
  const alpha = (await read(weight))[0]!;
  if (Number.isFinite(alpha)) return alpha;
  throw invalid(name, subject, "a finite number", `${alpha}`);
}

/** Beginnings of the layers' names in all styles of LoRAs that are known. */
const STYLES =
  /^(?:lora_(?:unet|transformer|te\d?)_|lycoris_|bundle_emb\.|base_model\.|(?:unet|text_encoders?|text_encoder_[23]|model\.diffusion_model|diffusion_model|transformer|down_blocks|mid_block|up_blocks|(?:single_)?transformer_blocks|double_blocks|single_blocks)\.)/;

const adapters = (name: string, first: string, second: string): LatentkitError => {
  const received = `${describe(first)} and ${describe(second)}`;
  const message = `LoRA ${quotedName(name)}: expected one adapter, received ${received}: save each to its own file.`;
  return new LatentkitError("model.unsupported", message, { received });
};

const invalid = (name: string, subject: string, expected: string, received: string): LatentkitError =>
  new LatentkitError(
    "model.invalid",
    `LoRA ${quotedName(name)}: ${subject}: expected ${expected}, received ${received}.`,
    {
      expected,
      received,
    },
  );

function entryOf<Key, Value>(maps: Map<string, Map<Key, Value>>, name: string): Map<Key, Value> {
  const known = maps.get(name);
  if (known !== undefined) return known;
  const made = new Map<Key, Value>();
  maps.set(name, made);
  return made;
}
