import {
  type FileState,
  invalid,
  type NamedFile,
  openedFile,
  quotedName,
  readAt,
  type StoredWeight,
  unsupported,
  type WeightFile,
} from "../stored.js";
import { ggufHeader, MORE } from "./header.js";

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

/** The contents by the first bytes of a file; undefined if more of GGUF_BEGINNINGS is needed. Throws as openGgufFile. */
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
    throw invalid(name, `a header of at most ${LONGEST} bytes`, "a longer one");
  }
  const { metadata, entries } = header;
  const rename = originalNames([...entries.keys()]);
  if (metadata[ARCHITECTURE] === PERMUTED)
    throw unsupported(name, "weights of an image model, T5 or Qwen", "those of a Llama or Mistral");
  const weights = new Map<string, StoredWeight>();
  for (const [key, entry] of entries) {
    const original = rename(key);
    if (weights.has(original)) throw invalid(name, "each weight once", `${quotedName(original)} twice`);
    weights.set(original, { ...entry, file: path, key });
  }
  return { metadata, weights };
}

/** Names of a block's layers in llama.cpp, with the names in the original files. */
type Names = Readonly<Record<string, string>>;

interface Layout {
  /** Beginning of the names of blocks, before their number. */
  readonly block: readonly [from: string, to: string];
  readonly layers: Names;
  readonly others: Names;
}

const T5_LAYOUT: Layout = {
  block: ["enc.blk.", "encoder.block."],
  layers: {
    attn_q: "layer.0.SelfAttention.q",
    attn_k: "layer.0.SelfAttention.k",
    attn_v: "layer.0.SelfAttention.v",
    attn_o: "layer.0.SelfAttention.o",
    attn_rel_b: "layer.0.SelfAttention.relative_attention_bias",
    attn_norm: "layer.0.layer_norm",
    ffn_gate: "layer.1.DenseReluDense.wi_0",
    ffn_up: "layer.1.DenseReluDense.wi_1",
    ffn_down: "layer.1.DenseReluDense.wo",
    ffn_norm: "layer.1.layer_norm",
  },
  others: { "enc.output_norm": "encoder.final_layer_norm", token_embd: "shared" },
};

const QWEN_LAYOUT: Layout = {
  block: ["blk.", "model.layers."],
  layers: {
    attn_q: "self_attn.q_proj",
    attn_k: "self_attn.k_proj",
    attn_v: "self_attn.v_proj",
    attn_output: "self_attn.o_proj",
    attn_q_norm: "self_attn.q_norm",
    attn_k_norm: "self_attn.k_norm",
    attn_norm: "input_layernorm",
    ffn_norm: "post_attention_layernorm",
    ffn_gate: "mlp.gate_proj",
    ffn_up: "mlp.up_proj",
    ffn_down: "mlp.down_proj",
  },
  others: { token_embd: "model.embed_tokens", output_norm: "model.norm", output: "lm_head" },
};

/**
 * Gives the names that llama.cpp has for the weights of a language model those of the original files; other names stay. The
 * names show which model it is, since files lack `general.architecture` or invent their own.
 */
export function originalNames(names: readonly string[]): (name: string) => string {
  const layout = [T5_LAYOUT, QWEN_LAYOUT].find(({ block: [from] }) =>
    names.some((name) => name.startsWith(`${from}0.attn_q.`)),
  );
  return layout === undefined ? (name) => name : (name) => original(name, layout);
}

function original(name: string, { block: [from, to], layers, others }: Layout): string {
  const end = name.lastIndexOf(".");
  const [module, ending] = [name.slice(0, end), name.slice(end)];
  if (Object.hasOwn(others, module)) return others[module] + ending;
  const [, number, layer] = name.startsWith(from) ? (/^(\d{1,4})\.(\w+)$/.exec(module.slice(from.length)) ?? []) : [];
  return layer !== undefined && Object.hasOwn(layers, layer) ? `${to}${number}.${layers[layer]}${ending}` : name;
}
