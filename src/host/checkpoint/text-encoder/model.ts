import { describe, LatentkitError } from "../../../base/errors.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Clip, ClipEncoder, FoundEmbedding } from "../../types.js";
import { addPlace, type LoraTarget, type ModulePlaces, ownPlaces, thirdPlace, underscored } from "../lora/places.js";
import { FLOAT_BYTES } from "../networks/layers.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { OnnxModel } from "../session/onnx-model.js";
import type { Runtime } from "../session/runtime.js";
import { END, START } from "../tokenizer/byte-pairs.js";
import { tokenizeClip } from "../tokenizer/clip.js";
import type { WeightMap } from "../weights/stored.js";
import { buildTextEncoder, type TextEncoderConfig, type TextEncoderOptions } from "./build.js";
import type { EmbeddingRows } from "./embeddings.js";
import type { StableDiffusionFamily } from "./recognise.js";

/** The network of a text encoder, from either format. */
export interface TextNetwork {
  readonly name: TextEncoderConfig["name"];
  /** Looks up a textual inversion, as ClipEncoder does. */
  embedding(word: string): FoundEmbedding;
  /** Encodes chunks of 77 ids to cond [chunks, 77, dim] and pooled [chunks, dim]. */
  encode(chunks: number[][], output: TextEncoderOptions): Promise<{ cond: Tensor; pooled?: Tensor }>;
}

/** Everything that a clip of a checkpoint is made of. */
interface ClipSource {
  readonly encoders: readonly TextNetwork[];
  readonly family: StableDiffusionFamily;
  /** Layer that nodes ask for, -1 (the last) to -24; undefined: the family's own. */
  readonly layer?: number;
}

const FIRST_LAYER = -24;

/** The text encoders of a checkpoint, which run in the runtime's process. */
export class CheckpointClip implements Clip {
  readonly encoders: readonly ClipEncoder[];

  constructor(readonly source: ClipSource) {
    this.encoders = source.encoders.map((encoder) => new CheckpointEncoder(encoder, source));
  }

  atLayer(layer: number): Clip {
    if (!Number.isInteger(layer) || layer < FIRST_LAYER || layer > -1) {
      const message = `Clip layer: expected a whole number from ${FIRST_LAYER} to -1, received ${describe(layer)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    return new CheckpointClip({ ...this.source, layer });
  }
}

// Computes with the file's own precision; ComfyUI rounds to 16 bits, which moves a conditioning by about 0.001.
/** One text encoder of a checkpoint. */
export class CheckpointEncoder implements ClipEncoder {
  readonly name: string;
  readonly start = START;
  readonly end = END;
  readonly pad: number;
  readonly length = 77;

  constructor(
    readonly network: TextNetwork,
    readonly source: ClipSource,
  ) {
    this.name = network.name;
    // OpenCLIP fills a chunk with zeros
    this.pad = this.name === "l" ? END : 0;
  }

  tokenize(text: string): number[] {
    return tokenizeClip(text);
  }

  embedding(word: string): FoundEmbedding {
    return this.network.embedding(word);
  }

  encode(chunks: number[][]): Promise<{ cond: Tensor; pooled?: Tensor }> {
    return this.network.encode(chunks, outputLayer(this.source));
  }
}

/** The layer that a family is trained with: for SD 1 the last, else the one before. */
export const ownLayer = (family: StableDiffusionFamily): number => (family === "sd1" ? -1 : -2);

/** The layer whose output is the context. SDXL has no final norm there. */
const outputLayer = ({ family, layer = ownLayer(family) }: ClipSource): TextEncoderOptions => ({
  layer,
  finalNorm: family === "sd1" || family === "sd2",
});

/** A text encoder whose graph is built over the weights of a file, with the rows of textual inversions that it knows. */
export class BuiltTextEncoder implements TextNetwork {
  readonly name: TextEncoderConfig["name"];

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<TextEncoderConfig>,
    readonly rows: EmbeddingRows,
  ) {
    this.name = part.config.name;
  }

  get target(): LoraTarget {
    return { weights: this.part.weights, places: clipPlaces(this.part.config) };
  }

  adapted(adapter: Adapter): BuiltTextEncoder {
    return new BuiltTextEncoder(this.runtime, this.part.adapted(adapter), this.rows);
  }

  embedding(word: string): FoundEmbedding {
    return this.rows.lookUp(word);
  }

  async encode(chunks: number[][], output: TextEncoderOptions): Promise<{ cond: Tensor; pooled?: Tensor }> {
    const { layer, finalNorm } = output;
    const variant = `text encoder ${this.name}, layer ${layer}${finalNorm ? ", normalised" : ""}`;
    const { config } = this.part;
    const work = { tokens: FLOAT_BYTES * (2 * config.mlp + 8 * config.hidden) };
    const session = this.part.session(variant, (network) => buildTextEncoder(network, config, output), { work });
    const { tokens, embeddings } = this.rows.feed(chunks);
    const ids = { int64: tokens.flat(), shape: [tokens.length, config.positions] };
    const { cond, pooled } = await this.runtime.run(session, { tokens: ids, embeddings }, { isShared: true });
    return { cond: cond!, pooled };
  }
}

/** Everything that an exported text encoder is made of. */
interface ExportedTextEncoderSource {
  readonly name: TextEncoderConfig["name"];
  readonly model: OnnxModel;
  readonly rows: EmbeddingRows;
  /** Layer whose normalised output is `last_hidden_state`, as its family is trained. */
  readonly ownLayer: number;
}

const LENGTH = 77;
const LAST = "last_hidden_state";
const LAYER = "hidden_states.";

/** A text encoder exported to ONNX. */
export class ExportedTextEncoder implements TextNetwork {
  readonly name: TextEncoderConfig["name"];
  readonly #source: ExportedTextEncoderSource;

  constructor(source: ExportedTextEncoderSource) {
    this.#source = source;
    this.name = source.name;
  }

  /** Leaves textual inversions out: the model takes only ids. */
  embedding(word: string): FoundEmbedding {
    const { model, rows } = this.#source;
    const { ids, rest, warning } = rows.lookUp(word);
    const name = word.slice(0, word.length - rest.length);
    const isHere = `Embedding ${describe(name)} is ignored: ${model.label} is an exported ONNX model, which cannot take embeddings.`;
    return { ids: [], rest, warning: ids.length > 0 ? isHere : warning };
  }

  async encode(chunks: number[][], output: TextEncoderOptions): Promise<{ cond: Tensor; pooled?: Tensor }> {
    const { model } = this.#source;
    const { outputs } = await model.ports();
    const names = outputs.map(({ name }) => name);
    const context = this.#contextName(names, output);
    // an encoder with a projection has a projected pooled text
    const pooledName = ["text_embeds", "pooler_output"].find((name) => names.includes(name));
    const wanted = pooledName === undefined ? [context] : [context, pooledName];
    const ids = { int64: chunks.flat(), shape: [chunks.length, LENGTH] };
    const [cond, pooled] = await model.run({ input_ids: ids }, wanted, { isShared: true });
    if (pooled !== undefined) model.requireShape(pooled, [chunks.length, undefined]);
    return { cond: model.requireShape(cond!, [chunks.length, LENGTH, undefined]), pooled };
  }

  /** Name of the output that is the context. Fails with value.invalid for a layer that the export lacks. */
  #contextName(names: readonly string[], { layer, finalNorm }: TextEncoderOptions): string {
    const { model, ownLayer } = this.#source;
    if (finalNorm) {
      if (layer === ownLayer) return LAST;
      const message = `${model.label}: expected clip layer ${ownLayer}, received ${layer}: an export normalises only its last layer, so export it again with another num_hidden_layers in its config.json.`;
      throw new LatentkitError("value.invalid", message);
    }
    // the first is that of the embeddings
    const count = names.filter((name) => name.startsWith(LAYER)).length;
    if (count > 0 && -layer >= count) return LAST;
    const name = `${LAYER}${count + layer}`;
    if (count > 0 && names.includes(name)) return name;
    const message = `${model.label} has no output ${describe(`${LAYER}N`)}, which clip layer ${layer} needs: export it again with output_hidden_states.`;
    throw new LatentkitError("value.invalid", message);
  }
}

/** Makes the layers of an encoder of CLIP's by the names of LoRA files. @internal */
export const clipPlaces =
  ({ name, layout }: Pick<TextEncoderConfig, "name" | "layout">): LoraTarget["places"] =>
  (weights) => {
    const modules = layout === "hf" ? ownPlaces(weights) : openClipPlaces(weights);
    return [...modules].map(([module, at]) => [textNames(module, name), at]);
  };

const KOHYA_TEXT = { l: ["lora_te_", "lora_te1_"], h: ["lora_te_"], g: ["lora_te2_"] } as const;
const DIFFUSERS_TEXT = { l: "text_encoder.", h: "text_encoder.", g: "text_encoder_2." } as const;

/** Names of a text encoder's layer, `module` being its name in the HF layout. */
function textNames(module: string, encoder: TextEncoderConfig["name"]): string[] {
  const name = module === PROJECTION ? module : `text_model.${module}`;
  const names = [
    ...KOHYA_TEXT[encoder].map((prefix) => prefix + underscored(name)),
    DIFFUSERS_TEXT[encoder] + name,
    `text_encoders.clip_${encoder}.transformer.${name}`,
  ];
  // these do not name the encoder: they mean the first
  if (encoder !== "g") names.push(`lycoris_${underscored(name)}`, `text_encoders.${name}`, `text_encoders.${module}`);
  return names;
}

const PROJECTION = "text_projection";

/** HF names of OpenCLIP's layers outside its blocks. */
const AROUND_BLOCKS: Readonly<Record<string, readonly [module: string, kind: "weight" | "bias"]>> = {
  "token_embedding.weight": ["embeddings.token_embedding", "weight"],
  positional_embedding: ["embeddings.position_embedding", "weight"],
  "ln_final.weight": ["final_layer_norm", "weight"],
  "ln_final.bias": ["final_layer_norm", "bias"],
};

/** HF names of the layers in a block of OpenCLIP. */
const IN_BLOCK: Readonly<Record<string, string>> = {
  ln_1: "layer_norm1",
  ln_2: "layer_norm2",
  "attn.out_proj": "self_attn.out_proj",
  "mlp.c_fc": "mlp.fc1",
  "mlp.c_proj": "mlp.fc2",
};

const THIRDS = ["q_proj", "k_proj", "v_proj"] as const;
const BLOCKS = "transformer.resblocks.";

/** Layers of an OpenCLIP encoder by their names in the HF layout. */
function openClipPlaces(weights: WeightMap): Map<string, ModulePlaces> {
  const modules = new Map<string, ModulePlaces>();
  for (const key of weights.keys()) {
    if (key === PROJECTION) addPlace(modules, PROJECTION, "weight", { key, transposed: true });
    else if (Object.hasOwn(AROUND_BLOCKS, key)) addPlace(modules, ...AROUND_BLOCKS[key]!, { key });
    else if (key.startsWith(BLOCKS)) addBlockPlaces(modules, weights, key);
  }
  return modules;
}

function addBlockPlaces(modules: Map<string, ModulePlaces>, weights: WeightMap, key: string): void {
  const dot = key.indexOf(".", BLOCKS.length);
  const layer = `encoder.layers.${key.slice(BLOCKS.length, dot)}`;
  const name = key.slice(dot + 1);
  for (const kind of ["weight", "bias"] as const) {
    if (name === `attn.in_proj_${kind}`)
      for (const [third, projection] of THIRDS.entries())
        addPlace(modules, `${layer}.self_attn.${projection}`, kind, thirdPlace(weights, key, third));
    const inBlock = name.endsWith(`.${kind}`) ? name.slice(0, -kind.length - 1) : "";
    if (Object.hasOwn(IN_BLOCK, inBlock)) addPlace(modules, `${layer}.${IN_BLOCK[inBlock]}`, kind, { key });
  }
}
