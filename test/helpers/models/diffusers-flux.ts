import type { RawTensor } from "./weight-file.js";

/** Modules of Flux by those of diffusers, of blocks of either kind and around them. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^double_blocks\.(\d+)\.img_attn\.proj/, "transformer_blocks.$1.attn.to_out.0"],
  [/^double_blocks\.(\d+)\.txt_attn\.proj/, "transformer_blocks.$1.attn.to_add_out"],
  [/^double_blocks\.(\d+)\.img_mlp\.0/, "transformer_blocks.$1.ff.net.0.proj"],
  [/^double_blocks\.(\d+)\.img_mlp\.2/, "transformer_blocks.$1.ff.net.2"],
  [/^double_blocks\.(\d+)\.txt_mlp\.0/, "transformer_blocks.$1.ff_context.net.0.proj"],
  [/^double_blocks\.(\d+)\.txt_mlp\.2/, "transformer_blocks.$1.ff_context.net.2"],
  [/^double_blocks\.(\d+)\.img_mod\.lin/, "transformer_blocks.$1.norm1.linear"],
  [/^double_blocks\.(\d+)\.txt_mod\.lin/, "transformer_blocks.$1.norm1_context.linear"],
  [/^double_blocks\.(\d+)\.img_attn\.norm\.query_norm\.scale/, "transformer_blocks.$1.attn.norm_q.weight"],
  [/^double_blocks\.(\d+)\.img_attn\.norm\.key_norm\.scale/, "transformer_blocks.$1.attn.norm_k.weight"],
  [/^double_blocks\.(\d+)\.txt_attn\.norm\.query_norm\.scale/, "transformer_blocks.$1.attn.norm_added_q.weight"],
  [/^double_blocks\.(\d+)\.txt_attn\.norm\.key_norm\.scale/, "transformer_blocks.$1.attn.norm_added_k.weight"],
  [/^single_blocks\.(\d+)\.linear2/, "single_transformer_blocks.$1.proj_out"],
  [/^single_blocks\.(\d+)\.modulation\.lin/, "single_transformer_blocks.$1.norm.linear"],
  [/^single_blocks\.(\d+)\.norm\.query_norm\.scale/, "single_transformer_blocks.$1.attn.norm_q.weight"],
  [/^single_blocks\.(\d+)\.norm\.key_norm\.scale/, "single_transformer_blocks.$1.attn.norm_k.weight"],
  [/^img_in/, "x_embedder"],
  [/^txt_in/, "context_embedder"],
  [/^final_layer\.linear/, "proj_out"],
  [/^time_in\.in_layer/, "time_text_embed.timestep_embedder.linear_1"],
  [/^time_in\.out_layer/, "time_text_embed.timestep_embedder.linear_2"],
  [/^vector_in\.in_layer/, "time_text_embed.text_embedder.linear_1"],
  [/^vector_in\.out_layer/, "time_text_embed.text_embedder.linear_2"],
  [/^guidance_in\.in_layer/, "time_text_embed.guidance_embedder.linear_1"],
  [/^guidance_in\.out_layer/, "time_text_embed.guidance_embedder.linear_2"],
];
const PARTS: readonly (readonly [RegExp, readonly string[]])[] = [
  [
    /^double_blocks\.(\d+)\.img_attn\.qkv\./,
    ["to_q", "to_k", "to_v"].map((name) => `transformer_blocks.$1.attn.${name}.`),
  ],
  [
    /^double_blocks\.(\d+)\.txt_attn\.qkv\./,
    ["add_q_proj", "add_k_proj", "add_v_proj"].map((name) => `transformer_blocks.$1.attn.${name}.`),
  ],
  [
    /^single_blocks\.(\d+)\.linear1\./,
    ["attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"].map((name) => `single_transformer_blocks.$1.${name}.`),
  ],
];

const NAMES_OF_FLUX2: readonly (readonly [RegExp, string])[] = [
  [/\.ff(_context)?\.net\.0\.proj/, ".ff$1.linear_in"],
  [/\.ff(_context)?\.net\.2/, ".ff$1.linear_out"],
  [/^single_blocks\.(\d+)\.linear1/, "single_transformer_blocks.$1.attn.to_qkv_mlp_proj"],
  [/^(single_transformer_blocks\.\d+)\.proj_out/, "$1.attn.to_out"],
  [/^time_text_embed\./, "time_guidance_embed."],
  [/_modulation(_\w+)?\.lin\./, "_modulation$1.linear."],
];

/** The same of Flux.2, whose single blocks keep their first layer whole. */
export const diffusersFlux2 = (
  tensors: Readonly<Record<string, RawTensor>>,
  width: number,
): Record<string, RawTensor> => {
  const isWhole = (key: string): boolean => /^single_blocks\.\d+\.linear1\./.test(key);
  const entries = Object.entries(tensors);
  const others = diffusersFlux(Object.fromEntries(entries.filter(([key]) => !isWhole(key))), width);
  const all = [...Object.entries(others), ...entries.filter(([key]) => isWhole(key))];
  return Object.fromEntries(
    all.map(([key, tensor]) => [NAMES_OF_FLUX2.reduce((name, [own, other]) => name.replace(own, other), key), tensor]),
  );
};

/** A Flux transformer of that width as diffusers stores it: wholes apart, and the last modulation's scale before its shift. */
export function diffusersFlux(tensors: Readonly<Record<string, RawTensor>>, width: number): Record<string, RawTensor> {
  const out: Record<string, RawTensor> = {};
  for (const [key, tensor] of Object.entries(tensors)) {
    const rows = tensor.shape[0]!;
    const [pattern, names] = PARTS.find(([own]) => own.test(key)) ?? [];
    if (pattern !== undefined)
      for (const [i, name] of names!.entries())
        out[key.replace(pattern, name)] = rowsOf(
          tensor,
          i * width,
          i < 3 && i + 1 < names!.length ? (i + 1) * width : rows,
        );
    else if (key.startsWith("final_layer.adaLN_modulation.1."))
      out[key.replace("final_layer.adaLN_modulation.1", "norm_out.linear")] = {
        ...tensor,
        bytes: Buffer.concat([rowsOf(tensor, rows / 2, rows), rowsOf(tensor, 0, rows / 2)].map(({ bytes }) => bytes)),
      };
    else out[NAMES.reduce((name, [own, other]) => name.replace(own, other), key)] = tensor;
  }
  return out;
}

function rowsOf({ dtype, shape, bytes }: RawTensor, from: number, to: number): RawTensor {
  const size = bytes.length / shape[0]!;
  return { dtype, shape: [to - from, ...shape.slice(1)], bytes: bytes.subarray(from * size, to * size) };
}
