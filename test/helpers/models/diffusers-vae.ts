import type { Shapes } from "./full-size.js";

const PARTS = [
  [/^(encoder)\.down\.(\d)\.block\.(\d)/, "$1.down_blocks.$2.resnets.$3"],
  [/^(encoder)\.down\.(\d)\.downsample/, "$1.down_blocks.$2.downsamplers.0"],
  [/\.mid\.block_1/, ".mid_block.resnets.0"],
  [/\.mid\.block_2/, ".mid_block.resnets.1"],
  [/\.mid\.attn_1\.norm/, ".mid_block.attentions.0.group_norm"],
  [/\.mid\.attn_1\.([qkv])\./, ".mid_block.attentions.0.to_$1."],
  [/\.mid\.attn_1\.proj_out/, ".mid_block.attentions.0.to_out.0"],
  [/\.nin_shortcut/, ".conv_shortcut"],
  [/\.norm_out/, ".conv_norm_out"],
] as const;

/** Diffusers' name of a VAE's weight in LDM's names; the decoder's four levels count from the other end. */
export function diffusersVaeKey(key: string): string {
  const up = /^decoder\.up\.(\d)\.(block\.(\d)|upsample)/.exec(key);
  const start = up === null ? "" : `decoder.up_blocks.${3 - Number(up[1])}.`;
  const block = up?.[3] === undefined ? "upsamplers.0" : `resnets.${up[3]}`;
  const renamed = up === null ? key : start + block + key.slice(up[0].length);
  return PARTS.reduce((name, [pattern, to]) => name.replace(pattern, to), renamed);
}

/** Weights of a VAE in diffusers' names, whose attention is linear. */
export const diffusersVae = <Weight extends { readonly shape: readonly number[] }>(
  weights: ReadonlyMap<string, Weight>,
): Map<string, Weight> =>
  new Map(
    [...weights].map(([key, weight]) => {
      const isAttention = /attn_1\.\w+\.weight$/.test(key) && weight.shape.length === 4;
      return [diffusersVaeKey(key), isAttention ? { ...weight, shape: weight.shape.slice(0, 2) } : weight] as const;
    }),
  );

/** Shapes of a VAE in diffusers' names. */
export function diffusersVaeShapes(shapes: Shapes): Shapes {
  const weights = diffusersVae(new Map(Object.entries(shapes).map(([key, shape]) => [key, { shape }])));
  return Object.fromEntries([...weights].map(([key, { shape }]) => [key, shape]));
}
