import { describe, LatentkitError } from "../../../base/errors.js";
import { type ModelHeader, unwrapped } from "../recognition/part.js";
import { kindInWords } from "../recognition/refusal.js";
import {
  quotedName,
  type StoredWeight,
  unsupported,
  valuesIn,
  type WeightFile,
  type WeightMap,
} from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import { type Alpha, alphaInMetadata, metadataNote } from "./metadata.js";

/** Recognises a LoRA by its keys. Throws model.unsupported for other files, and as readLora. */
export async function recogniseLora(file: WeightFile, read: ReadValues): Promise<LoraFile> {
  const lora = await readLora(file, read);
  if (lora.modules.size > 0 || lora.embeddings.size > 0) return lora;
  throw otherKind(file);
}

function otherKind({ name, weights }: ModelHeader): LatentkitError {
  const kind = kindInWords(weights);
  const [key = ""] = weights.keys();
  const received = kind.startsWith("a LoRA")
    ? `one of a form that latentkit does not support, with the key ${quotedName(key)}`
    : kind;
  return unsupported(name, "a LoRA", received);
}

/** Throws model.unsupported for a file without keys of a LoRA, as recogniseLora does, without reading values. */
export function requireLora(file: ModelHeader): void {
  for (const key of file.weights.keys()) if (readKey(key) !== undefined || key.includes(BUNDLED)) return;
  throw otherKind(file);
}

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
  /** A sentence about metadata that is not applied. */
  readonly note?: string;
}

/** Beginning of the keys of textual inversions that are bundled with a LoRA. */
const BUNDLED = "bundle_emb.";
const PARAMETERS = ".string_to_param.";

/**
 * Sorts the tensors of a LoRA file by layer and reads the alphas, no other values. An alpha without a tensor is read from
 * the metadata. Throws model.invalid for an alpha that is not a finite number and for two tensors of one role, model.unsupported for two adapters, and as `read`.
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
  const count = valuesIn(weight.shape);
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

/** Part of a tensor in the change of a layer, in the words of kohya and LyCORIS. */
export type TensorRole =
  | "alpha"
  | "up"
  | "down"
  | "mid"
  | `hada_${"w1_a" | "w1_b" | "w2_a" | "w2_b" | "t1" | "t2"}`
  | `lokr_${"w1" | "w1_a" | "w1_b" | "w2" | "w2_a" | "w2_b" | "t2"}`
  | "dora_scale"
  | "diff"
  | "diff_b"
  | "w_norm"
  | "b_norm"
  /** The whole weight, at any strength. */
  | "replacement";

/** Ends of keys: the text before one is the layer, named in the file's style. */
const ENDINGS: readonly (readonly [ending: string, role: TensorRole])[] = [
  // kohya
  [".lora_up.weight", "up"],
  [".lora_down.weight", "down"],
  [".lora_mid.weight", "mid"],
  // diffusers before PEFT
  [".lora_linear_layer.up.weight", "up"],
  [".lora_linear_layer.down.weight", "down"],
  ["_lora.up.weight", "up"],
  ["_lora.down.weight", "down"],
  // PEFT, and PEFT inside diffusers
  [".lora_B.weight", "up"],
  [".lora_A.weight", "down"],
  [".lora_B", "up"],
  [".lora_A", "down"],
  [".lora.up.weight", "up"],
  [".lora.down.weight", "down"],
  [".lora_magnitude_vector", "dora_scale"],
  [".lora_magnitude_vector.weight", "dora_scale"],
  // the roles that are called alike everywhere
  ...(
    [
      "alpha",
      "dora_scale",
      "diff",
      "diff_b",
      "w_norm",
      "b_norm",
      ...["w1_a", "w1_b", "w2_a", "w2_b", "t1", "t2"].map((name) => `hada_${name}`),
      ...["w1", "w1_a", "w1_b", "w2", "w2_a", "w2_b", "t2"].map((name) => `lokr_${name}`),
    ] as TensorRole[]
  ).map((role) => [`.${role}`, role] as const),
];

/** PEFT with the name of an adapter, which is `default` if none is given. */
const OF_ADAPTER = /^(.+)\.lora_(A|B|magnitude_vector)\.([^.]+)\.weight$/;
const PEFT_ROLES = { A: "down", B: "up", magnitude_vector: "dora_scale" } as const;
/** XLabs' LoRAs of Flux, which number the two streams of a block. */
const OF_STREAM = /^(.+\.processor\.(?:qkv|proj))_lora([12])\.(up|down)\.weight$/;

/** Meaning of a key of a LoRA file. */
interface LoraKey {
  readonly module: string;
  readonly role: TensorRole;
  /** Name of PEFT's adapter, if the key has one. */
  readonly adapter?: string;
}

/** PEFT's prefix behind that of diffusers, as SimpleTuner had both. */
const TWO_PREFIXES = /^((?:unet|transformer|text_encoder(?:_[23])?)\.)base_model\.model\./;

/** Layer and role of a tensor by its key; undefined for keys of no known form. @internal */
export function readKey(whole: string): LoraKey | undefined {
  const key = whole.replace(TWO_PREFIXES, "$1");
  const found = ENDINGS.find(([ending]) => key.length > ending.length && key.endsWith(ending));
  if (found !== undefined) return { module: key.slice(0, -found[0].length), role: found[1] };
  const [, layer, stream, role] = OF_STREAM.exec(key) ?? [];
  if (layer !== undefined) return { module: `${layer}${stream}`, role: role as "up" | "down" };
  const [, module, part, adapter] = OF_ADAPTER.exec(key) ?? [];
  if (module === undefined) return undefined;
  return { module, role: PEFT_ROLES[part as keyof typeof PEFT_ROLES], adapter };
}

// A Control LoRA of Flux: it lets the model take a picture beside the latent, and has norms and biases of its own.

const CONTROL_DOWN = "img_in.lora_A.weight";
const CONTROL_BIAS = ".lora_B.bias";
const CONTROL_NORM = /^(.+\.norm\.(?:query|key)_norm)\.scale$/;
const CONTROL_INPUT = "img_in.weight";

/** Numbers of a patch that a model takes with the Control LoRA of a file; undefined for other LoRAs. @internal */
export function controlInputs(weights: WeightMap): number | undefined {
  const isControl = weights.has(CONTROL_DOWN) && [...weights.keys()].some((key) => CONTROL_NORM.test(key));
  return isControl ? weights.get(CONTROL_DOWN)!.shape[1] : undefined;
}

/** Layer and role of a tensor that only a Control LoRA has. @internal */
export function readControlKey(key: string): LoraKey | undefined {
  if (key.endsWith(CONTROL_BIAS)) return { module: key.slice(0, -CONTROL_BIAS.length), role: "diff_b" };
  const [, norm] = CONTROL_NORM.exec(key) ?? [];
  return norm === undefined ? undefined : { module: norm, role: "replacement" };
}

/** Weights of a Flux transformer that takes so many numbers of a patch: zeros for those that it did not take before. */
export function takingInputs(weights: WeightMap, inputs: number): WeightMap {
  const weight = weights.get(CONTROL_INPUT);
  const [rows, columns] = weight?.shape ?? [];
  if (weight === undefined || rows === undefined || columns === undefined || columns >= inputs) return weights;
  const widened: StoredWeight = { ...weight, shape: [rows, inputs], storedColumns: weight.storedColumns ?? columns };
  return new Map([...weights, [CONTROL_INPUT, widened]]);
}
